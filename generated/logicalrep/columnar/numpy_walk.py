# Copied from codegen/runtime/columnar/numpy_walk.py by `python -m codegen regen`; do not edit.
"""Walks a batch with numpy alone, where numba is not installed: every message of a kind at once, field by field.

The layouts (layouts.py, generated) say what to read, so a field of the spec is read here as it is by the kernels. What
is found is the same, byte for byte.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from logicalrep.columnar.plan import Column, MessagePlan, Plan, bit_of
from logicalrep.columnar.plans import FACTS
from logicalrep.columnar.texts import are_utf8
from logicalrep.columnar.walked import REFUSED_BIT, UNIX_EPOCH, UTF8, Cells, Ints, Spans, Walked, check_offsets
from logicalrep.layout import Field, PartLayout
from logicalrep.layouts import LOGICALREP

_FIRST_WINDOW = 32
_LARGEST_WINDOWS = 1 << 22


def walk(plan: Plan, data: Ints, offsets: Ints, facts: int, *, stops: bool, refused: Ints, copies: bool) -> Walked:
    """As walk.walk, with equal results; but it never copies."""
    count = len(offsets) - 1
    check_offsets(data, offsets)
    starts, ends = offsets[:-1], offsets[1:]
    tags = np.zeros(count, np.uint8)
    there = ends > starts
    there[refused] = False
    tags[there] = data[starts[there]]
    before, facts_after = _facts(plan, data, starts, ends, tags, facts)
    readers = {
        tag: _Reader(plan, message, data, np.flatnonzero(tags == tag), starts, ends, before)
        for tag, message in plan.messages.items()
    }
    read = np.zeros(count, bool)
    _read(list(readers.values()))
    for reader in readers.values():
        read[reader.rows] = True
    stopped = False
    if stops and not read.all():
        stopped = True
        count = int(np.argmin(read))
        facts_after = int(before[count])
        read = read[:count]
        for reader in readers.values():
            reader.keep(reader.rows < count)
    status = np.where(read, 0, REFUSED_BIT | before[:count] & 0x7F).astype(np.uint8)
    tags = np.where(read, tags[:count], 0).astype(np.uint8)
    result = Walked(count, tags, status, facts_after, stopped=stopped)
    _fill(result, plan, readers)
    return result


def _facts(plan: Plan, data: Ints, starts: Ints, ends: Ints, tags: Ints, facts: int) -> tuple[NDArray[np.int64], int]:
    """The session's facts as bits where each message begins, and after the last.

    What sets or clears one does not depend on it (the generator refuses a spec where it does), so those messages can be
    read ahead of the rest, in any facts.
    """
    after = np.full(len(tags), facts, np.int64)
    for fact in {message.sets or message.clears for message in plan.messages.values()} - {""}:
        bit = bit_of(FACTS, fact)
        changes = np.full(len(tags), -1, np.int8)
        for tag, message in plan.messages.items():
            if fact in (message.sets, message.clears):
                here = np.full(len(tags), facts, np.int64)
                reader = _Reader(plan, message, data, np.flatnonzero(tags == tag), starts, ends, here)
                _read([reader])
                changes[reader.rows] = message.sets == fact
        last = np.maximum.accumulate(np.where(changes >= 0, np.arange(len(tags)), -1))
        known = last >= 0
        after[known] = np.where(changes[last[known]], after[known] | bit, after[known] & ~bit)
    before = np.concatenate([[facts], after[:-1]]) if len(tags) else after
    return before, int(after[-1]) if len(tags) else facts


_Rows = tuple[str, Ints, Ints]
"""The part that rows' values are, where they begin, and where their messages end."""

_Reading = Generator[_Rows, "_Tuples", None]


def _read(readers: list[_Reader]) -> None:
    """Read all messages; the values of rows, which are most of the work, for several kinds of messages at a time."""
    waiting = [(reading, rows) for reader in readers for reading in [reader.read()] if (rows := next(reading, None))]
    while waiting:
        name = waiting[0][1][0]
        now = [(reading, offsets, ends) for reading, (other, offsets, ends) in waiting if other == name]
        waiting = [(reading, rows) for reading, rows in waiting if rows[0] != name]
        offsets, ends = (np.concatenate([each[index] for each in now]) for index in (1, 2))
        tuples = _Tuples(readers[0].data, LOGICALREP.parts[name], offsets, ends)
        first = 0
        for reading, offsets, _ in now:
            with contextlib.suppress(StopIteration):
                waiting.append((reading, reading.send(tuples.part(first, first + len(offsets)))))
            first += len(offsets)


class _Reader:
    """All messages of one kind, and the position in each.

    `found` holds what each field has: the messages that it is in, None for all, and one array or several: integers, or
    starts and lengths. Messages that turn out to be none are dropped from everything.
    """

    def __init__(
        self, plan: Plan, message: MessagePlan, data: Ints, rows: Ints, starts: Ints, ends: Ints, facts: Ints
    ) -> None:
        self.plan = plan
        self.message = message
        self.data = data
        self.rows = rows
        self.offset = starts[rows] + 1
        self.end = ends[rows]
        self.facts = facts[rows]
        self.found: dict[str, tuple[Any, ...]] = {}

    def read(self) -> _Reading:
        """Read them all; those that are no message are in none of the attributes afterwards."""
        if not len(self.rows):
            return
        if self.message.when:
            self.keep(self.facts & bit_of(FACTS, self.message.when) != 0)
        layout = next(layout for layout in LOGICALREP.messages if layout.name == self.message.name)
        fields = [field for field in layout.fields[1:] if field.since <= self.message.version]
        while fields:
            key = fields[0].name if fields[0].optional else fields[0].when
            group = [fields.pop(0)]
            while key and fields and fields[0].when == key:
                group.append(fields.pop(0))
            present = self.present(group[0])
            for field in group:
                present = yield from self.field(field, present)
        self.keep(self.offset == self.end)

    def present(self, field: Field) -> NDArray[np.bool_] | None:
        """Which messages have the field; None for all."""
        if field.optional:
            first = self.data.take(self.offset, mode="clip")
            return (self.offset < self.end) & _are_among(first, field.constants)
        if field.when:
            return (self.facts & bit_of(FACTS, field.when)).astype(bool)
        return None

    def field(
        self, field: Field, present: NDArray[np.bool_] | None
    ) -> Generator[_Rows, _Tuples, NDArray[np.bool_] | None]:
        """Read one field where it is present; what `present` becomes when messages are dropped."""
        members: Any = slice(None) if present is None else np.flatnonzero(present)
        offset, end = self.offset[members], self.end[members]
        values: tuple[Any, ...]
        if field.kind == "int" and not field.repeat:
            number = integers(self.data, offset, field)
            after = offset + field.width
            fits = _fits(number, field)
            values = (number,)
        elif field.kind == "string":
            after = find_zeros(self.data, offset, end) + 1
            fits = after > 0
            if len(offset) and self.facts[0] & UTF8:
                fits[fits] = are_utf8(self.data, offset[fits], (after - offset - 1)[fits])
            values = offset, after - offset - 1
        elif field.kind == "bytes":
            size = end - offset if field.size == "rest" else self.number(field.size, members)
            after = offset + size
            fits = size >= 0
            values = offset, size
        elif field.kind == "int":
            count = self.number(field.repeat, members)
            after = offset + count * field.width
            fits = count >= 0
            values = offset, count
        elif field.repeat:
            count = self.number(field.repeat, members)
            facts = int(self.facts[:1].sum())
            after = _list_ends(self.plan, LOGICALREP.parts[field.part], self.data, offset, end, count, facts)
            fits = after >= 0
            values = offset, count, after
        else:
            tuples = yield field.part, offset, end
            after = tuples.ends
            fits = after >= 0
            values = tuples.counts, tuples.position, np.broadcast_to(_boxed(tuples.values), len(offset))
        fits &= after <= end
        if fits.all():
            if present is None:
                self.offset = after
            else:
                self.offset[members] = after
            self.found[field.name] = (None if present is None else members, *values)
            return present
        self.offset = self.offset.copy()
        indices = np.flatnonzero(present if present is not None else np.ones(len(self.rows), bool))
        self.offset[indices[fits]] = after[fits]
        self.found[field.name] = (indices[fits], *(value[fits] for value in values))
        good = np.ones(len(self.rows), bool)
        good[indices] = fits
        self.keep(good)
        return None if present is None else present[good]

    def number(self, name: str, members: Any) -> Ints:
        """A count or length that was read before, of those messages: it is there wherever what it counts is."""
        among, values = self.found[name]
        if among is None:
            return values[members]  # type: ignore[no-any-return]
        whole = np.zeros(len(self.rows), np.int64)
        whole[among] = values
        return whole[members]  # type: ignore[no-any-return]

    def keep(self, good: NDArray[np.bool_]) -> None:
        """Drop the messages that are not good."""
        if good.all():
            return
        position = np.cumsum(good) - 1
        for name, (members, *values) in self.found.items():
            stay = good if members is None else good[members]
            among = None if members is None else position[members[stay]]
            self.found[name] = (among, *(value[stay] for value in values))
        self.rows, self.offset, self.end = self.rows[good], self.offset[good], self.end[good]
        self.facts = self.facts[good]


def _boxed(value: object) -> Any:
    box = np.empty(1, object)
    box[0] = value
    return box


def integers(data: Ints, offsets: Ints, field: Field | Column) -> NDArray[np.int64]:
    """Integers in network byte order, one of 64 unsigned bits bit for bit; any where there are too few bytes."""
    letter = "i" if field.signed or field.width == 8 else "u"
    view = _view(data, f">{letter}{field.width}")
    result = np.zeros(len(offsets), np.int64)
    if len(view):
        result[:] = view[np.minimum(offsets, len(view) - 1)]
    return result


def _view(data: Ints, dtype: str) -> Any:
    """At each offset the integer that begins there."""
    width = np.dtype(dtype).itemsize
    return np.ndarray((max(len(data) - width + 1, 0),), dtype, data, strides=(1,))


def _fits(values: NDArray[np.int64], field: Field) -> NDArray[np.bool_]:
    if field.constants:
        return _are_among(values, field.constants)
    if field.boolean:
        return values <= 1
    return values != 0 if field.nonzero else np.ones(len(values), bool)


def _are_among(values: Ints, constants: Sequence[int]) -> NDArray[np.bool_]:
    """As np.isin, which takes several times as long for a few constants."""
    result: NDArray[np.bool_] = values == constants[0]
    for constant in constants[1:]:
        result |= values == constant
    return result


def _fits_one(number: int, field: Field) -> bool:
    if field.constants:
        return number in field.constants
    return number <= 1 if field.boolean else number != 0 or not field.nonzero


def find_zeros(data: Ints, starts: Ints, ends: Ints) -> NDArray[np.int64]:
    """Where the next zero byte is, for each start; -1 where there is none before the end."""
    found = np.full(len(starts), -1, np.int64)
    search = np.flatnonzero(starts < ends)
    at, window = starts[search], _FIRST_WINDOW
    while len(search):
        some = max(1, _LARGEST_WINDOWS // window)
        hits = np.empty(len(search), np.int64)
        for first in range(0, len(search), some):
            part = slice(first, first + some)
            places = at[part, None] + np.arange(window)
            limits = ends[search[part], None]
            zero = (data[np.minimum(places, limits - 1)] == 0) & (places < limits)
            hits[part] = np.where(zero.any(axis=1), zero.argmax(axis=1), -1)
        found[search[hits >= 0]] = (at + hits)[hits >= 0]
        at = at + window
        more = (hits < 0) & (at < ends[search])
        search, at, window = search[more], at[more], window * 2
    return found


_NO_KIND = 1 << 40
"""The size of a value of no known kind: it lies beyond every message."""


class _Tuples:
    """Rows' values: where each row ends, -1 for one that is none; how many values it has; its position in `values`.

    What is read of a row that turns out to be none stays within the data, and is not used.
    """

    def __init__(self, data: Ints, part: PartLayout, offsets: Ints, ends: Ints) -> None:
        count_field, cells = part.fields[-2:]
        sizes = np.full(256, _NO_KIND, np.int64)
        for alternative in LOGICALREP.parts[cells.part].alternatives:
            sizes[alternative.fields[0].constants[0]] = 1 + sum(field.width for field in alternative.fields[1:2])
        counts = integers(data, offsets, count_field)
        good = (counts >= 0) & (counts <= ends - offsets - count_field.width)
        self.counts = np.where(good, counts, 0)
        # Rows with the most values first: those that have a value of a number are a slice.
        # There are at most 32767 in a row, and integers of 16 bits are sorted by their digits.
        order = np.argsort(-self.counts.astype(np.int16), kind="stable")
        self.position = np.empty(len(order), np.int64)
        self.position[order] = np.arange(len(order))
        at = (offsets + count_field.width)[order]
        self.values = _Values(data, sizes, at, self.counts[order])
        self.ends = at[self.position]
        self.ends[~good | (self.ends > ends)] = -1

    def part(self, first: int, stop: int) -> _Tuples:
        """Those of some of the rows."""
        part = object.__new__(_Tuples)
        part.counts, part.position = self.counts[first:stop], self.position[first:stop]
        part.ends = self.ends[first:stop]
        part.values = self.values
        return part


class _Values:
    """The first values of all rows, then the second, and so on: kinds, starts, lengths, and where each of these begins.

    `at` moves on to where each row ends.
    """

    def __init__(self, data: Ints, sizes: NDArray[np.int64], at: Ints, counts: Ints) -> None:
        header = int(sizes[sizes < _NO_KIND].max())
        valued = (sizes == header).astype(np.int64)
        lengths = _view(data, f">u{header - 1}")
        last = len(lengths) - 1
        steps = int(counts.max(initial=0))
        having = np.searchsorted(-counts, -np.arange(steps), side="left")
        self.firsts = np.cumsum(having) - having
        total = int(having.sum())
        self.kinds = np.empty(total, np.uint8)
        self.starts = np.empty(total, np.int64)
        self.lengths = np.zeros(total, np.int64)
        for first, some in zip(self.firsts.tolist(), having.tolist(), strict=True):
            here = slice(first, first + some)
            kind = data.take(at[:some], mode="clip", out=self.kinds[here])
            begin = np.add(at[:some], sizes[kind], out=self.starts[here])
            if last >= 0:
                places = np.minimum(begin - (header - 1), last)
                np.multiply(lengths[places], valued[kind], out=self.lengths[here])
            np.add(begin, self.lengths[here], out=at[:some])


_NO_VALUES = _Values(np.empty(0, np.uint8), np.full(256, 5, np.int64), *(np.empty(0, np.int64),) * 2)


def _read_items(
    plan: Plan, part: PartLayout, data: Ints, offset: int, end: int, count: int
) -> tuple[int, dict[str, list[Any]]]:
    """A list of items: where it ends, and each field of all of them: integers, or where a text is and its length.

    One after the other: lists stand in messages that come seldom. The end is -1 where the bytes are no such list.
    """
    fields = [field for field in part.fields if field.since <= plan.version]
    found: dict[str, list[Any]] = {field.name: [] for field in fields}
    region = data[offset:end].tobytes()
    at = 0
    for _ in range(count):
        numbers: dict[str, int] = {}
        for field in fields:
            if field.kind == "int":
                number = int.from_bytes(region[at : at + field.width], "big", signed=field.signed)
                if len(region) - at < field.width or not _fits_one(number, field):
                    return -1, found
                numbers[field.name] = number
                found[field.name].append(number)
                at += field.width
                continue
            stop = region.find(0, at) if field.kind == "string" else at + numbers[field.size]
            if not at <= stop <= len(region):
                return -1, found
            found[field.name].append((offset + at, stop - at))
            at = stop + (field.kind == "string")
    return offset + at, found


def _list_ends(
    plan: Plan, part: PartLayout, data: Ints, offsets: Ints, ends: Ints, counts: Ints, facts: int
) -> NDArray[np.int64]:
    """Where lists of items end; -1 for what is none."""
    result = np.empty(len(offsets), np.int64)
    for index, (offset, end, count) in enumerate(zip(offsets.tolist(), ends.tolist(), counts.tolist(), strict=True)):
        result[index], found = _read_items(plan, part, data, offset, end, count) if count >= 0 else (-1, {})
        if result[index] >= 0 and facts & UTF8:
            for field in part.fields:
                if field.kind == "string" and found.get(field.name):
                    starts, lengths = np.array(found[field.name]).T
                    if not are_utf8(data, starts, lengths).all():
                        result[index] = -1
    return result


def items(plan: Plan, column: Column, data: Ints, spans: Spans) -> dict[str, Ints | Spans]:
    """As walk.items."""
    part = LOGICALREP.parts[column.part]
    found: dict[str, list[Any]] = {field.name: [] for field in column.fields}
    assert spans.ends is not None
    for start, end, count in zip(spans.starts.tolist(), spans.ends.tolist(), spans.lengths.tolist(), strict=True):
        _, more = _read_items(plan, part, data, start, end, count)
        for name, values in found.items():
            values += more[name]
    result: dict[str, Ints | Spans] = {}
    for field in column.fields:
        numbers = np.array(found[field.name], np.int64)
        if field.is_fixed:
            shift = UNIX_EPOCH if field.scalar == "TimestampTz" else 0
            result[field.name] = (numbers + shift).astype(f"i{field.width}")
        else:
            starts, lengths = numbers.reshape(-1, 2).T
            result[field.name] = _spans(np.arange(len(starts)), starts, lengths)
    return result


def _fill(result: Walked, plan: Plan, readers: Mapping[int, _Reader]) -> None:
    """Put what the readers found into columns."""
    count = result.count
    has: dict[int, NDArray[np.bool_]] = {}
    spans: dict[int, list[tuple[Any, ...]]] = {}
    cells: dict[int, list[tuple[Any, ...]]] = {}
    for reader in readers.values():
        if not len(reader.rows) and not reader.found:
            continue
        for name, number in reader.message.columns.items():
            column = plan.columns[number]
            members, *values = reader.found.get(name, (np.empty(0, np.int64),) * 4)
            rows = reader.rows if members is None else reader.rows[members]
            has.setdefault(number, np.zeros(count, bool))[rows] = True
            if column.is_fixed:
                target = result.fixed.setdefault(number, np.zeros(count, f"i{column.width}"))
                shift = UNIX_EPOCH if column.scalar == "TimestampTz" else 0
                target[rows] = (values[0] + shift).astype(target.dtype)
            elif column.kind == "cells":
                cells.setdefault(number, []).append((rows, *values))
            else:
                spans.setdefault(number, []).append((rows, *values))
    for number, flags in has.items():
        result.validity[number] = np.packbits(flags, bitorder="little")
    for number, found in spans.items():
        rows, *places = (np.concatenate(parts) for parts in zip(*found, strict=False))
        order = np.argsort(rows)
        result.spans[number] = _spans(rows[order], *(place[order] for place in places))
    for number, found in cells.items():
        result.cells[number] = _cells(count, found)


def _spans(rows: Ints, starts: Ints, lengths: Ints, ends: Ints | None = None) -> Spans:
    return Spans(np.column_stack((rows, starts, lengths)).astype(np.int64, copy=False), int(lengths.sum()), ends)


def _cells(count: int, found: list[tuple[Any, ...]]) -> Cells:
    """The values of rows of several kinds of messages, in the order of the rows."""
    counts, position, first = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    # Several kinds of messages were read together, and share what was found: for each of those its first step.
    together: dict[int, tuple[int, _Values]] = {}
    steps = 0
    for rows, sizes, positions, whole in found:
        if not len(rows):
            continue
        values = whole[0]
        if id(values) not in together:
            together[id(values)] = steps, values
            steps += len(values.firsts)
        counts[rows], position[rows], first[rows] = sizes, positions, together[id(values)][0]
    parts = [values for _, values in together.values()] or [_NO_VALUES]
    kinds, starts, lengths = (
        _joined([getattr(part, name) for part in parts]) for name in ("kinds", "starts", "lengths")
    )
    before = np.cumsum([0, *(len(part.kinds) for part in parts[:-1])])
    firsts = _joined([part.firsts + more for part, more in zip(parts, before, strict=True)])
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    # The index of each value among all of them: where values of its number begin, and the row's position there.
    source = firsts[np.arange(int(offsets[-1])) + np.repeat(first - offsets[:-1], counts)]
    source += np.repeat(position, counts)
    sizes = lengths[source]
    return Cells(offsets, kinds[source], starts[source], sizes.astype(np.uint32), int(sizes.sum()))


def _joined(arrays: list[Ints]) -> Ints:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def gathered(data: Ints, starts: Ints, lengths: Ints, size: int, index_type: Any) -> tuple[Any, Any]:
    """As walk.gathered, of values that do not overlap and come in the order of `data`."""
    count = len(starts)
    offsets = np.zeros(count + 1, index_type)
    np.cumsum(lengths, dtype=index_type, out=offsets[1:])
    if not size:
        return pa.py_buffer(offsets), pa.py_buffer(b"")
    # An array in which every second value is a value, and those between are what lies between: Arrow copies the former.
    ends = np.empty(2 * count, index_type)
    ends[0::2], ends[1::2] = starts, starts + lengths
    make = pa.LargeBinaryArray if index_type == np.int64 else pa.BinaryArray
    both = make.from_buffers(
        pa.large_binary() if index_type == np.int64 else pa.binary(),
        2 * count - 1,
        [None, pa.py_buffer(ends), pa.py_buffer(data)],
    )
    taken = pc.take(both, pa.array(np.arange(0, 2 * count, 2)), boundscheck=False)
    return pa.py_buffer(offsets), taken.buffers()[2].slice(0, size)


def texts(data: Ints, spans: Spans, count: int, index_type: Any) -> tuple[Any, Any]:
    """As walk.texts."""
    _, values = gathered(data, spans.starts, spans.lengths, spans.size, index_type)
    return lists(spans, count, index_type), values


def lists(spans: Spans, count: int, index_type: Any) -> Any:
    """As walk.lists."""
    offsets: Ints = np.zeros(len(spans.found) + 1, index_type)
    np.cumsum(spans.lengths, out=offsets[1:])
    # The rows without a list have an empty one.
    places = np.concatenate(([-1], spans.rows, [count]))
    return pa.py_buffer(np.repeat(offsets, np.diff(places)))
