"""Copies of a slot: from any position on they send what the slot sends from there, and leave nothing behind."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable

from logicalrep import Lsn, v1
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.peek import peek
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.server import newest_protocol, query_wal_head
from logicalrep.postgres.slots.copies import can_be_copied, create_copies
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.slot import query_slot
from tests.postgres.servers import Database


def test_from_any_position_on(db: Database) -> None:
    """Together both parts have all transactions and messages, whatever record the position lies in."""
    options = _options(db)
    start = query_slot(db.connection, "s").confirmed.lsn
    _write(db)
    head = query_wal_head(db.connection)
    everything = _effects(peek(db.connection, "s", options))
    assert len(everything) > 200
    commits = [position for position, _ in everything]
    chance = random.Random(7)
    middles = {Lsn(commit + chance.choice((0, 0, 1, 8))) for commit in chance.sample(commits, 25)}
    pages = chance.sample(range(start // 8192 + 1, head // 8192), 15)
    middles |= {Lsn(page * 8192 + chance.choice((0, 0, 48, 1000, 5000))) for page in pages}
    for middle in sorted(middles):
        with create_copies(db.settings, "s", 1) as (copy,):
            batches = copy.decode(options, middle, head)
            later_effects = _effects(message for batch in batches for message in batch)
        earlier_effects = _effects(peek(db.connection, "s", options, upto_lsn=middle))
        assert [
            effect for effect in earlier_effects if effect[0] < middle or effect[1][0][:1] == b"M"
        ] + later_effects == everything
    assert query_slot(db.connection, "s").confirmed.lsn == start


def test_nothing_of_them_stays(db: Database) -> None:
    options = _options(db)
    db.execute("INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 100000) AS i")
    confirmed, head = query_slot(db.connection, "s").confirmed.lsn, query_wal_head(db.connection)
    with create_copies(db.settings, "s", 3) as copies:
        assert len({copy.name for copy in copies}) == 3
        assert _slots(db) == {"s", *(copy.name for copy in copies)}
        copies[0].decode(options, confirmed, head)
        batches = copies[1].decode(options, confirmed, head)
        assert len(next(batches))
    _wait_until_gone(db)


def test_a_server_without_room_for_another(db: Database) -> None:
    """One slot stays free for other uses."""
    _options(db)
    most = int(str(db.value("SHOW max_replication_slots")))
    with create_copies(db.settings, "s", most + 5) as copies:
        assert len(copies) == most - len(_all_slots(db) - {copy.name for copy in copies}) - 1
        with create_copies(db.settings, "s", 1) as none:
            assert none == []
    db.execute("CREATE ROLE lonely LOGIN REPLICATION CONNECTION LIMIT 1")
    lonely = ConnectionSettings(db.dsn, user="lonely")
    try:
        with lonely.connect(), create_copies(lonely, "s", 1) as none:
            assert none == []
    finally:
        db.execute("DROP ROLE lonely")
        _wait_until_gone(db)


def test_slots_that_are_not_copied(db: Database) -> None:
    """Slots with prepared transactions, and slots that wait for standbys, are not copied."""
    _options(db)
    create_slot(db.connection, "two_phase", two_phase=True)
    if db.major >= 17:
        assert not can_be_copied(db.connection, create_slot(db.connection, "failover", failover=True))
    assert can_be_copied(db.connection, query_slot(db.connection, "s"))
    assert not can_be_copied(db.connection, query_slot(db.connection, "two_phase"))


def _options(db: Database) -> PluginOptions:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE PUBLICATION p FOR ALL TABLES")
    create_slot(db.connection, "s")
    return PluginOptions(publication_names=("p",), proto_version=newest_protocol(db.connection), messages=True)


def _write(db: Database) -> None:
    """Write transactions beside an open one, with messages, savepoints and changes of the table."""
    with db.writer() as other:
        for base in range(0, 1000, 100):
            with other.transaction():
                for i in range(base, base + 20):
                    other.execute("INSERT INTO t VALUES (%s, 'long')", (-1 - i,))
                    db.execute(f"INSERT INTO t VALUES ({base + i % 100}, repeat('short', {i % 50}))")
                    if i % 5 == 0:
                        db.execute(f"SELECT pg_logical_emit_message(false, 'outside', '{i}')")
            with db.connection.transaction():
                db.execute("SAVEPOINT a", f"DELETE FROM t WHERE id = {base}", "ROLLBACK TO a")
                db.execute(f"UPDATE t SET v = 'new' WHERE id = {base + 1}")
            db.execute(f"ALTER TABLE t ADD COLUMN c{base} int DEFAULT {base}", f"UPDATE t SET c{base} = id")


def _effects(messages: Iterable[tuple[int, bytes]]) -> list[tuple[int, list[bytes]]]:
    """Return each transaction with the LSN of its commit record, and each message outside of one with its own.

    Descriptions of tables are left out: each session sends those that it needs.
    """
    effects: list[tuple[int, list[bytes]]] = []
    inside = False
    for lsn, data in messages:
        tag = data[:1]
        if tag == b"B":
            inside = True
            begin = v1.parse(data)
            assert isinstance(begin, v1.Begin)
            effects.append((begin.final_lsn, []))
        elif not inside:
            effects.append((lsn, []))
        if tag not in (b"R", b"Y"):
            effects[-1][1].append(data)
        inside = inside and tag != b"C"
    return effects


def _wait_until_gone(db: Database) -> None:
    deadline = time.monotonic() + 10
    while _slots(db) != {"s"}:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _slots(db: Database) -> set[object]:
    return {
        name for (name,) in db.rows("SELECT slot_name FROM pg_replication_slots WHERE database = current_database()")
    }


def _all_slots(db: Database) -> set[object]:
    return {name for (name,) in db.rows("SELECT slot_name FROM pg_replication_slots")}
