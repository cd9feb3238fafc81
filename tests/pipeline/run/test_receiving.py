"""Messages that are gathered until a batch is due: they are decoded once, and nothing waits longer than it may."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from logicalrep.arrow.changes.table_changes import TableChanges, by_table
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.run.receiving import ChangeReceiver
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.server import query_wal_head
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.slot import query_slot
from tests.pipeline.reading import read_table
from tests.pipeline.replicating import replicate_meanwhile
from tests.postgres.sending import wait_until_sent
from tests.postgres.servers import Database
from tests.waiting import eventually

ENDLESS = Limits(gathering_seconds=math.inf)
"""Limits under which messages wait until changes are wanted."""
OPTIONS = PluginOptions(publication_names=("p",), proto_version=4, streaming="parallel", messages=True)


@contextmanager
def receiving(
    db: Database, limits: Limits = ENDLESS, *, slot: str = "s", options: PluginOptions = OPTIONS
) -> Iterator[ChangeReceiver]:
    """Yield a receiver whose changes nobody wants yet."""
    receiver = ChangeReceiver(db.settings, slot, options, limits=limits)
    receiver.want(math.inf)
    with receiver:
        receiver.wait_until_started()
        yield receiver


def taken(db: Database, receiver: ChangeReceiver) -> dict[int, TableChanges]:
    """Return all that has committed, by table."""
    receiver.want(0.0)
    head, parts = query_wal_head(db.connection), list[TableChanges]()

    def is_all() -> bool:
        parts.extend(receiver.take().parts)
        receiver.want(0.0)
        return not receiver.is_behind(head)

    eventually(is_all)
    parts += receiver.take().parts
    return by_table(parts)


@pytest.fixture
def db(db18: Database) -> Database:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE PUBLICATION p FOR ALL TABLES")
    create_slot(db18.connection, "s")
    return db18


def test_small_transactions_wait_until_changes_are_wanted(db: Database) -> None:
    with receiving(db) as receiver:
        for number in range(5):
            db.execute(f"INSERT INTO t VALUES ({number})")
        wait_until_sent(db)
        assert not receiver.wait(0.2)
        (changes,) = taken(db, receiver).values()
        assert changes.num_rows == 5
        # After `take` the next changes are gathered again.
        receiver.take()
        db.execute("INSERT INTO t VALUES (5)")
        wait_until_sent(db)
        assert not receiver.wait(0.2)
        (changes,) = taken(db, receiver).values()
        assert changes.num_rows == 1


def test_messages_wait_at_most_for_a_while(db: Database) -> None:
    with receiving(db, Limits(gathering_seconds=0.1)) as receiver:
        db.execute("INSERT INTO t VALUES (1)")
        assert receiver.wait(60)


def test_gathered_bytes_count_as_received_ones(db: Database) -> None:
    with receiving(db, replace(ENDLESS, received_bytes=10_000)) as receiver:
        db.execute("INSERT INTO t VALUES (1, repeat('x', 4000))")
        wait_until_sent(db)
        assert not receiver.wait(0.2)
        db.execute("INSERT INTO t VALUES (2, repeat('x', 4000))", "INSERT INTO t VALUES (3, repeat('x', 4000))")
        assert receiver.wait(60)
        (changes,) = taken(db, receiver).values()
        assert changes.num_rows == 3


def test_a_receiver_stops_while_it_gathers(db: Database) -> None:
    confirmed = query_slot(db.connection, "s").confirmed.lsn
    with receiving(db) as receiver:
        db.execute("INSERT INTO t VALUES (1)")
        wait_until_sent(db)
        receiver.stop()
        slot = query_slot(db.connection, "s")
        # Nobody has stored the change.
        assert (slot.active_pid, slot.confirmed.lsn) == (None, confirmed)
    with receiving(db) as receiver:
        (changes,) = taken(db, receiver).values()
        assert changes.num_rows == 1


def test_a_new_session_does_not_wait_for_the_end_of_gathering(db: Database) -> None:
    with receiving(db) as receiver:
        db.execute("INSERT INTO t VALUES (1)")
        wait_until_sent(db)
        confirmed = query_slot(db.connection, "s").confirmed.lsn
        receiver.restart_session(confirmed)
        receiver.acknowledge(confirmed)
        assert receiver.wait(60)
        eventually(lambda: not receiver.is_renewal_pending)


def test_gathered_messages_come_again_after_the_connection_broke(db: Database) -> None:
    with receiving(db) as receiver:
        db.execute("INSERT INTO t VALUES (1)")
        wait_until_sent(db)
        db.execute("SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots WHERE slot_name = 's'")
        db.execute("INSERT INTO t VALUES (2)")
        (changes,) = taken(db, receiver).values()
        assert changes.num_rows == 2
        assert receiver.traffic.restarts == 1


def test_a_round_has_the_same_changes_as_many_small_ones(db: Database) -> None:
    """Descriptions that change in the midst, logical messages, streamed, prepared and aborted transactions."""
    create_slot(db.connection, "small", two_phase=True)
    create_slot(db.connection, "gathered", two_phase=True)
    options = replace(OPTIONS, two_phase=True)
    at_once = Limits(round_seconds=0, gathering_seconds=0)
    with (
        receiving(db, at_once, slot="small", options=options) as small,
        receiving(db, slot="gathered", options=options) as gathered,
    ):
        statements = (
            "INSERT INTO t VALUES (1, 'a')",
            "SELECT pg_logical_emit_message(true, 'x', 'within')",
            "ALTER TABLE t ADD COLUMN w int DEFAULT 7",
            "UPDATE t SET v = 'b'",
            "SELECT pg_logical_emit_message(false, 'x', 'outside')",
            "INSERT INTO t SELECT i, repeat('y', 100) FROM generate_series(10, 3000) AS i",
            "BEGIN; INSERT INTO t SELECT -i FROM generate_series(10, 3000) AS i; ROLLBACK",
            "BEGIN; INSERT INTO t VALUES (2); PREPARE TRANSACTION 'one'",
            "BEGIN; INSERT INTO t VALUES (3); PREPARE TRANSACTION 'two'",
            "COMMIT PREPARED 'one'",
            "ROLLBACK PREPARED 'two'",
            "ALTER TABLE t RENAME TO u",
            "CREATE TABLE t (id text PRIMARY KEY)",
            "INSERT INTO t VALUES ('x')",
            "TRUNCATE t, u",
            "DELETE FROM u",
            "INSERT INTO u VALUES (4)",
        )
        for statement in statements:
            for part in statement.split("; "):
                db.execute(part)
        wait_until_sent(db)
        assert not gathered.has_changes
        expected, actual = taken(db, small), taken(db, gathered)
        assert actual.keys() == expected.keys()
        assert len(actual) == 2
        for oid, changes in expected.items():
            assert [*actual[oid].relations] == [*changes.relations]
            assert rows_of(actual[oid]) == rows_of(changes)


def rows_of(changes: TableChanges) -> list[tuple[object, ...]]:
    return [(batch.relation, *row.items()) for batch in changes.batches for row in batch.rows.to_pylist()]


def test_a_change_is_visible_once_a_batch_is_due(db: Database, tmp_path: Path) -> None:
    # With these limits nothing but a due batch ends the gathering.
    limits = replace(ENDLESS, checkpoint_seconds=math.inf)
    with replicate_meanwhile(db, tmp_path, limits=limits) as caught_up:
        caught_up(tables=["public.t"])
        for number in range(3):
            db.execute(f"INSERT INTO t VALUES ({number})")
            eventually(lambda number=number: number in read_table(str(tmp_path / "public/t")).column("id").to_pylist())  # type: ignore[misc]
