"""Real servers for tests: one of each major version in a test process, and a database for each test."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.local_server import Installation, LocalServer, installations
from logicalrep.postgres.server import Connection
from logicalrep.postgres.slots.errors import SlotError
from logicalrep.postgres.slots.usage import retry_until_free
from tests.postgres.minors import minor

_NUMBERS = itertools.count(1)
_SERVERS: dict[int | str, LocalServer] = {}


_ASKED = os.environ.get("SERVER")
"""The one major version for the tests below, as `make test SERVER=14` asks for it."""


def _servers(*servers: Any) -> list[Any]:
    return [int(_ASKED)] if _ASKED else list(servers)


SERVERS = _servers(pytest.param(15, marks=pytest.mark.thorough), pytest.param(16, marks=pytest.mark.thorough), 18)
"""The servers for which tests are repeated; `make test` has the newest."""
SERVERS_OF_CORE = _servers(pytest.param(15, marks=pytest.mark.thorough), 16, 18)
"""The servers for the core of `replicate`; `make test` has the oldest and the newest of those that come with it."""


@dataclass
class Database:
    """A test's database: its server, and a connection to it."""

    server: LocalServer
    name: str
    major: int
    connection: Connection

    @property
    def dsn(self) -> str:
        return self.server.dsn_as("postgres", self.name)

    @property
    def settings(self) -> ConnectionSettings:
        return ConnectionSettings(self.dsn)

    def writer(self) -> Connection:
        """Open the connection of a writer: tables without a schema are in public."""
        return connect_writer(self.dsn)

    def execute(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        return self.connection.execute(query).fetchall()

    def value(self, query: str) -> object:
        return self.rows(query)[0][0]

    def reconnect(self) -> None:
        with contextlib.suppress(Exception):
            self.connection.close()
        self.connection = self.writer()


def connect_writer(dsn: str) -> Connection:
    connection = ConnectionSettings(dsn).connect()
    connection.execute("SET search_path TO public")
    return connection


def installation(version: int | str) -> Installation:
    """Return the installation of a major version, or of a minor one such as `15.0`; skip the test if it is absent."""
    if isinstance(version, str):
        return minor(version)
    major, installed = version, installations()
    if major not in installed:
        pytest.skip(f"PostgreSQL {major} is not installed")
    return installed[major]


def start_server(version: int | str) -> LocalServer:
    """Return the server of a major or minor version, which the first call starts."""
    if version not in _SERVERS:
        server = LocalServer(installation(version), fsync="off")
        server.create()
        server.start()
        _SERVERS[version] = server
    return _SERVERS[version]


@contextlib.contextmanager
def start_server_of(version: str, **settings: str) -> Iterator[Database]:
    """Yield the database of a server of its own, of a minor version."""
    with LocalServer(minor(version), fsync="off", **settings) as local:
        database = Database(local, "postgres", local.installation.major, connect_writer(local.dsn))
        yield database
        database.connection.close()


@contextlib.contextmanager
def start_as_it_comes() -> Iterator[Database]:
    """Yield the database of a server of its own that is not set up for logical replication."""
    with (
        LocalServer(installation(18), wal_level="replica", fsync="off") as server,
        contextlib.closing(connect_writer(server.dsn)) as connection,
    ):
        yield Database(server, "postgres", 18, connection)


def back_up(server: LocalServer, folder: Path) -> None:
    """Copy the data of a server, which runs before and after, into a new folder."""
    server.stop()
    subprocess.run(["cp", "-a", server.data, folder], check=True)
    server.start()


def restore(server: LocalServer, folder: Path) -> None:
    """Restore the copied data, and discard everything since."""
    server.stop("immediate")
    shutil.rmtree(server.data)
    shutil.move(folder, server.data)
    server.start()


def take_over(server: LocalServer, folder: Path) -> None:
    """Restore the copied data like a standby that was promoted at that point: on a timeline of its own."""
    (folder / "standby.signal").touch()
    restore(server, folder)
    with ConnectionSettings(server.dsn).connect() as connection:
        connection.execute("SELECT pg_promote()")


@contextlib.contextmanager
def start_standby_of(server: LocalServer, folder: Path) -> Iterator[LocalServer]:
    """Yield a standby that follows a server through its slot `standby`, and keeps its failover slots."""
    with ConnectionSettings(server.dsn).connect() as connection:
        connection.execute("SELECT pg_create_physical_replication_slot('standby', true)")
        version = connection.info.server_version
    back_up(server, folder)
    standby = LocalServer(installation(version // 10000))
    standby.create()
    shutil.rmtree(standby.data)
    shutil.move(folder, standby.data)
    (standby.data / "standby.signal").touch()
    settings = {
        "unix_socket_directories": standby.folder,
        "primary_conninfo": server.dsn,
        "primary_slot_name": "standby",
        "hot_standby_feedback": "on",
        "sync_replication_slots": "on",
        # Only the primary waits for standbys.
        "synchronized_standby_slots": "",
    }
    with (standby.data / "postgresql.conf").open("a") as configuration:
        configuration.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
    try:
        standby.start()
        yield standby
    finally:
        standby.__exit__(None, None, None)


def stop_all() -> None:
    """Stop all servers and remove them."""
    for server in _SERVERS.values():
        server.__exit__(None, None, None)
    _SERVERS.clear()


@contextlib.contextmanager
def create_database(version: int | str, encoding: str = "UTF8") -> Iterator[Database]:
    """Yield a new database with a character set, whose slots are dropped afterwards."""
    server = start_server(version)
    name = f"test_{next(_NUMBERS)}"
    with ConnectionSettings(server.dsn).connect() as admin:
        admin.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0")
    database = Database(server, name, server.installation.major, connect_writer(server.dsn_as("postgres", name)))
    try:
        yield database
    finally:
        database.connection.close()
        with ConnectionSettings(server.dsn).connect() as admin:
            for (gid,) in admin.execute("SELECT gid FROM pg_prepared_xacts WHERE database = %s", (name,)).fetchall():
                with ConnectionSettings(database.dsn).connect() as connection:
                    connection.execute(f"ROLLBACK PREPARED '{gid}'")
            admin.execute(
                "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots "
                "WHERE active_pid IS NOT NULL AND database = %s",
                (name,),
            )
            for (slot,) in admin.execute(
                "SELECT slot_name FROM pg_replication_slots WHERE database = %s", (name,)
            ).fetchall():
                # A temporary slot vanishes when its session has ended.
                with contextlib.suppress(SlotError):
                    drop = functools.partial(admin.execute, "SELECT pg_drop_replication_slot(%s)", (slot,))
                    retry_until_free(drop, admin, slot, patience=10)
            admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
