"""Peeking returns the same messages any number of times, and moves no slot."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, cast

import pytest

from logicalrep import Lsn
from logicalrep.postgres.peek import peek, peek_batches, peek_batches_from
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.publications import PublicationError
from logicalrep.postgres.server import newest_protocol, query_wal_head
from logicalrep.postgres.slots.advancing import advance_slot
from logicalrep.postgres.slots.copies import create_copies
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.postgres.slots.errors import SlotError
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.transactions.change_feed import change_rows
from tests.postgres.servers import Database


@pytest.fixture
def options(db: Database) -> PluginOptions:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", 'CREATE PUBLICATION "odd "",name" FOR ALL TABLES')
    create_slot(db.connection, "s")
    return PluginOptions(publication_names=('odd ",name',), proto_version=newest_protocol(db.connection))


def test_a_peek_gives_what_was_committed_and_moves_nothing(db: Database, options: PluginOptions) -> None:
    db.execute("INSERT INTO t SELECT i, 'value ' || i FROM generate_series(1, 1000) AS i", "DELETE FROM t WHERE id = 7")
    position = query_slot(db.connection, "s").confirmed_flush_lsn
    first = list(peek(db.connection, "s", options))
    assert first == list(peek(db.connection, "s", options))
    assert query_slot(db.connection, "s").confirmed_flush_lsn == position
    rows = list(change_rows(first, options.decoder()))
    assert [row["op"] for row in rows] == ["insert"] * 1000 + ["delete"]
    assert rows[999]["after"] == {"id": "1000", "v": "value 1000"}
    assert rows[1000]["before"] == {"id": "7"}


def test_a_publication_that_was_dropped(db: Database, options: PluginOptions) -> None:
    """PostgreSQL 18 would silently leave out only the changes after the drop."""
    publication = '"odd "",name"'
    db.execute("INSERT INTO t VALUES (1)", f"DROP PUBLICATION {publication}", "INSERT INTO t VALUES (2)")
    db.execute(f"CREATE PUBLICATION {publication} FOR ALL TABLES", "INSERT INTO t VALUES (3)")
    with db.settings.connect() as connection:
        ways = peek(connection, "s", options), peek_batches(connection, "s", options)
        for way in ways:
            with pytest.raises(PublicationError, match=r'publication "odd ",name".* make a new slot'):
                list(way)
        start, end = query_slot(connection, "s").confirmed.lsn, query_wal_head(connection)
        with pytest.raises(PublicationError):
            list(peek_batches_from(connection, "s", options, start, end))
        # Past that change everything can be read.
        advance_slot(db.connection, query_slot(connection, "s"), end)
        db.execute("INSERT INTO t VALUES (4)")
        assert [row["after"] for row in change_rows(peek(connection, "s", options), options.decoder())] == [
            {"id": "4", "v": None}
        ]


def test_a_slot_that_is_dropped_after_it_was_looked_at(db: Database, options: PluginOptions) -> None:
    slot = query_slot(db.connection, "s")
    db.rows("SELECT pg_drop_replication_slot('s')")
    attempts: list[Callable[[], object]] = [
        lambda: list(peek(db.connection, "s", options)),
        lambda: list(peek_batches(db.connection, "s", options)),
        lambda: advance_slot(db.connection, slot, Lsn(slot.confirmed.lsn + 1)),
    ]
    for attempt in attempts:
        with pytest.raises(SlotError, match=r"^\[SLOT_MISSING\] replication slot 's' does not exist"):
            attempt()
    # The reader of the slot itself reports it.
    with create_copies(db.settings, "s", 1) as copies:
        assert copies == []


def test_nothing_to_peek(db: Database, options: PluginOptions) -> None:
    assert list(peek(db.connection, "s", options)) == []


def test_a_peek_ends_at_the_given_position(db: Database, options: PluginOptions) -> None:
    db.execute("INSERT INTO t VALUES (1)")
    middle = query_wal_head(db.connection)
    db.execute("INSERT INTO t VALUES (2)")
    tags = [data[:1] for _, data in peek(db.connection, "s", options, upto_lsn=middle)]
    assert tags == [b"B", b"R", b"I", b"C"]
    assert [data[:1] for _, data in peek(db.connection, "s", options, upto_messages=1)] == tags


def test_a_peek_that_is_left_early_leaves_a_usable_connection(db: Database, options: PluginOptions) -> None:
    db.execute("INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 20000) AS i")
    with closing(cast(Any, peek(db.connection, "s", options))) as messages:
        next(messages)
    assert db.value("SELECT 1") == 1


def test_values_of_some_size(db: Database, options: PluginOptions) -> None:
    db.execute("INSERT INTO t VALUES (1, repeat('0123456789', 1000000))")
    (row,) = change_rows(peek(db.connection, "s", options), options.decoder())
    assert row["after"] == {"id": "1", "v": "0123456789" * 1_000_000}


def test_batches_of_large_rows_end_early(db: Database, options: PluginOptions) -> None:
    db.execute("INSERT INTO t SELECT i, repeat('x', 1000000) FROM generate_series(1, 80) AS i")
    batches = list(peek_batches(db.connection, "s", options))
    assert [message for batch in batches for message in batch] == list(peek(db.connection, "s", options))
    assert max(batch.size for batch in batches) < 40_000_000


def test_through_a_root_the_key_of_a_row_is_its_partition_s(db18: Database) -> None:
    """The note on K rows: columns that the root's Relation flags come as NULL, others with their values."""
    db18.execute(
        "CREATE TABLE root (id int, part int, code text NOT NULL, PRIMARY KEY (id, part)) PARTITION BY LIST (part)",
        "CREATE TABLE leaf PARTITION OF root FOR VALUES IN (1)",
        "CREATE UNIQUE INDEX of_leaf ON leaf (code)",
        "ALTER TABLE leaf REPLICA IDENTITY USING INDEX of_leaf",
        "CREATE PUBLICATION p FOR TABLE root WITH (publish_via_partition_root = true)",
    )
    create_slot(db18.connection, "s")
    db18.execute("INSERT INTO root VALUES (1, 1, 'x')", "DELETE FROM root")
    options = PluginOptions(publication_names=("p",), proto_version=1)
    decoder = options.decoder()
    messages = [decoder.decode(data) for _, data in peek(db18.connection, "s", options)]
    (deleted,) = (message for message in messages if message.tag == "D")
    assert [column.key for column in decoder.relations[deleted.relation_id].columns] == [True, True, False]
    assert (deleted.old_kind, deleted.old.values) == ("K", (None, None, b"x"))
