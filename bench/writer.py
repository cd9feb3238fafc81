"""The connection of a benchmark's writer."""

from __future__ import annotations

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.server import Connection


def connect_writer(dsn: str) -> Connection:
    """Open a connection whose tables without a schema are in public."""
    connection = ConnectionSettings(dsn).connect()
    connection.execute("SET search_path TO public")
    return connection
