"""Rows from COPY as messages: each value is the server's, whatever characters it has."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
from psycopg import sql

from logicalrep import Lsn, Oid, v1
from logicalrep.arrow.copy_rows import inserts
from logicalrep.arrow.message_batch import MessageBatch
from logicalrep.postgres.copy_stream import start_copy
from logicalrep.transactions.relations import TableDescription
from logicalrep_protocol.v1 import NullValue, ReplicaIdentity, Text, TupleData
from tests.postgres.servers import Database

LSN = Lsn((1 << 63) + 5)
_LETTERS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def messages_of(data: bytes, columns: int) -> list[tuple[int, bytes]]:
    """Return the expected messages for rows from COPY, value by value as its documentation describes."""
    *rows, end = data.split(b"\n")
    assert not end
    return [(LSN, _insert(row.split(b"\t"), columns)) for row in rows]


def _insert(values: list[bytes], columns: int) -> bytes:
    assert len(values) == columns
    new = TupleData.of(*(NullValue() if value == rb"\N" else Text(_unescaped(value)) for value in values))
    return v1.Insert(relation_id=Oid(4_000_000_000), new=new).build()


def _unescaped(value: bytes) -> bytes:
    """Return a value without its backslashes: one stands for the character behind it, except for some letters."""
    return re.sub(rb"\\(.)", lambda match: _LETTERS.get(match[1], match[1]), value, flags=re.DOTALL)


def made(data: bytes, columns: int) -> MessageBatch:
    """Return the batch that is made of rows in one piece; no rows are no piece."""
    (batch,) = inserts(iter([data]), relation(columns), LSN)
    return batch


def relation(columns: int) -> TableDescription:
    return TableDescription(
        relation_id=Oid(4_000_000_000),
        schema="public",
        name="t",
        replica_identity=ReplicaIdentity.DEFAULT,
        columns=tuple(v1.Column(flags=0, name=f"c{at}", type_id=Oid(25), type_modifier=-1) for at in range(columns)),
        types=(None,) * columns,
    )


def values(batch: MessageBatch) -> list[tuple[bytes | None, ...]]:
    rows = []
    for lsn, data in batch:
        message = v1.parse(data)
        assert isinstance(message, v1.Insert)
        assert (lsn, message.relation_id, chr(data[0])) == (LSN, 4_000_000_000, "I")
        rows.append(tuple(message.new.values))
    assert batch.tags.tobytes() == b"I" * len(batch)
    return rows


def test_what_the_server_has(db: Database) -> None:
    chance = random.Random(7)
    texts = ["", "N", "\\N", "\\", "\\\\", "\t", "\n", "\r\n", "\\.", "\\t", "\x01\b\f\v\x7f", "a\tb\\c\nd", "☃" * 40]
    texts += ["".join(chance.choices("ab\\\n\tNt\r☃", k=chance.choice((1, 5, 33, 200)))) for _ in range(3000)]
    rows = [tuple(None if chance.random() < 0.2 else chance.choice(texts) for _ in range(3)) for _ in range(12_000)]
    rows += [(text, None, text) for text in texts]
    rows.append(("x" * (5 << 20), "\t" * (1 << 20), ""))
    db.execute("CREATE TABLE t (a text, b text, c text)")
    with db.connection.cursor().copy("COPY t FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    copied = start_copy(db.connection, sql.SQL("COPY (SELECT a, b, c FROM t) TO STDOUT").format())
    batches = list(inserts(copied, relation(3), LSN))
    assert len(batches) == 2
    row_counts = Counter(row for batch in batches for row in values(batch))
    assert row_counts == Counter(tuple(None if text is None else text.encode() for text in row) for row in rows)


def test_few_columns_and_many() -> None:
    assert values(made(b"\\N\n\n1\n", 1)) == [(None,), (b"",), (b"1",)]
    many = [b"%d" % number if number % 3 else None for number in range(1600)]
    row = b"\t".join(rb"\N" if value is None else value for value in many) + b"\n"
    assert values(made(row * 3, 1600)) == [tuple(many)] * 3
    assert list(inserts(iter(()), relation(2), LSN)) == []


@pytest.mark.parametrize("columns", [1, 2, 7])
def test_rows_are_what_they_are_value_by_value(columns: int) -> None:
    """Try values of every length around those that are copied at once, with escapes that a server does not send."""
    chance = random.Random(columns)
    pieces = [b"a", b"bcd", b"N", rb"\N", rb"\\", rb"\.", rb"\x41", b"\\", "☃".encode()]
    pieces += [b"\\" + letter for letter in _LETTERS]
    lengths = (0, 0, 1, 1, 2, 15, 16, 17, 31, 32, 33, 100)
    for count in (1, 2, 300):
        values = [b"".join(chance.choices(pieces, k=chance.choice(lengths))) for _ in range(count * columns)]
        rows = [values[at : at + columns] for at in range(0, len(values), columns)]
        data = b"".join(b"\t".join(row) + b"\n" for row in rows)
        assert list(made(data, columns)) == messages_of(data, columns)


@pytest.mark.parametrize("data", [b"1\n", b"1\t2\t3\n", b"1\t2\n3\n", b"1\t2\n3\n4\t5\n", b"\n"])
def test_rows_of_other_columns(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"the server did not send rows of the columns of public\.t"):
        made(data, 2)


@pytest.mark.parametrize("data", [b"1\t2", b"1\t2\n3", b"1\t2\n3\t", b"1\t2\n3\t4"])
def test_rows_without_an_end(data: bytes) -> None:
    with pytest.raises(ValueError, match="did not send rows"):
        made(data, 2)
