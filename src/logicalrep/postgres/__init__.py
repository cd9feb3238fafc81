"""Access to a server: connections, slots, publications, COPY, and the two modes of reading a slot.

The package needs only psycopg; functions that use Arrow import it when called.
"""

from __future__ import annotations

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.sessions.walsender import Walsender
from logicalrep.postgres.transaction_stream import Stream, stream

__all__ = ["ConnectionSettings", "PluginOptions", "Stream", "Walsender", "stream"]
