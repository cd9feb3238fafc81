"""Bytes of COPY and BASE_BACKUP of real servers. `python -m tests.protocol.recorded_formats` records them anew.

Each line of `formats.jsonl` is a format and a server's release: a file of COPY, or the messages of a base backup, of which
those with data keep their first bytes.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.local_server import LocalServer
from logicalrep.postgres.server import Connection

RECORDED = Path(__file__).with_name("formats.jsonl")
_SERVERS = ["13.16", "14.23", 15, 16, "17.5", 18]
_KEPT = 40
TABLE = (
    "CREATE TABLE kinds (id integer, name text, amount numeric, created timestamptz, payload bytea, nothing text)",
    "INSERT INTO kinds VALUES (1, 'Zürich', 12.50, '2026-11-29 12:00Z', '\\x00ff', NULL), (-2, '', 'NaN', NULL, '', NULL)",
    "CREATE TABLE nothing ()",
    "INSERT INTO nothing DEFAULT VALUES",
)
BACKUP = "BASE_BACKUP (PROGRESS, CHECKPOINT 'fast', MANIFEST 'yes')"
TABLES = ("kinds", "nothing", "kinds WHERE false")


def copied(connection: Connection, query: str) -> bytes:
    """Return the file of a COPY to the client."""
    with connection.cursor().copy(f"COPY ({query}) TO STDOUT (FORMAT binary)") as copy:
        return b"".join(bytes(piece) for piece in copy)


def backed_up(settings: ConnectionSettings, command: str) -> Iterator[bytes]:
    """Yield the content of each CopyData of a base backup."""
    from psycopg.pq import ExecStatus

    with settings.connect(replication=True) as connection:
        pgconn = connection.pgconn
        pgconn.send_query(command.encode())
        while (result := pgconn.get_result()) is not None:
            assert result.status != ExecStatus.FATAL_ERROR, result.error_message
            while result.status == ExecStatus.COPY_OUT:
                size, data = pgconn.get_copy_data(0)
                if size < 0:
                    break
                yield bytes(data)


def recorded(kind: str) -> dict[int, Any]:
    """Return what was recorded of a format, by the server's major version."""
    entries = [json.loads(line) for line in RECORDED.read_text("utf-8").splitlines()]
    return {entry["server"]: entry["data"] for entry in entries if entry["format"] == kind}


def _record() -> Iterator[str]:
    from tests.postgres.servers import connect_writer, installation

    for version in _SERVERS:
        with (
            LocalServer(installation(version), fsync="off") as server,
            contextlib.closing(connect_writer(server.dsn)) as connection,
        ):
            major = server.installation.major
            for statement in TABLE:
                connection.execute(statement)
            files = {table: copied(connection, f"SELECT * FROM {table}").hex() for table in TABLES}
            yield json.dumps({"format": "copy", "server": major, "data": files})
            if major >= 15:
                connection.execute("SET allow_in_place_tablespaces = true")
                connection.execute("CREATE TABLESPACE apart LOCATION ''")
                connection.execute("CREATE TABLE elsewhere (id integer) TABLESPACE apart")
                messages = backed_up(ConnectionSettings(server.dsn), BACKUP)
                beginnings = [data.hex() for data in _beginnings(list(messages))]
                yield json.dumps({"format": "basebackup", "server": major, "data": beginnings})


def _beginnings(messages: list[bytes]) -> Iterator[bytes]:
    """Yield the first messages of each archive and of the manifest, and the last ones; of data, the first bytes."""
    counts: Counter[bytes] = Counter()
    for number, data in enumerate(messages, start=-len(messages)):
        tag = data[:1]
        counts = Counter() if tag in b"nm" else counts
        counts[tag] += 1
        if counts[tag] <= 2 or number >= -2:
            yield data[:_KEPT] if tag == b"d" else data


if __name__ == "__main__":
    lines = list(_record())
    RECORDED.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    sys.stdout.write(f"wrote {len(lines)} lines\n")
