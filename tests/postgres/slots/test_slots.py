"""Slots: their state, and advancing them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from logicalrep import Lsn
from logicalrep.postgres.peek import peek
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.preflight.checks import check
from logicalrep.postgres.preflight.findings import Needs
from logicalrep.postgres.server import Connection, newest_protocol, query_scalar, query_wal_head
from logicalrep.postgres.sessions.walsender import Walsender
from logicalrep.postgres.slots import creating
from logicalrep.postgres.slots.advancing import advance_slot
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.errors import SlotError, UndecodableError
from logicalrep.postgres.slots.slot import Slot, find_slot, query_slot
from logicalrep.postgres.slots.usage import check_free
from logicalrep.postgres.snapshots import create_slot_with_snapshot, hold
from logicalrep.transactions.table_names import TableName
from tests.postgres.servers import Database
from tests.waiting import eventually


def test_the_newest_protocol_is_the_one_that_both_speak(db: Database) -> None:
    assert newest_protocol(db.connection) == {15: 3, 16: 4, 18: 4}[db.major]


def test_a_slot_is_created_and_found(db: Database) -> None:
    assert find_slot(db.connection, "fresh") is None
    slot = create_slot(db.connection, "fresh")
    stored_slot = find_slot(db.connection, "fresh")
    assert stored_slot is not None
    # The time is that of the look.
    assert slot == replace(stored_slot, time=slot.time)
    assert (slot.plugin, slot.database, slot.two_phase, slot.lost) == ("pgoutput", db.name, False, None)
    assert slot.confirmed_flush_lsn is not None
    assert slot.confirmed_flush_lsn <= slot.head
    assert create_slot(db.connection, "decided_later", two_phase=True).two_phase
    if db.major >= 17:
        kept = create_slot(db.connection, "kept", failover=True)
        assert (kept.failover, kept.two_phase, kept.sent_up_to) == (True, False, kept.head)
    else:
        with pytest.raises(SlotError, match="failover needs PostgreSQL 17 or later"):
            create_slot(db.connection, "kept", failover=True)


@contextmanager
def rewritten_meanwhile(db: Database) -> Iterator[Callable[[Future[Any]], None]]:
    """Yield what waits for a slot to be made, by another thread, while a table is rewritten at a bad moment.

    The rewriting begins behind the slot's first record, and ends before its view of the catalog is whole. Another
    transaction changes the table before the slot's position, and commits after it.
    """
    db.execute("CREATE TABLE other (id serial)", "CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    db.execute("CREATE PUBLICATION p FOR TABLE t")
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted AND transactionid = %s"

    def write(writer: Connection, statement: str) -> object:
        writer.execute("BEGIN")
        writer.execute(statement.encode())
        return query_scalar(writer, "SELECT backend_xid FROM pg_stat_activity WHERE pid = pg_backend_pid()")

    def is_waited_for(xid: object) -> bool:
        return bool(query_scalar(db.connection, waiting, xid))

    with closing(db.writer()) as first, closing(db.writer()) as second, closing(db.writer()) as third:
        xid = write(first, "INSERT INTO other DEFAULT VALUES")

        def go_on(future: Future[Any]) -> None:
            eventually(lambda: is_waited_for(xid))
            later_write = write(second, "INSERT INTO other DEFAULT VALUES")
            db.execute("ALTER TABLE t ALTER COLUMN id TYPE bigint")
            first.execute("COMMIT")
            eventually(lambda: is_waited_for(later_write))
            last = write(third, "UPDATE t SET id = 2")
            second.execute("COMMIT")
            eventually(lambda: future.done() or is_waited_for(last))
            third.execute("COMMIT")
            future.result(60)

        yield go_on


def read_by_sql(db: Database) -> None:
    list(peek(db.connection, "s", PluginOptions(publication_names=("p",), proto_version=1)))


def read_by_a_walsender(db: Database) -> None:
    head = query_wal_head(db.connection)
    with Walsender(db.settings, "s", PluginOptions(publication_names=("p",), proto_version=1)) as session:
        eventually(lambda: session.receive(0.1).last >= head)


@pytest.mark.parametrize("read", [read_by_sql, read_by_a_walsender])
@pytest.mark.parametrize("is_settled", [True, False], ids=["made by us", "made by the server's function"])
def test_a_slot_that_is_created_while_a_table_is_rewritten(
    db16_and_18: Database, read: Callable[[Database], None], is_settled: bool
) -> None:
    db = db16_and_18
    with rewritten_meanwhile(db) as go_on, ThreadPoolExecutor(1) as pool, closing(db.writer()) as maker:
        if is_settled:
            go_on(pool.submit(create_slot, maker, "s"))
            read(db)
            db.execute("UPDATE t SET id = 3")
            read(db)
        else:
            go_on(pool.submit(query_scalar, maker, "SELECT pg_create_logical_replication_slot('s', 'pgoutput')"))
            with pytest.raises(UndecodableError, match=r"could not map .*start with a new checkpoint"):
                read(db)


def test_a_slot_with_a_snapshot_that_is_made_while_a_table_is_rewritten(db16_and_18: Database) -> None:
    db = db16_and_18
    with rewritten_meanwhile(db) as go_on, ThreadPoolExecutor(1) as pool, ExitStack() as stack:
        future = pool.submit(
            stack.enter_context, create_slot_with_snapshot(db.settings, "s", [TableName("public", "t")])
        )
        go_on(future)
        with db.settings.connect() as reader:
            hold(reader, future.result())
            assert reader.execute("SELECT id FROM public.t").fetchall() == [(2,)]
        db.execute("UPDATE t SET id = 3")
        read_by_sql(db)


def test_whoever_sees_a_slot_finds_every_later_commit_in_it(db18: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    advance_past_start = creating.advance_past_start

    def stand_in(connection: Connection, slot: Slot) -> bool:
        assert find_slot(db18.connection, "s") is None
        is_settled = advance_past_start(connection, slot)
        assert find_slot(db18.connection, "s") is None
        return is_settled

    monkeypatch.setattr(creating, "advance_past_start", stand_in)
    slot = create_slot(db18.connection, "s")
    assert db18.rows(f"SELECT slot_name, temporary FROM pg_replication_slots WHERE database = '{db18.name}'") == [
        ("s", False)
    ]
    assert slot.confirmed_flush_lsn is not None


@pytest.mark.parametrize(("failures", "is_made"), [(2, True), (9, False)])
def test_a_slot_that_cannot_be_moved_past_its_beginning_is_recreated(
    db18: Database, monkeypatch: pytest.MonkeyPatch, failures: int, is_made: bool
) -> None:
    advance_past_start, tries = creating.advance_past_start, itertools.count(1)

    def stand_in(connection: Connection, slot: Slot) -> bool:
        if next(tries) <= failures:
            db18.execute(
                "DO $$ BEGIN RAISE 'could not map filenumber \"base/5/16470\" to relation OID' USING ERRCODE = 'XX000'; "
                "END $$"
            )
        return advance_past_start(connection, slot)

    monkeypatch.setattr(creating, "advance_past_start", stand_in)
    if is_made:
        assert create_slot(db18.connection, "s").restart_lsn
    else:
        with pytest.raises(UndecodableError, match=r"\[SLOT_UNDECODABLE\] .*after 5 tries: could not map filenumber"):
            create_slot(db18.connection, "s")
    slots = db18.rows(f"SELECT slot_name FROM pg_replication_slots WHERE database = '{db18.name}'")
    assert slots == ([("s",)] if is_made else [])


def test_a_missing_slot_is_an_error_that_says_what_to_do(db18: Database) -> None:
    with pytest.raises(SlotError, match=r"'none' does not exist.*start with a new checkpoint"):
        query_slot(db18.connection, "none")


def test_advancing_goes_forwards_only(db: Database) -> None:
    slot = create_slot(db.connection, "moves")
    db.execute("CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)")
    head = query_wal_head(db.connection)
    advance_slot(db.connection, slot, head)
    moved = query_slot(db.connection, "moves")
    assert moved.confirmed_flush_lsn == head
    # The same holds if another process has moved it since it was read.
    for seen in (moved, slot):
        advance_slot(db.connection, seen, Lsn(slot.confirmed.lsn + 1))
        assert query_slot(db.connection, "moves").confirmed_flush_lsn == head
    advance_slot(db.connection, moved, Lsn(head + 2**30))
    moved = query_slot(db.connection, "moves")
    assert moved.confirmed_flush_lsn is not None
    assert head <= moved.confirmed_flush_lsn <= moved.head


def test_a_slot_in_use_names_the_process(db18: Database) -> None:
    slot = create_slot(db18.connection, "busy")
    db18.execute("CREATE PUBLICATION p FOR ALL TABLES")
    options = PluginOptions(publication_names=("p",), proto_version=1)
    with Walsender(db18.settings, "busy", options):
        db18.execute("CREATE TABLE t (a int)")
        pid = query_slot(db18.connection, "busy").active_pid
        with pytest.raises(SlotError, match=rf"'busy' is in use by process {pid} \(logicalrep, from this machine\)"):
            advance_slot(db18.connection, slot, query_wal_head(db18.connection), patience=0.2)
        with pytest.raises(SlotError, match="in use by process"):
            Walsender(db18.settings, "busy", options, patience=0.2)


def test_a_reader_that_is_leaving_is_waited_for(db18: Database) -> None:
    db18.execute("CREATE PUBLICATION p FOR ALL TABLES")
    create_slot(db18.connection, "left")
    with Walsender(db18.settings, "left", PluginOptions(publication_names=("p",), proto_version=1)):
        slot = query_slot(db18.connection, "left")
        assert slot.active_pid is not None
    check_free(db18.connection, slot)


def test_missing_standbys(db18: Database) -> None:
    """The server sends nothing from a failover slot then, so a query beyond the acknowledged position would hang."""
    create_slot(db18.connection, "s", failover=True)
    create_slot(db18.connection, "other")
    db18.execute(
        "SELECT pg_create_physical_replication_slot('gone', true)",
        "SELECT pg_create_physical_replication_slot('unused')",
        "SELECT pg_create_physical_replication_slot('used', true)",
    )
    try:
        for names, useless in (("used", ()), ('used, "gone"', ("gone",)), ("unused,used,gone", ("gone", "unused"))):
            if useless == ("gone",):
                db18.execute("SELECT pg_drop_replication_slot('gone')")
            db18.execute(f"ALTER SYSTEM SET synchronized_standby_slots = '{names}'", "SELECT pg_reload_conf()")
            eventually(_setting_is(db18, names))
            db18.execute("SELECT pg_logical_emit_message(false, '', '', flush => true)")
            slot = query_slot(db18.connection, "s")
            assert sorted(slot.useless_standbys) == sorted(useless)
            assert slot.waits_for_standbys
            assert (slot.sent_up_to == slot.confirmed_flush_lsn) == bool(useless)
            assert (slot.standbys_warning is None) == (not useless)
            assert not query_slot(db18.connection, "other").waits_for_standbys
        (warning,) = check(db18.connection, Needs(slot="s", publications=()))
        assert warning == slot.standbys_warning
        assert "names 'unused', 'gone', which no standby uses" in warning
    finally:
        db18.execute(
            "ALTER SYSTEM RESET synchronized_standby_slots",
            "SELECT pg_reload_conf()",
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_type = 'physical'",
        )


def _setting_is(db: Database, names: str) -> Callable[[], bool]:
    return lambda: db.value("SHOW synchronized_standby_slots") == names
