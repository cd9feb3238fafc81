"""A slot has one peek reader at a time: the lock refuses a second one, which nothing else would detect."""

from __future__ import annotations

import re
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.local_server import LocalServer
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.errors import SlotError
from logicalrep.spark import feed_schema
from logicalrep.spark.batch import BatchReader
from logicalrep.spark.options import read_options
from logicalrep.spark.peek.admission import HAS_ADMISSION_CONTROL
from logicalrep.spark.peek.slot_locks import lock_key, lock_slot
from tests.postgres.servers import Database, installation
from tests.spark.queries import Query, new_values
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(not HAS_ADMISSION_CONTROL, reason="Spark 4.0 and 4.1 call readers otherwise")


@pytest.fixture
def db(db18: Database) -> Database:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    create_slot(db18.connection, "s")
    return db18


def query(db: Database, folder: Path, retry_timeout: str = "0.3") -> Query:
    return Query(db, folder, mode="peek", retry_timeout=retry_timeout)


def holder(db: Database) -> Any:
    return db.value("SELECT max(pid) FROM pg_locks WHERE locktype = 'advisory'")


def test_a_second_reader_is_refused_while_the_first_one_runs(db: Database, tmp_path: Path) -> None:
    first = query(db, tmp_path)
    refused = (
        rf"\[SLOT_IN_USE\] replication slot 's' is in use by process {holder(db)} \(logicalrep, from this machine\)"
    )
    with pytest.raises(SlotError, match=refused):
        query(db, tmp_path)
    db.execute("INSERT INTO t VALUES (1)")
    assert new_values(first.plan()) == ["1"]
    # Reading without moving the slot takes no lock.
    options = read_options({"dsn": db.dsn, "slot": "s", "publication": "p"})
    reader = BatchReader(options, feed_schema())
    (part,) = reader.partitions()
    assert sum(batch.num_rows for batch in reader.read(part)) == 1
    first.restart()
    first.commit()
    first.restart(reopen=False)
    query(db, tmp_path).restart(reopen=False)


def test_a_second_reader_waits_for_the_first_one_s_end(db: Database, tmp_path: Path) -> None:
    first = query(db, tmp_path)
    threading.Timer(0.5, first.reader.stop).start()
    query(db, tmp_path, retry_timeout="20").restart(reopen=False)


def test_the_lock_holder_continues_after_a_broken_connection(db: Database, tmp_path: Path) -> None:
    first = query(db, tmp_path, retry_timeout="2")
    db.execute(f"SELECT pg_terminate_backend({holder(db)})")
    eventually(lambda: holder(db) is None)
    db.execute("INSERT INTO t VALUES (1)")
    assert new_values(first.plan()) == ["1"]
    db.execute(f"SELECT pg_terminate_backend({holder(db)})")
    eventually(lambda: holder(db) is None)
    second = query(db, tmp_path)
    began = time.monotonic()
    with pytest.raises(SlotError, match=rf"in use by process {holder(db)} "):
        first.commit()
    assert 2 < time.monotonic() - began < 20
    assert new_values(second.plan()) == ["1"]
    second.restart(reopen=False)
    first.commit()
    first.restart(reopen=False)


def test_slots_have_locks_of_their_own(db: Database) -> None:
    with db.settings.connect() as connection, db.settings.connect() as other:
        lock_slot(connection, "a", patience=0)
        lock_slot(other, "b", patience=0)
        with pytest.raises(SlotError, match="SLOT_IN_USE"):
            lock_slot(other, "a", patience=0)
    assert len({lock_key(f"slot_{number}") for number in range(1000)}) == 1000
    # All versions of this package use the same key.
    assert lock_key("spark") == -2_804_406_399_572_939_884


@pytest.mark.postgres
def test_the_server_notices_within_a_minute_that_a_reader_s_machine_is_gone() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with LocalServer(installation(18), listen_addresses="'127.0.0.1'", port=port) as server:
        settings = ConnectionSettings(f"{server.dsn} port={port}", host="127.0.0.1")
        with settings.connect() as connection:
            lock_slot(connection, "s", patience=0)
            shown = [
                connection.execute(f"SHOW tcp_{name}".encode()).fetchone()
                for name in ("keepalives_idle", "keepalives_interval", "keepalives_count", "user_timeout")
            ]
            assert shown == [("30",), ("10",), ("3",), ("60000",)]
            with settings.connect() as other, pytest.raises(SlotError, match=re.escape("(logicalrep, from 127.0.0.1)")):
                lock_slot(other, "s", patience=0)
