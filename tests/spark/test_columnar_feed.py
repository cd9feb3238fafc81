"""The feed in columns equals the feed row by row, for all captures and for batches of any size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from logicalrep import Decoder, LogicalRepError, Lsn, Oid, TimestampTz, TransactionId, v1, v2
from logicalrep.arrow import batch_intake
from logicalrep.arrow.message_batch import MessageBatch, message_batches_of
from logicalrep.arrow.reading import committed_batches
from logicalrep.arrow.table.feed_decoder import COLUMNS, OPS
from logicalrep.arrow.table.rows import SchemaMismatchError
from logicalrep.captures.capture import Capture
from logicalrep.spark import feed_schema
from logicalrep.spark.options import read_options
from logicalrep.spark.schemas import row_form
from logicalrep.spark.typed_tables.table_schema import relation_schema
from logicalrep.spark.typed_tables.typed_feed import FeedTable
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.change_feed import events
from logicalrep.transactions.errors import TransactionError
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.transaction import Transaction
from logicalrep_protocol.v1 import AnyMessage, NullValue, ReplicaIdentity, Text, TupleData
from logicalrep_runtime.errors import DecodeError
from tests.arrow.oracle.reading import row_by_row
from tests.protocol.captured import each_selected, selected

CAPTURES = selected()

Failure = tuple[type[LogicalRepError], str]

in_columns = partial(committed_batches, is_capture=True)


def rows(path: Path, read: Any, size: int, **given: str) -> list[dict[str, Any]] | Failure:
    """Return the rows, or the error's class and code."""
    options = read_options({"rows_per_record_batch": str(size), **given})
    with Capture.open(path) as capture:
        try:
            messages = capture.batches() if read is in_columns else capture
            batches = read(messages, capture.session.decoder(), row_form(options, feed_schema()))
            return [row for batch in batches for row in checked(batch, size).to_pylist()]
        except LogicalRepError as error:
            return type(error), error.code


def typed_rows(
    path: Path, read: Any, size: int, table: TableDescription, texts: tuple[str, ...] = ()
) -> list[str] | Failure:
    """Return what `rows` returns, for a typed table; as text, because Python's types cannot hold all values."""
    given = {"rows_per_record_batch": str(size), "table": str(table.table), "text_columns": ",".join(texts)}
    with Capture.open(path) as capture:
        messages = capture.batches() if read is in_columns else capture
        schema = relation_schema(table, texts)
        batches = read(messages, capture.session.decoder(), row_form(read_options(given), schema))
        try:
            return [str(row) for batch in batches for row in numbered(checked(batch, size)).to_pylist()]
        except LogicalRepError as error:
            return type(error), error.code


def numbered(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with numbers instead of its dates and timestamps."""
    arrays = []
    for column in batch.columns:
        type_ = {pa.types.is_date: pa.int32(), pa.types.is_timestamp: pa.int64()}
        arrays.append(next((column.view(number) for is_one, number in type_.items() if is_one(column.type)), column))
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def checked(batch: pa.RecordBatch, size: int) -> pa.RecordBatch:
    """Return the batch after checking its size, and its columns that are not nullable, on which Spark relies."""
    assert 0 < batch.num_rows <= size
    for field, column in zip(batch.schema, batch.columns, strict=True):
        assert field.nullable or not column.null_count
        if pa.types.is_list(field.type):
            assert field.type.value_field.nullable or not column.flatten().null_count
    return batch


def _given(messages: list[tuple[Any, bytes]], read: Any) -> Iterator[tuple[int, bytes]] | Iterator[MessageBatch]:
    return message_batches_of(messages) if read is in_columns else iter(messages)


@pytest.mark.slow
@pytest.mark.parametrize("path", each_selected())
def test_the_two_ways_are_equal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = rows(path, row_by_row, 1000)
    for size in (1000, 100_000):
        assert rows(path, in_columns, size) == expected
    monkeypatch.setattr(batch_intake, "FEWEST_ROWS", 1)
    assert rows(path, in_columns, 7) == expected
    assert rows(path, in_columns, 100, relations="true") == rows(path, row_by_row, 1000, relations="true")


@pytest.mark.slow
@pytest.mark.parametrize("path", each_selected())
def test_the_two_ways_are_equal_for_a_table(path: Path) -> None:
    for table in tables(path):
        expected = typed_rows(path, row_by_row, 1000, table)
        assert typed_rows(path, in_columns, 1000, table) == expected
        # An update with its old row is two rows.
        assert typed_rows(path, row_by_row, 1, table) == expected
        texts = typed_rows(path, row_by_row, 1000, table, table.names)
        assert typed_rows(path, in_columns, 1000, table, table.names) == texts


def typed_rows_of_the_feed(
    path: Path, size: int, table: TableDescription, texts: tuple[str, ...] = ()
) -> list[str] | Failure:
    """Return what `typed_rows` returns, from the rows of the feed."""
    reader = FeedTable(table, texts, allows_missing=False)
    given = {"rows_per_record_batch": str(size), "tables": str(table.table)}
    row_texts = []
    with Capture.open(path) as capture:
        messages = in_columns(
            capture.batches(), capture.session.decoder(), row_form(read_options(given), feed_schema())
        )
        try:
            for batch in messages:
                # The arrays are slices of longer ones, as they may be in batches.
                longer = pa.concat_batches([batch, batch, batch]).slice(batch.num_rows, batch.num_rows)
                is_ours = pc.and_(pc.equal(longer["table"], table.name), pc.is_in(longer["op"], pa.array(OPS)))
                for typed in reader.batches([longer.filter(is_ours).select(COLUMNS)]):
                    row_texts += [str(row) for row in numbered(typed).to_pylist()]
        except LogicalRepError as error:
            return type(error), error.code
    return row_texts


def tables(path: Path) -> list[TableDescription]:
    """Return the tables of a capture with their last descriptions."""
    with Capture.open(path) as capture, Assembler() as assembler:
        for event in events(capture, capture.session.decoder(), assembler):
            if isinstance(event, Transaction):
                event.close()
        return list(assembler.relations)


@pytest.mark.slow
@pytest.mark.parametrize("path", each_selected())
def test_the_rows_of_the_feed_make_those_of_a_table(path: Path) -> None:
    for table in tables(path):
        for texts in ((), table.names):
            expected = typed_rows(path, in_columns, 1000, table, texts)
            feed_rows = typed_rows_of_the_feed(path, 1000, table, texts)
            # A table with changed columns may still have the same names and types.
            assert feed_rows == expected or (
                expected == (SchemaMismatchError, "SCHEMA_CHANGED") and isinstance(feed_rows, list)
            )


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["0", "2k", "64m"])
def test_a_capture_that_ends_anywhere(limit: str) -> None:
    """Uncommitted changes are left out, however little memory a transaction may take."""
    path = next(path for path in CAPTURES if path.match("pg15/ddl/v1*"))
    with Capture.open(path) as capture:
        messages, session = list(capture), capture.session
    options = read_options({"rows_per_record_batch": "7", "memory_limit": limit})
    for stop in range(0, len(messages), 5):
        feeds = []
        for read in (row_by_row, in_columns):
            batches = read(_given(messages[:stop], read), session.decoder(), row_form(options, feed_schema()))
            feeds.append([row for batch in batches for row in batch.to_pylist()])
        assert feeds[0] == feeds[1]


def test_a_part_of_a_slot_is_the_same_part() -> None:
    path = next(path for path in CAPTURES if path.match("pg18/types/*.jsonl.gz") or path.match("pg15/ddl/v1*"))
    options = read_options({"rows_per_record_batch": "50"})
    with Capture.open(path) as capture:
        messages, session = list(capture), capture.session
    whole = rows(path, row_by_row, 1000)
    assert isinstance(whole, list)
    commits = sorted({row["commit_lsn"] for row in whole})
    start, end = commits[len(commits) // 3], commits[2 * len(commits) // 3]
    expected = [row for row in whole if start <= row["commit_lsn"] < end]
    assert expected
    for read in (in_columns, row_by_row):
        batches = read(
            _given(messages, read), session.decoder(), row_form(options, feed_schema()), start=start, end=end
        )
        assert [row for batch in batches for row in batch.to_pylist()] == expected


def test_a_table_that_is_renamed_after_it_was_truncated() -> None:
    """Both are in one batch, where the Truncate has the table's earlier name."""
    messages = _session(
        _described("emptied", "id", "a"),
        v1.Truncate(options=0, relation_ids=(Oid(7),)),
        _described("renamed", "id", "b"),
        v1.Insert(relation_id=Oid(7), new=TupleData.of(Text(b"1"), Text(b"2"))),
        v1.Truncate(options=0, relation_ids=(Oid(7),)),
    )
    for read in (row_by_row, in_columns):
        options = read_options({"tables": "emptied, renamed"})
        batches = read(_given(messages, read), Decoder(1), row_form(options, feed_schema()))
        changes = [(row["op"], row["table"], row["key"]) for batch in batches for row in batch.to_pylist()]
        assert changes == [
            ("truncate", "emptied", ["id", "a"]),
            ("insert", "renamed", ["id", "b"]),
            ("truncate", "renamed", ["id", "b"]),
        ]
    for name, ordinals in (("emptied", [0]), ("renamed", [1, 2])):
        schema = relation_schema(_relation(name, "id", "a" if name == "emptied" else "b"))
        options = read_options({"table": name})
        for read in (row_by_row, in_columns):
            batches = read(_given(messages, read), Decoder(1), row_form(options, schema))
            assert [row["_ordinal"] for batch in batches for row in batch.to_pylist()] == ordinals


@pytest.mark.parametrize("options", [{}, {"table": "t"}, {"rows_per_record_batch": "1"}])
def test_stream_aborts_without_streaming(options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL 18 sends Stream Aborts between the transactions of sessions without streaming: they change nothing."""
    transaction = _session(
        _described("t", "a"), *(v1.Insert(relation_id=Oid(7), new=TupleData.of(Text(b"1"))) for _ in range(3))
    )
    abort = (Lsn(0), v2.StreamAbort(xid=TransactionId(8), subxid=TransactionId(9)).build())
    session = [abort, abort, *transaction, abort, *transaction, *transaction]
    schema = relation_schema(_relation("t", "a")) if "table" in options else feed_schema()
    given: Any = row_form(read_options(options), schema)
    feeds: list[Any] = []
    for read in (row_by_row, in_columns):
        with monkeypatch.context() as patched:
            patched.setattr("logicalrep.arrow.reading.assembled", lambda *_: ())
            batches = read(_given(session, read), Decoder(1), given)
            feeds.append([row for batch in batches for row in batch.to_pylist()])
    assert feeds[0] == feeds[1]
    assert len(feeds[0]) == 9
    for broken in (abort[1][:-1], abort[1] + b"\0"):
        for read in (row_by_row, in_columns):
            with pytest.raises(DecodeError, match=r"^Stream Abort: "):
                list(read(_given([*transaction, (Lsn(0), broken)], read), Decoder(1), given))
    for read in (row_by_row, in_columns):
        with pytest.raises((DecodeError, TransactionError)):
            list(read(_given([*transaction[:2], abort], read), Decoder(1), given))


def test_types_that_are_one_in_spark() -> None:
    """A column may change between such types in the middle of a record batch."""
    number = "6f1b04b1-0000-0000-0000-00000000000a"
    values = {2950: number, 25: "text", 1186: "1 day 02:03:04", 3802: '{"a": 1}', 1042: "padded  "}
    messages: list[AnyMessage] = []
    for type_id, value in values.items():
        messages.append(_described("t", "a", type_id=type_id))
        messages.append(v1.Insert(relation_id=Oid(7), new=TupleData.of(Text(value.encode()))))
    # The table has a column that the stream's schema lacks, but no row.
    messages += [_described("t", "a", "b"), v1.Truncate(options=0, relation_ids=(Oid(7),))]
    session, options = _session(*messages), read_options({"table": "t"})
    for read in (row_by_row, in_columns):
        batches = read(_given(session, read), Decoder(1), row_form(options, relation_schema(_relation("t", "a"))))
        feed_values = [row["a"] for batch in batches for row in batch.to_pylist()]
        assert feed_values == [*values.values(), None]


def test_a_key_whose_columns_are_not_flagged() -> None:
    """Such rows come from a partition whose replica identity differs from its root's."""
    described = _described("t", "a", "b")
    columns = tuple(replace(column, flags=int(column.name == "a")) for column in described.columns)
    null, of_table = NullValue(), _relation("t", "a", "b")
    messages = _session(
        replace(described, columns=columns),
        v1.Delete(relation_id=Oid(7), old_kind="K", old=TupleData.of(null, Text(b"20"))),
        v1.Delete(relation_id=Oid(7), old_kind="K", old=TupleData.of(Text(b"1"), null)),
        v1.Update(
            relation_id=Oid(7), old_kind="K", old=TupleData.of(null, Text(b"30")),
            new=TupleData.of(Text(b"2"), Text(b"31")),
        ),
    )  # fmt: skip
    for read in (row_by_row, in_columns):
        form = row_form(read_options({"table": "t"}), relation_schema(of_table))
        batches = read(_given(messages, read), Decoder(1), form)
        keys = [(row["a"], row["b"]) for batch in batches for row in batch.to_pylist()]
        assert keys == [(None, "20"), ("1", None), (None, "30"), ("2", "31")]


@pytest.mark.parametrize("table", [None, "emptied"])
def test_a_truncate_of_a_table_that_was_not_described(table: str | None) -> None:
    messages = _session(v1.Truncate(options=0, relation_ids=(Oid(7),)))
    options, schema = read_options({}), feed_schema()
    if table is not None:
        options, schema = read_options({"table": table}), relation_schema(_relation(table, "id"))
    for read in (row_by_row, in_columns):
        with pytest.raises((TransactionError, DecodeError), match=r"Relation has described"):
            list(read(_given(messages, read), Decoder(1), row_form(options, schema)))


def test_two_readers_in_turns() -> None:
    """Logical messages split a chunk into several record batches, between which another reader runs."""
    note = v1.Message(flags=1, message_lsn=Lsn(100), prefix="p", content=b"note")

    def reader(table: str) -> Iterator[list[dict[str, Any]]]:
        values = [(f"{table}{number}".encode(), table.encode() * number) for number in range(200)]
        inserts = [v1.Insert(relation_id=Oid(7), new=TupleData.of(*map(Text, value))) for value in values]
        messages = _session(_described(table, "id", "v"), *inserts[:100], note, *inserts[100:])
        for batch in in_columns(message_batches_of(messages), Decoder(1), row_form(read_options({}), feed_schema())):
            yield [{"table": row["table"], **dict(row["after"])} for row in batch.to_pylist()]

    alone = [list(reader(table)) for table in ("a", "other")]
    assert [len(part) for part in alone[0]] == [100, 1, 100]
    assert alone[0][2][-1] == {"table": "a", "id": "a199", "v": "a" * 199}
    in_turns = zip(reader("a"), reader("other"), strict=True)
    assert list(map(list, zip(*in_turns, strict=True))) == alone


def _session(*messages: Any) -> list[tuple[Any, bytes]]:
    """Return the messages of one transaction."""
    lsn, moment = Lsn(100), TimestampTz(0)
    begin = v1.Begin(final_lsn=lsn, commit_timestamp=moment, xid=TransactionId(5))
    commit = v1.Commit(commit_lsn=lsn, end_lsn=Lsn(200), commit_timestamp=moment)
    return [(lsn, message.build()) for message in (begin, *messages, commit)]


def _described(name: str, *columns: str, type_id: int = 25) -> v1.Relation:
    """Return the Relation of a table with these columns, all of one type."""
    of_table = tuple(v1.Column(flags=1, name=column, type_id=Oid(type_id), type_modifier=-1) for column in columns)
    return v1.Relation(
        relation_id=Oid(7), namespace="public", name=name, replica_identity=ReplicaIdentity.DEFAULT, columns=of_table
    )


def _relation(name: str, *columns: str) -> TableDescription:
    described = _described(name, *columns)
    return TableDescription(
        relation_id=described.relation_id,
        schema=described.namespace,
        name=described.name,
        replica_identity=described.replica_identity,
        columns=described.columns,
        types=(None,) * len(columns),
    )
