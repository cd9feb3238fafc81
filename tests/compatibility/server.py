"""The server of a destination and of checkpoints that the tests of releases write."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from logicalrep.postgres.local_server import LocalServer
from tests.postgres.servers import Database, connect_writer, installation

SLOTS = ["lake", "feed", "typed", "walsender"]
"""The slots: the slot of the destination, and the slots of the streams."""
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
def server(stored_in: Path | None = None) -> Iterator[Database]:
    """Yield a server with the tables, before their changes, and with the slots; then store its data in a new folder."""
    with LocalServer(installation(18), autovacuum="off", fsync="off") as local:
        database = Database(local, "postgres", 18, connect_writer(local.dsn))
        database.execute(*SETUP.split(";\n"))
        for slot in SLOTS:
            database.execute(f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")
        yield database
        database.connection.close()
        if stored_in is not None:
            local.stop()
            shutil.copytree(local.data, stored_in)


@contextmanager
def stored_server(data: Path) -> Iterator[Database]:
    """Yield a server with a copy of stored data."""
    local = LocalServer(installation(18), autovacuum="off", fsync="off")
    try:
        local.create()
        configuration = (local.data / "postgresql.conf").read_bytes()
        owner = local.data.stat()
        shutil.rmtree(local.data)
        shutil.copytree(data, local.data)
        (local.data / "postgresql.conf").write_bytes(configuration)
        for path in (local.data, *local.data.rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid)
        local.data.chmod(0o700)
        local.start()
        database = Database(local, "postgres", 18, connect_writer(local.dsn))
        yield database
        database.connection.close()
    finally:
        local.stop("immediate")
        shutil.rmtree(local.folder)
