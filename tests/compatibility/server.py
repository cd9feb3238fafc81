"""The server of an earlier release's destination and checkpoints, made again.

A destination and a checkpoint go on only with their own server: its system identifier, the OIDs and files of its tables, and
a slot that is not past their position. A new server gets the same identifier; the same statements give the same OIDs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

from logicalrep.postgres.local_server import LocalServer
from logicalrep_runtime.scalars import Lsn
from tests.postgres.servers import Database, connect_writer, installation

SYSTEM_IDENTIFIER = 7_500_000_000_000_000_000
SLOTS = ["lake", "feed", "typed", "walsender"]
"""The slots: that of the destination, and those of the streams."""
SETUP = """
CREATE TABLE plain (id int PRIMARY KEY, v text, n numeric(10,2), at timestamptz);
CREATE TABLE whole (a int, v text);
ALTER TABLE whole REPLICA IDENTITY FULL;
CREATE TABLE parted (id int, part int, v text, PRIMARY KEY (part, id)) PARTITION BY LIST (part);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);
CREATE TABLE toasted (id int PRIMARY KEY, big text, n int);
CREATE TABLE kept (id int PRIMARY KEY, v text);
CREATE TABLE texts (id int PRIMARY KEY, day date);
CREATE TABLE loading (id int PRIMARY KEY, v text);
CREATE PUBLICATION p FOR TABLE plain, whole, parted, toasted, kept, texts, loading
    WITH (publish_via_partition_root = true);
INSERT INTO plain SELECT i, 'v' || i, i / 3.0, '2026-01-01 00:00+00' FROM generate_series(1, 100) AS i;
INSERT INTO whole SELECT i % 3, 'same' FROM generate_series(1, 9) AS i;
INSERT INTO parted SELECT i, 1 + i % 2, 'v' FROM generate_series(1, 20) AS i;
INSERT INTO toasted SELECT i, repeat(md5(i::text), 200), 0 FROM generate_series(1, 4) AS i;
INSERT INTO kept SELECT i, 'first' FROM generate_series(1, 10) AS i;
INSERT INTO texts VALUES (1, '2026-01-01'), (2, 'infinity');
INSERT INTO loading SELECT i, 'v' FROM generate_series(1, 10) AS i
"""
CHANGES = """
UPDATE plain SET v = 'changed' WHERE id % 10 = 0;
DELETE FROM plain WHERE id % 10 = 1;
DELETE FROM whole WHERE ctid IN (SELECT ctid FROM whole WHERE a = 1 LIMIT 1);
UPDATE parted SET part = 3 - part WHERE id < 5;
UPDATE toasted SET n = 1;
UPDATE kept SET v = 'second' WHERE id < 5;
DELETE FROM kept WHERE id = 9;
INSERT INTO texts VALUES (3, '-infinity')
"""
LATER = """
INSERT INTO plain VALUES (1000, 'later', 1.5, '2026-02-01 00:00+00');
UPDATE plain SET n = 7 WHERE id < 50;
DELETE FROM whole WHERE ctid IN (SELECT ctid FROM whole WHERE a = 2 LIMIT 2);
UPDATE parted SET part = 3 - part WHERE id < 9;
UPDATE toasted SET n = 2 WHERE id > 1;
UPDATE kept SET v = 'third' WHERE id < 3;
DELETE FROM kept WHERE id = 8;
UPDATE texts SET day = '2026-03-01' WHERE id = 2;
DELETE FROM loading WHERE id = 5
"""


@contextmanager
def server() -> Iterator[Database]:
    """Yield a server with the tables, before their changes, and with the slots."""
    # What the server writes by itself would move the LSNs.
    local = LocalServer(installation(18), autovacuum="off", fsync="off")
    try:
        local.create()
        _identify(local)
        local.start()
        database = Database(local, "postgres", 18, connect_writer(local.dsn))
        database.execute(*SETUP.split(";\n"))
        for slot in SLOTS:
            database.execute(f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")
        yield database
        database.connection.close()
    finally:
        local.__exit__(None, None, None)


def advance(database: Database, lsn: Lsn) -> None:
    """Let a server write WAL until it is past an LSN."""
    while Lsn(str(database.value("SELECT pg_current_wal_insert_lsn()"))) <= lsn:
        database.execute("SELECT pg_switch_wal()", "SELECT pg_logical_emit_message(false, 'advance', '')")


def head(database: Database) -> Lsn:
    """Return the LSN at which a server writes."""
    return Lsn(str(database.value("SELECT pg_current_wal_insert_lsn()")))


def _identify(local: LocalServer) -> None:
    """Give a server, which has not been started, the identifier of the others."""
    control = local.data / "global" / "pg_control"
    content = bytearray(control.read_bytes())
    at = _place_of_sum(content)
    struct.pack_into("<Q", content, 0, SYSTEM_IDENTIFIER)
    struct.pack_into("<I", content, at, _sum(bytes(content[:at])))
    with control.open("r+b") as file:
        file.write(content)
    # The WAL has it too.
    done = local.run("pg_resetwal", "-f", str(local.data))
    assert done.returncode == 0, done.stderr


def _place_of_sum(content: bytes) -> int:
    """Return where the file has the CRC-32C of all before; versions differ in that."""
    for at in range(8, 1024, 4):
        if struct.unpack_from("<I", content, at)[0] == _sum(content[:at]):
            return at
    raise AssertionError("pg_control has no sum")


def _sum(content: bytes) -> int:
    """Return a CRC-32C, of the bits in the order in which PostgreSQL takes them."""
    register = 0xFFFFFFFF
    for byte in content:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF
