"""The rows of one message by column name equal the rows of the change feed, and are never guessed."""

from __future__ import annotations

from typing import Any

import pytest

from logicalrep import Oid, v1
from logicalrep.captures.capture import Capture
from logicalrep.transactions import TransactionError, named_rows
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.transaction import Transaction
from logicalrep_protocol.v1 import NullValue, Text
from logicalrep_protocol.versions import Delete, Insert, Update
from tests.transactions.captured import find
from tests.transactions.wire import TABLE, U, insert, relation, row

ONE, TWO, NULL = Text(b"1"), Text(b"2"), NullValue()
UPDATE = {"relation_id": TABLE, "new": row("1", U)}


@pytest.mark.parametrize(
    ("message", "old_row", "new_row", "unchanged"),
    [
        (insert("1", None), None, {"id": ONE, "v": NULL}, ()),
        (insert("1", U), None, {"id": ONE}, ("v",)),
        (v1.Update(**UPDATE), None, {"id": ONE}, ("v",)),
        (v1.Update(old_kind="K", old=row("2", None), **UPDATE), {"id": TWO}, {"id": ONE}, ("v",)),
        (
            v1.Update(old_kind="O", old=row("2", "2"), **UPDATE),
            {"id": TWO, "v": TWO},
            {"id": ONE, "v": TWO},
            (),
        ),
        (v1.Delete(relation_id=TABLE, old_kind="K", old=row("2", None)), {"id": TWO}, None, ()),
        (v1.Delete(relation_id=TABLE, old_kind="O", old=row("2", None)), {"id": TWO, "v": NULL}, None, ()),
    ],
)
def test_the_rows_of_a_message(message: Insert, old_row: Any, new_row: Any, unchanged: Any) -> None:
    assert named_rows(message, {TABLE: relation("id", "v")}) == (old_row, new_row, unchanged)


def test_named_rows_equal_the_changes_of_transactions() -> None:
    changes = rows = 0
    with Capture.open(find("pg18/mixed/v1-late-bin.sql.jsonl.gz")) as capture:
        decoder = capture.session.decoder()
        relations: list[Any] = []
        with Assembler() as assembler:
            for lsn, data in capture:
                message = decoder.decode(data)
                if isinstance(message, Insert | Update | Delete):
                    relations.append(named_rows(message, decoder.relations))
                    rows += 1
                for event in assembler.feed(message, lsn):
                    for change in event.changes if isinstance(event, Transaction) else ():
                        if isinstance(change.message, Insert | Update | Delete):
                            assert relations.pop(0) == (change.before, change.after, change.unchanged)
                            changes += 1
    assert changes == rows > 20


@pytest.mark.parametrize(
    ("message", "relations", "description"),
    [
        (insert("1"), {}, "Insert: no Relation has described table 16400"),
        (
            insert("1"),
            {TABLE: relation("id", "v")},
            "Insert: has 1 values where the Relation of s.t has 2 columns",
        ),
        (
            v1.Delete(relation_id=Oid(TABLE), old_kind="K", old=row("1", "2", "3")),
            {TABLE: relation("id", "v", schema="")},
            "Delete: has 3 values where the Relation of pg_catalog.t has 2 columns; "
            "PostgreSQL 15.0 and 15.1 do that for a published column list, 15.2 does not",
        ),
    ],
)
def test_a_row_that_does_not_fit_is_refused(message: Insert, relations: Any, description: str) -> None:
    with pytest.raises(TransactionError) as raised:
        named_rows(message, relations)
    assert raised.value.description == description
