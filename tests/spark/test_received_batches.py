"""The receiver makes the same rows in batches as event by event and row by row."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from logicalrep import DecodeError, Decoder, LogicalRepError, Lsn
from logicalrep.arrow import batch_intake
from logicalrep.arrow.batch_intake import WholeTransactions
from logicalrep.arrow.committing import Committing
from logicalrep.captures.capture import Capture, CaptureSession
from logicalrep.spark import feed_schema
from logicalrep.spark.options import read_options
from logicalrep.spark.schemas import arrow_schema, row_form
from logicalrep.spark.typed_tables.table_schema import relation_schema
from logicalrep.spark.walsender.spool import SegmentRange, Spool
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.change_feed import events
from logicalrep.transactions.errors import TransactionError
from logicalrep.transactions.intake import Intake
from logicalrep.transactions.transaction import Event, NonTransactionalMessage, Transaction
from logicalrep_protocol.versions import AnyMessage
from tests.arrow.oracle.feed_builder import batches, signed
from tests.arrow.oracle.reading import builder_for
from tests.protocol.captured import collected, each_selected, selected
from tests.transactions.captured import find
from tests.transactions.captured_server import CapturedServer
from tests.transactions.wire import (
    STOP,
    begin,
    commit,
    insert,
    message,
    relation,
    start,
    stream_commit,
    streamed_insert,
    streamed_relation,
)

CAPTURES = selected()
Messages = Sequence[tuple[int, bytes]]


def opened(path: Path) -> tuple[Messages, CaptureSession]:
    with Capture.open(path) as capture:
        if capture.session.encoding != "utf-8":
            pytest.skip("the source's sessions are UTF-8")
        return list(capture), capture.session


def capture(pattern: str) -> tuple[Messages, CaptureSession]:
    return opened(next(path for path in CAPTURES if path.match(pattern)))


class Reading:
    """A reader that takes messages like a receiver, `size` at a time, and keeps its results.

    Without batches, it makes the rows of each transaction one by one.
    """

    def __init__(self, *, in_batches: bool, schema: Any = None, **options: str) -> None:
        read = read_options(options)
        self.assembler = Assembler(memory_limit=read.memory_limit)
        form = row_form(read, schema or feed_schema())
        self._committing = Committing(form, self.assembler)
        self._builder = builder_for(form)
        self.intake: Intake[WholeTransactions] = self._committing.intake if in_batches else Intake(self.assembler)
        self.rows: list[dict[str, Any]] = []
        self.ends: list[tuple[int, int, int]] = []
        """The position, the end and the number of rows of each transaction with rows."""
        self.batches: list[int] = []
        """The number of rows of each record batch."""
        self.in_batches = 0
        """The number of transactions that came in batches."""

    def take(self, messages: Messages, size: int) -> None:
        for first in range(0, len(messages), size):
            for event in self.intake.take(messages[first : first + size]):
                if isinstance(event, WholeTransactions):
                    self._write(event)
                else:
                    self._write_one_by_one(event)

    def _write(self, event: WholeTransactions) -> None:
        committed = self._committing.committed(event)
        self.in_batches += len(event.positions)
        counts = [0] * len(committed.positions)
        for table_rows in committed.rows:
            rows = _plain(table_rows.batch).to_pylist()
            self.batches.append(len(rows))
            for row, number in zip(rows, committed.numbers(table_rows).tolist(), strict=True):
                commit_lsn = row.get("commit_lsn", row.get("_commit_version"))
                assert commit_lsn in (None, committed.positions[number])
                counts[number] += 1
            self.rows += rows
        for position, end, size, count in zip(
            committed.positions, committed.ends, committed.sizes, counts, strict=True
        ):
            if count:
                assert size > 0
                self.ends.append((int(position), int(end), count))

    def _write_one_by_one(self, event: Event) -> None:
        row_count = len(self.rows)
        for batch in batches((event,), self._builder, rows=1000):
            self.rows += _plain(batch).to_pylist()
        if len(self.rows) > row_count:
            position, end = 0, 0
            if isinstance(event, Transaction):
                position, end = signed(event.commit_lsn), signed(event.end_lsn)
            elif isinstance(event, NonTransactionalMessage):
                position, end = signed(event.message.message_lsn - 1), signed(event.message.message_lsn)
            self.ends.append((position, end, len(self.rows) - row_count))


def _plain(batch: Any) -> Any:
    """Return the batch with numbers instead of dates and timestamps, of which Python's own types hold fewer."""
    numbers = {pa.date32(): pa.int32(), pa.timestamp("us"): pa.int64(), pa.timestamp("us", "UTC"): pa.int64()}
    columns = [column.cast(numbers.get(column.type, column.type)) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def outcome(messages: Messages, decoder: Decoder, size: int, **options: Any) -> tuple[Any, Reading]:
    """Return the results, or the error's class and code."""
    reading = Reading(**options)
    reading.intake.connect(decoder)
    try:
        reading.take(messages, size)
    except LogicalRepError as error:
        return (type(error), error.code), reading
    return (reading.rows, reading.ends), reading


@pytest.mark.slow
@pytest.mark.parametrize("fewest", [1, 16])
@pytest.mark.parametrize("path", each_selected())
def test_batches_and_events_are_equal(path: Path, fewest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_intake, "FEWEST_ROWS", fewest)
    messages, session = opened(path)
    expected, _ = outcome(messages, session.decoder(), 1000, in_batches=False)
    for size, options in ((7, {}), (1000, {"memory_limit": "2k"}), (100_000, {"rows_per_record_batch": "7"})):
        outcome_in_batches, reading = outcome(messages, session.decoder(), size, in_batches=True, **options)
        assert outcome_in_batches == expected
        if isinstance(outcome_in_batches[0], list):
            transactions = {row["commit_lsn"] for row in reading.rows} - {None}
            assert reading.in_batches >= len(transactions)


@pytest.mark.thorough
def test_batches_and_events_are_equal_over_the_whole_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_intake, "FEWEST_ROWS", 1)
    for path in collected():
        with Capture.open(path) as capture:
            session, messages = capture.session, list(capture)
        if session.encoding == "utf-8":
            expected, _ = outcome(messages, session.decoder(), 1000, in_batches=False)
            assert outcome(messages, session.decoder(), 300, in_batches=True)[0] == expected, path


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern", ["pg15/ddl/v1*", "pg16/types/*", "pg18/mixed/*", "pg16/stream/v4*", "pg18/twophase/v4-live*"]
)
def test_the_rows_of_typed_tables_are_equal(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_intake, "FEWEST_ROWS", 1)
    messages, session = capture(pattern)
    last: dict[Any, Any] = {}
    with Assembler() as assembler:
        for event in events(messages, session.decoder(), assembler):
            if isinstance(event, Transaction):
                last |= {change.relation.relation_id: change.relation for change in event.changes if change.relation}
    row_count = 0
    for described in last.values():
        options = {"schema": relation_schema(described), "table": str(described.table), "new_columns": "null"}
        expected, _ = outcome(messages, session.decoder(), 1000, in_batches=False, **options)
        for size in (13, 100_000):
            reached, reading = outcome(messages, session.decoder(), size, in_batches=True, **options)
            if isinstance(expected[0], list):
                in_order = [sorted(rows, key=_place) for rows in (expected[0], reading.rows)]
                assert in_order[0] == in_order[1]
                assert reading.ends == expected[1]
                row_count += len(reading.rows)
            else:
                assert reached == expected
    assert row_count


def _place(row: dict[str, Any]) -> tuple[int, int, bool]:
    return row["_commit_version"], row["_ordinal"], row["_change_type"] == "update_postimage"


@pytest.mark.slow
@pytest.mark.parametrize(
    "relative",
    [
        "pg18/twophase/v4-live.walsender.jsonl.gz",
        pytest.param("pg16/stream_imm/v4-late.sql.jsonl.gz", marks=pytest.mark.thorough),
        "pg15/messages/v1-bin-msg.walsender.jsonl.gz",
        "pg15/ddl/v1.walsender.jsonl.gz",
    ],
)
def test_a_connection_that_breaks_anywhere(relative: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Delivered transactions are not repeated, and partly received ones are."""
    monkeypatch.setattr(batch_intake, "FEWEST_ROWS", 1)
    server = CapturedServer(find(relative))
    messages = list(server.send(0))
    whole, _ = outcome(messages, server.decoder(), 1000, in_batches=False)
    assert whole[0]
    for cut in range(0, len(messages), max(len(messages) // 40, 1)):
        for start_position in (None, 0):
            reading = Reading(in_batches=True)
            reading.intake.connect(server.decoder())
            reading.take(messages[:cut], 11)
            reading.intake.connect(server.decoder())
            position = reading.intake.position.acknowledged if start_position is None else start_position
            reading.take(list(server.send(position)), 50)
            assert (reading.rows, reading.ends) == whole


def built(*messages: AnyMessage) -> Messages:
    return [(5, message.build()) for message in messages]


def small(number: int, rows: int = 1) -> Messages:
    """Return a transaction that commits at 100 times its number; the first one describes the table."""
    described = [relation("id")] if number == 1 else []
    inserts = [insert(f"{number}.{row}") for row in range(rows)]
    return built(begin(number, 100 * number), *described, *inserts, commit(100 * number))


def test_many_transactions_are_one_record_batch_that_a_limit_may_cut(tmp_path: Path) -> None:
    messages = [message for number in range(1, 101) for message in small(number, 3)]
    outcome_in_batches, reading = outcome(messages, Decoder(1), 100_000, in_batches=True)
    assert reading.batches == [300]
    assert reading.in_batches == 100
    assert outcome_in_batches == outcome(messages, Decoder(1), 100_000, in_batches=False)[0]
    assert reading.ends == [(100 * number, 100 * number + 8, 3) for number in range(1, 101)]
    schema = arrow_schema(feed_schema())
    spool = Spool(tmp_path, "s", schema, 1 << 20)
    rows = pa.RecordBatch.from_pylist(reading.rows, schema)
    spool.write(rows, rows.column(schema.get_field_index("commit_lsn")).to_numpy())
    spool.seal()
    [segment] = spool.segments
    for first, last in pairwise((0, 1208, 1308, 5008, 20_000)):
        cut = [
            row
            for batch in SegmentRange(segment.path, Lsn(first), Lsn(last)).read()
            for row in _plain(batch).to_pylist()
        ]
        assert cut == [row for row in reading.rows if first <= row["commit_lsn"] < last]
    spool.close()


def test_a_transaction_that_continues_in_what_is_received_next() -> None:
    messages = [message for number in range(1, 60) for message in small(number, 4)]
    expected = outcome(messages, Decoder(1), 1000, in_batches=False)[0]
    for size in range(150, 180):
        outcome_in_batches, reading = outcome(messages, Decoder(1), size, in_batches=True)
        assert outcome_in_batches == expected
        assert reading.in_batches >= 40


def test_a_stream_that_knows_an_older_form_of_a_table_commits_after_a_newer_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch_intake, "FEWEST_ROWS", 1)
    messages = [
        *built(begin(1, 100), relation("id", "old"), insert("1", "a"), commit(100)),
        *built(start(7, first=True), streamed_relation(7, "id", "old"), streamed_insert(7, "2", "b"), STOP),
        *built(begin(2, 200), relation("id", "new"), insert("3", "c"), commit(200)),
        *built(stream_commit(7, 300)),
        *built(begin(3, 400), insert("4", "d"), commit(400)),
        *built(start(8, first=True), streamed_relation(8, "id", "newest"), streamed_insert(8, "5", "e"), STOP),
        *built(stream_commit(8, 500)),
        *built(begin(4, 600), insert("6", "f"), commit(600)),
    ]
    for size in range(1, len(messages) + 1):
        (rows, _), reading = outcome(messages, Decoder(2), size, in_batches=True)
        assert [dict(row["after"]) for row in rows] == [
            {"id": "1", "old": "a"},
            {"id": "3", "new": "c"},
            {"id": "2", "old": "b"},
            {"id": "4", "new": "d"},
            {"id": "5", "newest": "e"},
            {"id": "6", "newest": "f"},
        ]
        assert reading.in_batches == 6


def test_keepalives_within_a_transaction_do_not_move_the_position() -> None:
    reading = Reading(in_batches=True)
    reading.intake.connect(Decoder(1))
    messages = small(1, 100)
    reading.take(messages[:50], 1000)
    reading.intake.take_keepalive(Lsn(5000))
    assert reading.intake.position.delivered == 0
    reading.take(messages[50:], 1000)
    assert reading.intake.position.delivered == 108
    reading.intake.take_keepalive(Lsn(5000))
    assert reading.intake.position.delivered == 5000


def test_a_commit_record_that_begins_where_a_message_ends() -> None:
    """The message may end a batch, so that the transaction is in the next one."""
    committing = Committing(row_form(read_options({"messages": "true"}), feed_schema()), Assembler())
    committing.intake.connect(Decoder(1))
    alone, transaction = (
        committing.committed(event)
        for part in (built(message(b"x", lsn=100, transactional=False)), small(1))
        for event in committing.intake.take(part)
    )
    assert alone.positions[0] < alone.ends[0] <= transaction.positions[0] < transaction.ends[0]


@pytest.mark.slow
def test_a_large_transaction_is_not_kept_in_memory(tmp_path: Path) -> None:
    """The transaction is sent whole, and is many times as large as the limit."""
    options = read_options({"memory_limit": "1m", "rows_per_record_batch": "500"})
    assembler = Assembler(memory_limit=options.memory_limit, directory=tmp_path)
    committing = Committing(row_form(options, feed_schema()), assembler)
    intake = committing.intake
    intake.connect(Decoder(1))
    assert not list(intake.take(built(begin(1, 100), relation("id", "v"))))
    text = "x" * 1000
    parts = 100
    gc.collect()
    arrow = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        for part in range(parts):
            assert not list(intake.take(built(*(insert(str(part), text) for _ in range(500)))))
            assert pa.total_allocated_bytes() - arrow < 4 << 20
        rows = 0
        for event in intake.take(built(commit(100))):
            committed = committing.committed(event)
            for batch in committed.batches:
                rows += batch.num_rows
                assert batch.num_rows <= 500
                assert pa.total_allocated_bytes() - arrow < 48 << 20
            assert committed.sizes[0] > parts * 500 * len(text)
        assert rows == parts * 500
        assert tracemalloc.get_traced_memory()[1] < 48 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "messages",
    [
        built(begin(1, 100), relation("id"), *[insert(str(number)) for number in range(120)], commit(99)),
        [*built(begin(1, 100), relation("id"), insert("1"), commit(99)), *small(2, 120)],
        [*small(1, 120), *built(begin(2, 200), insert("1"), begin(2, 200), insert("2"), commit(200)), *small(3)],
        [*small(1, 120), *built(insert("1"), commit(200)), *small(3, 120)],
        [*small(1, 120), *built(commit(200)), *small(3, 120)],
        built(begin(1, 100), relation("id"), *[insert(str(number)) for number in range(120)], begin(2, 200)),
        built(begin(1, 100), *[insert(str(number)) for number in range(120)], commit(100)),
        built(begin(1, 100), relation("id"), *[insert("1", "2") for _ in range(120)], commit(100)),
        built(begin(1, 100), relation("id"), *[insert(str(number)) for number in range(120)], STOP),
        [*small(1, 120), (5, b"")],
        [*small(1, 120), (5, b"I")],
        [*small(1, 120), (5, b"C" + bytes(25))],
        [*small(1, 120)[:-1], (5, b"C\0")],
        [*small(1, 120), (5, b"\xff")],
    ],
)
def test_what_is_wrong_is_an_error_in_batches_too(messages: Messages) -> None:
    for in_batches in (False, True):
        reading = Reading(in_batches=in_batches)
        reading.intake.connect(Decoder(2))
        with pytest.raises((DecodeError, TransactionError)):
            reading.take(messages, 1000)
