"""A server that listens on a port too, as Java reaches no Unix socket."""

from __future__ import annotations

import socket

from logicalrep.postgres.local_server import Installation, LocalServer


class PortServer(LocalServer):
    """A temporary server on a free port of 127.0.0.1, with the settings that PostgreSQL has by itself."""

    def __init__(self, installation: Installation) -> None:
        """Create the server's folder."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = int(listener.getsockname()[1])
        super().__init__(
            installation,
            listen_addresses="'127.0.0.1'",
            port=str(self.port),
            logical_decoding_work_mem="64MB",
            shared_buffers="256MB",
            max_wal_size="4GB",
            fsync="off",
        )

    @property
    def dsn(self) -> str:
        """The connection string for the superuser."""
        return f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"


__all__ = ["PortServer"]
