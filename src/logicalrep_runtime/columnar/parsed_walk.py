"""The walk over a batch by `parse`, message by message, where `logicalrep-native` has no walk of the spec.

`parse` does not return the positions of values, so the walk copies all values one behind the other, to `Located.data`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from logicalrep_runtime.columnar.located import REFUSED_BIT, Bytes, Cells, Int64s, Ints, Located, Spans, check_offsets
from logicalrep_runtime.columnar.plan import MessagePlan, PlanColumn, bit_of
from logicalrep_runtime.columnar.session import ColumnarSession, bits_of, parser_of
from logicalrep_runtime.errors import DecodeError


class _ParsedColumn(NamedTuple):
    rows: list[int]
    values: list[Any]


class _Reader(NamedTuple):
    """Reads one message in the session's state."""

    parse: Callable[[bytes], Any]
    columns: tuple[tuple[Callable[[Any], Any], _ParsedColumn], ...]
    facts: int
    """The session facts after the message."""


def walk_parsed(session: ColumnarSession, data: Bytes, offsets: Int64s, *, stops: bool, refused: Int64s) -> Located:
    """Locate values as `locate` does. Cells are located in every case, never copied for Arrow."""
    check_offsets(data, offsets)
    # An encoding with one character for each byte keeps the bytes of texts, which `batches` checks with their codec.
    encoding = "utf-8" if session.encoding == "utf-8" else "latin-1"
    columns = {number: _ParsedColumn([], []) for number in session.plan.order}
    facts = bits_of(session)
    readers = {facts: _readers(session, facts, encoding, columns)}
    count, stopped = len(offsets) - 1, False
    tags, status = np.zeros(count, np.uint8), np.zeros(count, np.uint8)
    status[refused] = REFUSED_BIT
    refused_rows = set(refused.tolist())
    for row, (start, end) in enumerate(pairwise(offsets.tolist())):
        message = data[start:end].tobytes()
        reader = readers[facts].get(message[0]) if message and row not in refused_rows else None
        parsed = None if reader is None else _parsed(reader, message)
        if reader is not None and parsed is not None:
            tags[row] = message[0]
            for get, column in reader.columns:
                if (value := get(parsed)) is not None:
                    column.rows.append(row)
                    column.values.append(value)
            if reader.facts not in readers:
                readers[reader.facts] = _readers(session, reader.facts, encoding, columns)
            facts = reader.facts
        elif stops:
            count, stopped = row, True
            break
        else:
            status[row] = REFUSED_BIT | (facts & 0x7F)
    located = Located(count, tags[:count], status[:count], facts, stopped)
    copies = _ValueCopies(encoding)
    for number, column in columns.items():
        if column.rows:
            copies.add(located, number, session.plan.columns[number], column)
    located.data = np.frombuffer(b"".join(copies.values), np.uint8)
    return located


def _parsed(reader: _Reader, message: bytes) -> Any:
    try:
        return reader.parse(message)
    except DecodeError:
        return None


def _readers(
    session: ColumnarSession, facts: int, encoding: str, columns: dict[int, _ParsedColumn]
) -> dict[int, _Reader]:
    def after(message: MessagePlan) -> int:
        layout = session.layouts.message(ord(message.tag))
        assert layout is not None
        set_bits, cleared_bits = (
            bit_of(session.layouts.session, fact) if fact else 0 for fact in (layout.sets, layout.clears)
        )
        return (facts | set_bits) & ~cleared_bits

    return {
        tag: _Reader(
            parser_of(session, message, facts, encoding),
            tuple((_getter(path), columns[number]) for path, number in message.columns.items()),
            after(message),
        )
        for tag, message in session.plan.messages.items()
    }


def _getter(path: str) -> Callable[[Any], Any]:
    """Return a function from a message to the attribute of a path; None if a part on the way is absent."""
    names = path.split(".") if path else []
    if len(names) == 1:
        return attrgetter(path)

    def get(value: Any) -> Any:
        for name in names:
            value = None if value is None else getattr(value, name)
        return value

    return get


class _ValueCopies:
    """Copies of values, and their positions."""

    def __init__(self, encoding: str) -> None:
        self.values: list[bytes] = []
        self._size = 0
        self._encoding = encoding

    def add(self, located: Located, number: int, column: PlanColumn, source: _ParsedColumn) -> None:
        rows, values = np.array(source.rows), source.values
        present = np.zeros(located.count, bool)
        present[rows] = True
        located.validity[number] = np.packbits(present, bitorder="little")
        if column.is_fixed:
            located.fixed[number] = np.zeros(located.count, f"i{column.width}")
            located.fixed[number][rows] = _integers(column, values)
        elif column.kind == "cells":
            counts = np.zeros(located.count + 1, np.int64)
            counts[rows + 1] = [len(value.kinds) for value in values]
            starts, lengths = self._copy([cell or b"" for value in values for cell in value.values])
            kinds = np.array(bytearray().join(value.kinds for value in values))
            located.cells[number] = Cells(
                np.cumsum(counts), kinds, starts, lengths.astype(np.uint32), int(lengths.sum())
            )
        elif column.kind == "items":
            items = [item for value in values for item in value]
            located.spans[number] = _spans(rows, np.zeros(len(rows), np.int64), _lengths(values))
            located.items[number] = {
                field.name: self._field(field, list(map(attrgetter(field.path), items))) for field in column.fields
            }
        elif column.kind == "ints":
            sent = f">{'i' if column.signed else 'u'}{column.width}"
            starts, _ = self._copy([np.array(value, sent).tobytes() for value in values])
            located.spans[number] = _spans(rows, starts, _lengths(values))
        else:
            located.spans[number] = self._texts(column, rows, values)

    def _field(self, field: PlanColumn, values: list[Any]) -> Ints | Spans:
        return _integers(field, values) if field.is_fixed else self._texts(field, np.arange(len(values)), values)

    def _texts(self, column: PlanColumn, rows: Int64s, values: Iterable[Any]) -> Spans:
        encoded = [value.encode(self._encoding) for value in values] if column.kind == "text" else list(values)
        return _spans(rows, *self._copy(encoded))

    def _copy(self, values: list[bytes]) -> tuple[Int64s, Int64s]:
        """Return the starts and lengths of the values' copies."""
        lengths = _lengths(values)
        ends = self._size + np.cumsum(lengths)
        self.values += values
        self._size += int(lengths.sum())
        return ends - lengths, lengths


def _lengths(values: Sequence[Any]) -> Int64s:
    return np.fromiter(map(len, values), np.int64, len(values))


def _spans(rows: Int64s, starts: Int64s, lengths: Int64s) -> Spans:
    return Spans(np.column_stack((rows, starts, lengths)), int(lengths.sum()))


def _integers(column: PlanColumn, values: list[Any]) -> Ints:
    """Return the values in a column's width; unsigned integers and late times wrap around."""
    if column.kind == "char":
        return np.frombuffer("".join(values).encode("latin-1"), np.int8)
    numbers = np.fromiter(values, np.int64 if column.signed else np.uint64, len(values)).view(np.int64)
    return (numbers + column.epoch).astype(f"i{column.width}")
