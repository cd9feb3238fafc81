"""Slots: their state, and advancing them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from logicalrep import Lsn
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.preflight.checks import check
from logicalrep.postgres.preflight.findings import Needs
from logicalrep.postgres.replication_connection import Walsender
from logicalrep.postgres.slots import (
    SlotError,
    advance_slot,
    create_slot,
    find_slot,
    newest_protocol,
    the_slot,
    wal_head,
)
from tests.postgres.servers import Database
from tests.waiting import eventually


def test_the_newest_protocol_is_the_one_that_both_speak(db: Database) -> None:
    assert newest_protocol(db.connection) == {15: 3, 16: 4, 18: 4}[db.major]


def test_a_slot_is_made_and_found(db: Database) -> None:
    assert find_slot(db.connection, "fresh") is None
    slot = create_slot(db.connection, "fresh")
    found = find_slot(db.connection, "fresh")
    assert found is not None
    # The time is that of the look.
    assert slot == replace(found, time=slot.time)
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


def test_a_missing_slot_is_an_error_that_says_what_to_do(db18: Database) -> None:
    with pytest.raises(SlotError, match=r"'none' does not exist.*start with a new checkpoint"):
        the_slot(db18.connection, "none")


def test_advancing_goes_forwards_only(db: Database) -> None:
    slot = create_slot(db.connection, "moves")
    db.execute("CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)")
    head = wal_head(db.connection)
    advance_slot(db.connection, slot, head)
    moved = the_slot(db.connection, "moves")
    assert moved.confirmed_flush_lsn == head
    # The same holds if another process has moved it since it was read.
    for seen in (moved, slot):
        advance_slot(db.connection, seen, Lsn(slot.confirmed.lsn + 1))
        assert the_slot(db.connection, "moves").confirmed_flush_lsn == head
    advance_slot(db.connection, moved, Lsn(head + 2**30))
    moved = the_slot(db.connection, "moves")
    assert moved.confirmed_flush_lsn is not None
    assert head <= moved.confirmed_flush_lsn <= moved.head


def test_a_slot_in_use_names_the_process(db18: Database) -> None:
    slot = create_slot(db18.connection, "busy")
    db18.execute("CREATE PUBLICATION p FOR ALL TABLES")
    options = PluginOptions(publication_names=("p",), proto_version=1)
    with Walsender(db18.settings, "busy", options):
        db18.execute("CREATE TABLE t (a int)")
        pid = the_slot(db18.connection, "busy").active_pid
        with pytest.raises(SlotError, match=rf"'busy' is in use by process {pid} \(logicalrep, from this machine\)"):
            advance_slot(db18.connection, slot, wal_head(db18.connection), patience=0.2)
        with pytest.raises(SlotError, match="in use by process"):
            Walsender(db18.settings, "busy", options, patience=0.2)


def test_standbys_that_are_not_there(db18: Database) -> None:
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
            slot = the_slot(db18.connection, "s")
            assert sorted(slot.useless_standbys) == sorted(useless)
            assert slot.waits_for_standbys
            assert (slot.sent_up_to == slot.confirmed_flush_lsn) == bool(useless)
            assert (slot.standbys_warning is None) == (not useless)
            assert not the_slot(db18.connection, "other").waits_for_standbys
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
