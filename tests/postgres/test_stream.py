"""`logicalrep.stream`: its items, its acknowledgements, and its restarts."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

import pyarrow as pa
import pytest

import logicalrep
from logicalrep.arrow.table.rows import SchemaMismatchError
from logicalrep.postgres.preflight.findings import PreflightError
from logicalrep.postgres.server import Connection, query_wal_head
from logicalrep.postgres.sessions.walsender import Walsender
from logicalrep.postgres.silence import wait_readable
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.errors import LostPositionError
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.transactions import NonTransactionalMessage, ResumeToken, Transaction
from logicalrep_protocol.v1 import Text
from tests.postgres.servers import Database
from tests.waiting import eventually


@pytest.fixture
def source(db: Database) -> dict[str, Any]:
    """Return the arguments for a slot and a publication of a table."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE PUBLICATION p FOR ALL TABLES")
    create_slot(db.connection, "s")
    return {"dsn": db.dsn, "slot": "s", "publication": "p"}


def ids(transaction: Transaction) -> list[int]:
    """Return the keys of the rows that a transaction inserts."""
    values = [change.after["id"] for change in transaction.changes if change.after is not None]
    return [int(value.value) for value in values if isinstance(value, Text)]


def confirmed(db: Database) -> int:
    """Return the acknowledged position."""
    lsn = query_slot(db.connection, "s").confirmed_flush_lsn
    assert lsn is not None
    return lsn


def test_all_that_committed_before_the_loop_began(db: Database, source: dict[str, Any]) -> None:
    db.execute("INSERT INTO t VALUES (1)", "INSERT INTO t SELECT generate_series(2, 4)", "CREATE TABLE other ()")
    db.execute("INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1000, 2999) AS i")
    head = query_wal_head(db.connection)
    transaction_ids = [ids(transaction) for transaction in logicalrep.stream(**source, follow=False)]
    assert transaction_ids == [[1], [2, 3, 4], list(range(1000, 3000))]
    eventually(lambda: confirmed(db) >= head)
    assert not list(logicalrep.stream(**source, follow=False))


def test_unfinished_items_of_the_loop_are_sent_again(db: Database, source: dict[str, Any]) -> None:
    for number in range(1, 6):
        db.execute(f"INSERT INTO t VALUES ({number})")
    with logicalrep.stream(**source) as changes:
        for transaction in changes:
            if ids(transaction) == [3]:
                break
    changes = logicalrep.stream(**source)
    for transaction in changes:
        assert ids(transaction) == [3]
        changes.acknowledge()
        break
    changes = logicalrep.stream(**source)
    with pytest.raises(ZeroDivisionError):
        [1 // (ids(transaction)[0] - 5) for transaction in changes]
    assert [ids(transaction) for transaction in logicalrep.stream(**source, follow=False)] == [[5]]


def test_a_position_stored_with_the_changes_gives_each_change_once(db: Database, source: dict[str, Any]) -> None:
    for number in range(1, 6):
        db.execute(f"INSERT INTO t VALUES ({number})")
    kept: list[int] = []
    position = None
    while len(kept) < 5:
        # Each run ends within the body of its second transaction, after storing it.
        changes = logicalrep.stream(**source, after=position, follow=False)
        for transaction in itertools.islice(changes, 2):
            kept.append(ids(transaction))
            position = changes.position
    assert kept == [[1], [2], [3], [4], [5]]
    # What nobody wants of the WAL is acknowledged, past the position that is kept.
    db.execute("CREATE TABLE other (id int PRIMARY KEY)")
    head = query_wal_head(db.connection)
    assert not list(logicalrep.stream(**source, after=position, follow=False))
    eventually(lambda: confirmed(db) >= head)
    db.execute("INSERT INTO t VALUES (6)")
    assert [ids(transaction) for transaction in logicalrep.stream(**source, after=position, follow=False)] == [[6]]


def test_a_position_of_another_server(db18: Database) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR ALL TABLES")
    create_slot(db18.connection, "s")
    beyond = ResumeToken(delivered=logicalrep.Lsn(query_wal_head(db18.connection) + (1 << 30)))
    with pytest.raises(LostPositionError):
        next(iter(logicalrep.stream(db18.dsn, slot="s", publication="p", after=beyond)))


def test_a_restart_of_the_server_loses_and_doubles_nothing(db: Database, source: dict[str, Any]) -> None:
    db.execute("INSERT INTO t VALUES (1)")
    received = []
    for transaction in logicalrep.stream(**source):
        received += ids(transaction)
        if received == [1]:
            db.execute("INSERT INTO t VALUES (2)", "INSERT INTO t VALUES (3)")
            db.server.stop("immediate")
            db.server.start()
            db.reconnect()
            db.execute("INSERT INTO t VALUES (4)")
        if received[-1] == 4:
            break
    assert received == [1, 2, 3, 4]


def test_closing_ends_a_loop_of_another_thread(
    db: Database, source: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    closing: list[int | None] = []
    close = Walsender.close

    def record_close(session: Walsender) -> None:
        closing.append(threading.get_ident())
        close(session)

    monkeypatch.setattr(Walsender, "close", record_close)
    changes = logicalrep.stream(**source)
    received: list[Any] = []
    loop = threading.Thread(target=lambda: received.extend(changes))
    loop.start()
    eventually(lambda: db.value("SELECT active FROM pg_replication_slots WHERE slot_name = 's'") is True)
    changes.close()
    loop.join(20)
    assert not loop.is_alive()
    assert not received
    # The connection belongs to the loop that waits: two threads must not use it at once.
    assert closing == [loop.ident]


def test_a_signal_ends_a_loop_that_waits(db18: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db18.execute("CREATE PUBLICATION p FOR ALL TABLES")
    create_slot(db18.connection, "s")
    changes = logicalrep.stream(db18.dsn, slot="s", publication="p")
    waits: list[float] = []

    def take_a_signal(connection: Connection, timeout: float) -> bool:
        # Python runs a signal's handler in the thread that waits.
        changes.close()
        waits.append(timeout)
        return wait_readable(connection, timeout)

    monkeypatch.setattr("logicalrep.postgres.sessions.walsender.wait_readable", take_a_signal)
    assert not list(changes)
    assert waits


def test_logical_messages(db18: Database) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR ALL TABLES")
    create_slot(db18.connection, "s")
    db18.execute(
        "SELECT pg_logical_emit_message(false, 'alone', 'a')", "SELECT pg_logical_emit_message(true, 'in', 'b')"
    )
    received: list[Any] = []
    for item in logicalrep.stream(db18.dsn, slot="s", publication=["p"], messages=True, follow=False):
        if isinstance(item, NonTransactionalMessage):
            received.append(item.message.prefix)
        else:
            received.append([change.op for change in item.changes])
    assert received == ["alone", ["message"]]


def test_a_slot_that_is_created(db18: Database) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR ALL TABLES")
    source: dict[str, Any] = {"dsn": db18.dsn, "slot": "s", "publication": "p"}
    with pytest.raises(PreflightError, match="SLOT_MISSING"):
        next(iter(logicalrep.stream(**source)))
    assert not list(logicalrep.stream(**source, create_slot=True, follow=False))
    db18.execute("INSERT INTO t VALUES (1)")
    assert [ids(transaction) for transaction in logicalrep.stream(**source, follow=False)] == [[1]]


def test_record_batches_of_the_feed(db: Database, source: dict[str, Any]) -> None:
    for number in range(1, 201):
        db.execute(f"INSERT INTO t VALUES ({number}, 'v')")
    db.execute("DELETE FROM t WHERE id = 7", "TRUNCATE t")
    table = pa.Table.from_batches(logicalrep.stream(**source, follow=False).batches(rows=50))
    assert table.num_rows == 202
    assert max(map(len, table["op"].chunks)) <= 50
    rows = table.to_pylist()
    assert [row["op"] for row in rows] == ["insert"] * 200 + ["delete", "truncate"]
    assert dict(rows[6]["after"]) == {"id": "7", "v": "v"}
    assert rows[200]["before"] == [("id", "7")]
    assert rows == sorted(rows, key=lambda row: (row["commit_lsn"], row["ordinal"]))
    assert not list(logicalrep.stream(**source, follow=False).batches())


def test_record_batches_of_a_table_in_its_own_types(db: Database, source: dict[str, Any]) -> None:
    db.execute(
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE TABLE kinds (id bigint PRIMARY KEY, n numeric(8,2), t timestamptz, m mood, l int[])",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO kinds VALUES (1, 2.5, '2024-02-29 12:00+00', 'glad', '{1,NULL}')",
        "UPDATE kinds SET n = 3",
    )
    batches = list(logicalrep.stream(**source, follow=False).batches("kinds"))
    table = pa.Table.from_batches(batches)
    assert table.schema.field("n").type == pa.decimal128(8, 2)
    assert [str(value) for value in table["n"].to_pylist()] == ["2.50", "3.00"]
    assert table["_change_type"].to_pylist() == ["insert", "update_postimage"]
    assert table["l"].to_pylist()[0] == [1, None]
    with pytest.raises(PreflightError, match=r"public\.none is not published"):
        next(logicalrep.stream(**source).batches("none"))


def test_a_table_with_a_column_of_a_typed_table_s_own(db18: Database) -> None:
    db18.execute('CREATE TABLE t (id int PRIMARY KEY, "_ordinal" int)', "CREATE PUBLICATION p FOR ALL TABLES")
    create_slot(db18.connection, "s")
    with pytest.raises(SchemaMismatchError, match=r"public\.t has a column _ordinal"):
        next(logicalrep.stream(db18.dsn, slot="s", publication="p").batches("t"))


def test_unfinished_batches_are_sent_again(db: Database, source: dict[str, Any]) -> None:
    db.execute("INSERT INTO t SELECT generate_series(1, 100)")
    for batch in logicalrep.stream(**source).batches(rows=10):
        assert 0 < batch.num_rows <= 10
        break
    table = pa.Table.from_batches(logicalrep.stream(**source, follow=False).batches(rows=10))
    assert table.num_rows == 100


def test_a_loop_that_is_slower_than_the_server_waits(db: Database, source: dict[str, Any]) -> None:
    dsn = f"{source.pop('dsn')} options='-c wal_sender_timeout=1s'"
    for number in range(1, 4):
        db.execute(f"INSERT INTO t VALUES ({number})")
    received = []
    for transaction in logicalrep.stream(dsn, **source, follow=False):
        received += ids(transaction)
        time.sleep(1.5)
    assert received == [1, 2, 3]
