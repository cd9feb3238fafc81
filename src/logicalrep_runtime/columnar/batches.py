"""Decoding of batches of raw messages to batches of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, Literal, Self, TypeVar

import numpy as np
import pyarrow as pa

from logicalrep_runtime.columnar.arrow import ArrayBuilder, BatchForm, Values, schema_of
from logicalrep_runtime.columnar.locate import gathered, items, locate
from logicalrep_runtime.columnar.located import (
    REFUSED_BIT,
    Bytes,
    Cells,
    CopiedCells,
    Int64s,
    Ints,
    Located,
    Spans,
)
from logicalrep_runtime.columnar.plan import Plan, PlanColumn
from logicalrep_runtime.columnar.session import ColumnarSession, bits_of, facts_of, parser_of
from logicalrep_runtime.columnar.texts import are_valid
from logicalrep_runtime.errors import DecodeError
from logicalrep_runtime.layout_walk import hex_of, walk

_INT32 = 2**31 - 1


_Session = TypeVar("_Session", bound=ColumnarSession)


class RowDecodeError(DecodeError):
    """The DecodeError of a message in a batch: the error of `parse`, and the message's row."""

    def __init__(self, message: str, field: str, offset: int, expected: str, found: str, row: int) -> None:
        super().__init__(message, field, offset, expected, found)
        self.args = (*self.args, row)
        self.row = row
        """The index of the message in its batch."""
        self.add_note(f"in row {row} of the batch")


def batch_schema(
    session: ColumnarSession,
    *,
    errors: Literal["raise", "column"] = "raise",
    values: Values = "binary",
    for_spark: bool = False,
    large: bool = False,
) -> pa.Schema:
    """Return the schema of the batches that `decode_batch` returns for the same arguments.

    Example:
        >>> batch_schema(Session(version=1)).names[0]
        'tag'
    """
    return schema_of(session.plan, BatchForm(values, large, for_spark, errors == "column"))


def decode_batch(
    messages: pa.Array | pa.ChunkedArray,
    session: _Session,
    *,
    errors: Literal["raise", "column"] = "raise",
    values: Values = "binary",
    for_spark: bool = False,
    large: bool | None = None,
) -> tuple[pa.RecordBatch, _Session]:
    """Decode whole messages, in order, to one row each.

    A row has the message's `tag` and every field that `parse` makes an attribute of, under the field's name; the
    columns of other messages are null. One character (`tag`, `old_kind`, `replica_identity`) is a string; an OID or
    transaction id is uint32, an LSN uint64, a time timestamp[us, UTC] (times after the year 294247 wrap around 64
    bits); texts are strings. The values of a row, `new` and `old`, are list<struct<kind: int8, value: binary>>: the
    kind is the protocol's byte, `ord("t")` for example, and the value is null for NULL and for an unchanged TOASTed
    value. `columns` of a Relation are list<struct<flags, name, type_id, type_modifier>>, `relation_ids` of a Truncate
    list<uint32>.

    Args:
        messages: a binary or large_binary array without nulls, which may be a slice or chunked.
        session: the session's state where the batch begins.
        errors: the treatment of a message that `parse` refuses. `raise` raises its DecodeError, with its row. `column`
            leaves the row null and adds two columns, null elsewhere: `error`, the DecodeError as a string, and `data`,
            the bytes. The message does not change the session's state.
        values: `string` makes the values of rows strings; a value that is not UTF-8, or in binary format, is an error
            of its row.
        for_spark: use signed integers only: int64 for an OID or transaction id, int16 for a byte, and int64 with the
            same bits for an LSN.
        large: use offsets of 64 bits in lists, strings and binaries; None does so for more than 2 GiB of messages.

    Returns:
        A batch of `batch_schema(...)`, and the session's state after the last message.

    Raises:
        DecodeError: a RowDecodeError, whose `row` is the first row with an invalid message.
        TypeError: `messages` is not an array of bytes.
        ValueError: a message is null, or an argument has an unknown value.

    Example:
        >>> batch, session = decode_batch(pa.array(messages, pa.binary()), Session(version=4))
        >>> batch, session = decode_batch(pa.array(more_messages, pa.binary()), session)
    """
    if errors not in ("raise", "column"):
        raise ValueError(f"errors must be 'raise' or 'column', not {errors!r}")
    if values not in ("binary", "string"):
        raise ValueError(f"values must be 'binary' or 'string', not {values!r}")
    if values == "string" and session.encoding != "utf-8":
        raise ValueError(f"values as strings need a session in UTF-8, not {session.encoding}")
    array = _contiguous(messages)
    data, offsets = _buffers(array)
    is_large = int(offsets[-1]) - int(offsets[0]) > _INT32
    if large is False and is_large:
        raise ValueError("more than 2 GiB of messages need large types")
    style = BatchForm(values, is_large if large is None else large, for_spark, errors == "column")
    return _Batch(session, style, array, data, offsets).decode()


@dataclass(frozen=True, slots=True)
class LocatedBatch(Generic[_Session]):
    """A batch whose values were located; on exit it returns the positions' memory for other batches."""

    data: Bytes
    """The bytes of the messages, with `offsets`. Positions of values refer to `located.data`."""
    offsets: Int64s
    located: Located
    """The positions of all values. Positions of texts, lists and cells are valid until the context exits."""
    columns: tuple[PlanColumn, ...]
    numbers: Mapping[str, int]
    session: _Session

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.located.give_back()


def locate_batch(messages: pa.Array | pa.ChunkedArray, session: _Session) -> LocatedBatch[_Session]:
    """Locate all values of a batch as `decode_batch` does, with the same errors, and make no arrays.

    Example:
        >>> located = locate_batch(pa.array(messages, pa.binary()), Session(version=1))
        >>> located.session  # for the next batch
    """
    array = _contiguous(messages)
    data, offsets = _buffers(array)
    batch = _Batch(session, BatchForm("binary", False, False, False), array, data, offsets)
    located, _ = batch.walk(lambda _: ([], set()), copies=False)
    return LocatedBatch(data, offsets, located, batch.plan.columns, _numbers(batch.plan), batch.after(located))


@cache
def _numbers(plan: Plan) -> Mapping[str, int]:
    return {plan.columns[number].name: number for number in plan.order}


def _contiguous(messages: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(messages, pa.ChunkedArray):
        if messages.num_chunks == 1:
            return _contiguous(messages.chunk(0))
        if messages.type == pa.binary() and messages.nbytes > _INT32:
            messages = messages.cast(pa.large_binary())
        return _contiguous(pa.concat_arrays(messages.chunks) if messages.num_chunks else pa.array([], messages.type))
    if not isinstance(messages, pa.Array) or messages.type not in (pa.binary(), pa.large_binary()):
        type_ = messages.type if isinstance(messages, pa.Array) else type(messages).__name__
        raise TypeError(f"messages must be a binary or large_binary array, not {type_}")
    if messages.null_count:
        raise ValueError(f"message {messages.is_null().index(True).as_py()} is null")
    return messages


def _buffers(array: pa.Array) -> tuple[Bytes, Int64s]:
    _, offsets, data = array.buffers()
    if offsets is None:
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    is_large = array.type == pa.large_binary()
    whole: Ints = np.frombuffer(offsets, np.int64 if is_large else np.int32)
    places = whole[array.offset : array.offset + len(array) + 1].astype(np.int64, copy=False)
    if not len(places):
        places = np.zeros(1, np.int64)
    characters = np.frombuffer(b"" if data is None else data, np.uint8)
    # Loops are compiled for messages that cannot be written to, as most are.
    characters.flags.writeable = places.flags.writeable = False
    return characters, places


class _Batch(Generic[_Session]):
    def __init__(self, session: _Session, style: BatchForm, messages: pa.Array, data: Bytes, offsets: Int64s) -> None:
        self.session = session
        self.style = style
        self.messages = messages
        self.data = data
        self.offsets = offsets
        self.plan = session.plan
        self.refused: set[int] = set()
        # The path of a value that cannot be a string, and what was expected, by row.
        self.value_errors: dict[int, tuple[str, str]] = {}

    def decode(self) -> tuple[pa.RecordBatch, _Session]:
        located, arrays = self.walk(self._arrays, copies=not self.style.large)
        if self.style.marks:
            arrays += self._error_columns(located)
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema_of(self.plan, self.style))
        located.give_back()
        return batch, self.after(located)

    def after(self, located: Located) -> _Session:
        if located.facts == bits_of(self.session):
            return self.session
        return self.session.with_facts(located.facts)

    def walk(
        self, make: Callable[[Located], tuple[list[pa.Array], set[int]]], *, copies: bool
    ) -> tuple[Located, list[pa.Array]]:
        """Walk until no further row is refused; raises RowDecodeError unless the batch has columns for errors."""
        while True:
            located = self._walk(copies=copies)
            arrays: list[pa.Array] = []
            more = self._rows_of_bad_texts(located)
            if not more and not (located.stopped and self.style.values == "binary"):
                arrays, more = make(located)
            if not more:
                break
            # A row that was refused late could have changed the session's facts for the rest: walk again without it.
            self.refused |= more
            located.give_back()
        if located.stopped:
            raise self._error(located.count, located.facts)
        return located, arrays

    def _walk(self, *, copies: bool) -> Located:
        refused = np.array(sorted(self.refused), np.int64)
        return locate(self.session, self.data, self.offsets, stops=not self.style.marks, refused=refused, copies=copies)

    def _arrays(self, located: Located) -> tuple[list[pa.Array], set[int]]:
        if self.style.values == "string" and (refused := self._rows_of_bad_values(located)):
            return [], refused
        builder = ArrayBuilder(self.plan, self.style, located, self.session.encoding)
        return builder.arrays(), set()

    def _rows_of_bad_texts(self, located: Located) -> set[int]:
        """Return the rows with a text that is invalid in an encoding that the walk does not check."""
        rows: set[int] = set()
        if self.session.encoding == "utf-8":
            return rows
        for number, spans in located.spans.items():
            column = self.plan.columns[number]
            if column.kind == "text":
                rows |= self._bad_texts(located.data, spans, spans.rows)
            elif column.kind == "items":
                owners = np.repeat(spans.rows, spans.lengths)
                for values in items(self.plan, number, located).values():
                    if isinstance(values, Spans):
                        rows |= self._bad_texts(located.data, values, owners)
        return rows

    def _bad_texts(self, data: Bytes, spans: Spans, rows: Int64s) -> set[int]:
        valid = are_valid(data, spans.starts, spans.lengths, self.session.encoding)
        return set(rows[~valid].tolist())

    def _rows_of_bad_values(self, located: Located) -> set[int]:
        rows: set[int] = set()
        if located.copied:
            if all(self._are_strings(number, copied) for number, copied in located.copied.items()):
                return rows
            # Copies have no positions in the messages.
            located = self._walk(copies=False)
        for number, cells in located.cells.items():
            column = self.plan.columns[number]
            kinds = cells.kinds
            binary = np.isin(kinds, np.frombuffer(column.binary, np.uint8))
            bad = {int(cell): "a value in text format" for cell in np.flatnonzero(binary)}
            for cell in self._invalid(located.data, cells):
                bad.setdefault(cell, "text in utf-8")
            for cell in sorted(bad, reverse=True):
                row = int(np.searchsorted(cells.offsets, cell, side="right")) - 1
                self.value_errors[row] = column.path.format(cell - int(cells.offsets[row])), bad[cell]
                rows.add(row)
        return rows

    def _are_strings(self, number: int, copied: CopiedCells) -> bool:
        kinds = np.frombuffer(copied.kinds, np.uint8)
        if any((kinds == kind).any() for kind in self.plan.columns[number].binary):
            return False
        return self._are_utf8(copied.starts, copied.values, len(kinds))

    def _invalid(self, data: Bytes, cells: Cells) -> list[int]:
        index_type = np.int64 if self.style.large else np.int32
        buffers = gathered(data, cells.starts, cells.lengths, cells.size, index_type)
        if self._are_utf8(buffers[0], buffers[1], len(cells.kinds)):
            return []
        valid = are_valid(data, cells.starts, cells.lengths, "utf-8")
        return [int(cell) for cell in np.flatnonzero(~valid)]

    def _are_utf8(self, offsets: Any, values: Any, count: int) -> bool:
        binary, string = (pa.large_binary(), pa.large_string()) if self.style.large else (pa.binary(), pa.string())
        try:
            pa.Array.from_buffers(binary, count, [None, offsets, values]).cast(string)
        except pa.ArrowInvalid:
            return False
        return True

    def _error_columns(self, located: Located) -> list[pa.Array]:
        rows = np.flatnonzero(located.status & REFUSED_BIT)
        bytes_ = pa.large_binary() if self.style.large else pa.binary()
        if not len(rows):
            return [pa.nulls(located.count, pa.string()), pa.nulls(located.count, bytes_)]
        places = np.zeros(located.count, np.int64)
        places[rows] = np.arange(len(rows))
        indices = pa.array(places, mask=(located.status & REFUSED_BIT) == 0)
        errors = [str(self._error(int(row), int(located.status[row]))) for row in rows]
        data = self.messages.take(pa.array(rows)).cast(bytes_)
        return [pa.array(errors, pa.string()).take(indices), data.take(indices)]

    def _error(self, row: int, facts: int) -> RowDecodeError:
        """Return the error of a refused message: `parse` raises it, with the session facts at that row."""
        data = self.messages[row].as_py()
        message = self.plan.messages.get(data[0]) if data else None
        if message is not None and row in self.value_errors:
            path, expected = self.value_errors[row]
            layouts, facts_by_name = self.session.layouts, facts_of(self.session.layouts, facts)
            steps = walk(layouts, self.session.version, data, facts=facts_by_name, encoding=self.session.encoding)
            value = next(step for step in steps if step.path == path)
            return RowDecodeError(message.name, path, value.offset, expected, hex_of(value.data), row)
        parse = parser_of(self.session, message, facts, self.session.encoding)
        try:
            parse(data)
        except DecodeError as error:
            return RowDecodeError(error.message, error.field, error.offset, error.expected, error.found, row)
        raise AssertionError(f"row {row}: the columnar decoder refuses what parse reads: {data[:64].hex()}")
