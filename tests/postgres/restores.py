"""Servers that are put back to an earlier state on their timeline, as from a snapshot of the volume."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from logicalrep.postgres.local_server import LocalServer
from logicalrep.postgres.server import Connection, query_wal_head
from logicalrep_runtime.scalars import Lsn
from tests.postgres.servers import connect_writer

_ANOTHER_PORT = 5433


def snapshot_volume(server: LocalServer, folder: Path) -> None:
    """Copy the data of a server as a snapshot of its volume has them, after a crash at that moment."""
    server.stop("immediate")
    subprocess.run(["cp", "-a", server.data, folder], check=True)
    server.start()


def crash(server: LocalServer) -> None:
    """Crash a server, and start it again."""
    server.stop("immediate")
    server.start()


def restart(server: LocalServer) -> None:
    """Stop a server cleanly, and start it again."""
    server.stop()
    server.start()


def put_back(
    server: LocalServer,
    folder: Path,
    write: Callable[[Connection], object] | None = None,
    *,
    past: Lsn | None = None,
) -> None:
    """Put a server back to copied data.

    Args:
        server: the server, which runs before and after.
        folder: the copied data.
        write: writes to the server once it is put back, before anybody else can connect.
        past: the LSN after which the WAL ends then.
    """
    server.stop("immediate")
    shutil.rmtree(server.data)
    shutil.move(folder, server.data)
    if write is not None or past is not None:
        settings = server.data / "postgresql.auto.conf"
        old_text = settings.read_text()
        settings.write_text(f"{old_text}port = {_ANOTHER_PORT}\n")
        server.start()
        with connect_writer(f"{server.dsn} port={_ANOTHER_PORT}") as connection:
            if write is not None:
                write(connection)
            if past is not None:
                write_wal_past(connection, past)
        server.stop()
        settings.write_text(old_text)
    server.start()


def write_wal_past(connection: Connection, lsn: Lsn) -> None:
    """Write WAL until it ends after an LSN, without any change of a table."""
    while query_wal_head(connection) <= lsn:
        connection.execute("SELECT pg_logical_emit_message(false, 'filler', repeat('x', 8000))")
