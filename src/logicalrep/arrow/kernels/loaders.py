"""Compiled loaders of rows' values in the server's usual notation, read in place in a batch, column by column.

A loader leaves a value that it does not read to the type's loader in `values`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from logicalrep.arrow.kernels.digits import (
    parse_boolean,
    parse_decimal,
    parse_float32,
    parse_float64,
    parse_int16,
    parse_int32,
    parse_int64,
    parse_oid,
)
from logicalrep.arrow.kernels.finding import RowCells
from logicalrep.arrow.kernels.texts import from_hexadecimal, is_bytes, is_number, is_text, is_uuid, lanes_between
from logicalrep.arrow.kernels.timestamps import parse_date, parse_timestamp, parse_timestamptz
from logicalrep.transactions.tags import BINARY, TEXT
from logicalrep.values.kernel import Kernel
from logicalrep_runtime.columnar.located import Bytes, Int64s, Ints, Record, Records
from logicalrep_runtime.columnar.memory import (
    LANES,
    clear,
    compiled,
    copy,
    count_bits,
    inlined,
    read,
    write,
)
from logicalrep_runtime.columnar.utf8 import are_utf8, is_utf8

BLOCK = 256
"""The rows of the longest column that are loaded at a time, with an equal share of each other column.

Columns mostly belong to the same messages, whose data are still in the cache for the next column.
"""

AT_ONCE = 64

_are_t, _are_b = lanes_between("t", "t"), lanes_between("b", "b")


class CellLocations(NamedTuple):
    """The offsets of the values of a batch's old or new rows, as in `located.Cells`."""

    kinds: Bytes
    starts: Int64s
    lengths: NDArray[np.uint32]


class Share(NamedTuple):
    rows: Int64s
    cells: Int64s
    kinds: Bytes
    starts: Int64s
    lengths: NDArray[np.uint32]
    states: Bytes


class Output(NamedTuple):
    """A block of memory for states, validity bits, values and offsets, as numbers of each kind."""

    int8: Bytes
    int16: NDArray[np.int16]
    int32: NDArray[np.int32]
    int64: Int64s
    float32: NDArray[np.float32]
    float64: NDArray[np.float64]


class Leftover(NamedTuple):
    columns: Int64s
    rows: Int64s


@inlined
def _leave(leftover: Leftover, count: int, index: int, row: int) -> int:
    write(leftover.columns, count, index)
    write(leftover.rows, count, row)
    return count + 1


def _numbers(parse: Callable[..., Any], put: Callable[..., Any] = write) -> Callable[..., int]:
    """Return a loop over a share of a column's rows, which returns the number of values left so far."""

    @inlined
    def load(
        data: Bytes, share: Share, column: Record, index: int, values: NDArray[Any], leftover: Leftover, count: int
    ) -> int:
        first = column.values
        for item in range(len(share.rows)):
            row, cell = read(share.rows, item), read(share.cells, item)
            kind = read(share.kinds, cell)
            write(share.states, row, kind)
            if kind in (TEXT, BINARY):
                number, good = parse(data, read(share.starts, cell), read(share.lengths, cell), kind, column)
                if good:
                    put(values, first + row, number)
                else:
                    count = _leave(leftover, count, index, row)
        return count

    return load


@inlined
def _put128(values: NDArray[Any], index: int, number: int) -> None:
    write(values, 2 * index, number)
    write(values, 2 * index + 1, number >> 63)


def _texts(is_good: Callable[..., bool], *, hexadecimal: bool = False) -> Callable[..., int]:
    """Return the loop for a type whose values are copied; it writes each length behind the offset's item."""

    @inlined
    def load(
        data: Bytes,
        share: Share,
        column: Record,
        index: int,
        offsets: Ints,
        leftover: Leftover,
        count: int,
        texts: Bytes,
    ) -> int:
        first, target, limit = column.values + 1, column.next, column.texts + column.total
        for item in range(len(share.rows)):
            row, cell = read(share.rows, item), read(share.cells, item)
            kind = read(share.kinds, cell)
            write(share.states, row, kind)
            if kind in (TEXT, BINARY):
                start, size = read(share.starts, cell), read(share.lengths, cell)
                if not is_good(data, start, size, kind):
                    count = _leave(leftover, count, index, row)
                    continue
                if hexadecimal and kind == TEXT:
                    size = from_hexadecimal(data, start + 2, start + size, texts, target)
                elif size <= AT_ONCE and start + AT_ONCE <= len(data) and target + AT_ONCE <= limit:
                    # Whole blocks are copied whatever the length, which spares an unpredictable branch; the next text
                    # overwrites the rest.
                    for part in range(0, AT_ONCE, LANES):
                        copy(texts, target + part, data, start + part, LANES, limit)
                else:
                    copy(texts, target, data, start, size, limit)
                write(offsets, first + row, size)
                target += size
        column.next = target
        return count

    return load


@inlined
def _parse_nothing(data: Bytes, start: int, length: int, kind: int, column: Record) -> tuple[int, bool]:
    return 0, False


_load_int16, _load_int32, _load_int64 = _numbers(parse_int16), _numbers(parse_int32), _numbers(parse_int64)
_load_oid, _load_boolean = _numbers(parse_oid), _numbers(parse_boolean)
_load_float32, _load_float64 = _numbers(parse_float32), _numbers(parse_float64)
_load_decimal, _load_date = _numbers(parse_decimal, _put128), _numbers(parse_date)
_load_timestamp, _load_timestamptz = _numbers(parse_timestamp), _numbers(parse_timestamptz)
_load_string, _load_uuid, _load_number = _texts(is_text), _texts(is_uuid), _texts(is_number)
_load_bytes = _texts(is_bytes, hexadecimal=True)
_load_none = _numbers(_parse_nothing)


@compiled
def measure_rows(columns: Records, sides: tuple[CellLocations, CellLocations], row_cells: RowCells) -> None:
    for index in range(len(columns)):
        column = columns[index]
        code = column.code
        if code < Kernel.STRING:
            continue
        total = 0
        cells = sides[column.side]
        for item in range(column.first, column.first + column.having):
            cell = read(row_cells.cells, item) + column.ordinal
            kind = read(cells.kinds, cell)
            if kind in (TEXT, BINARY):
                length = read(cells.lengths, cell)
                total += length >> 1 if code == Kernel.BYTES and kind == TEXT else length
        column.total = total


@compiled
def load_rows(
    data: Bytes,
    columns: Records,
    sides: tuple[CellLocations, CellLocations],
    row_cells: RowCells,
    out: Output,
    texts: Bytes,
    leftover: Leftover,
) -> int:
    """Load the values of rows, and record the kind of each as its state.

    `data` is a batch's bytes, `columns` has a COLUMN for each, `sides` are the sides that columns name. The output
    is 0 where there is no value; nothing is written for a column without rows. Texts go to `texts`, with PADDING
    bytes around them all. `leftover` has room for all values; texts that are not UTF-8 are among them.

    Returns the number of values left. They are 0 or empty in the output, except for these texts.
    """
    # Not the literal 0, for which each loop would be compiled once more.
    count: int = np.int64(0)  # type: ignore[assignment]
    most = 0
    for index in range(len(columns)):
        most = max(most, columns[index].having)
    steps = -(-most // BLOCK)
    for step in range(steps):
        # A column at a time, so that each loop does one thing.
        for index in range(len(columns)):
            column = columns[index]
            begin, end = column.having * step // steps, column.having * (step + 1) // steps
            if begin < end:
                _make_ready(column, row_cells, out, begin, end)
                side, ordinal, begin, end = sides[column.side], column.ordinal, column.first + begin, column.first + end
                share = Share(
                    row_cells.rows[begin:end], row_cells.cells[begin:end], side.kinds[ordinal:], side.starts[ordinal:],
                    side.lengths[ordinal:], out.int8[column.states :],
                )  # fmt: skip
                count = _load(data, share, column, index, out, texts, leftover, count)
    for index in range(len(columns)):
        column = columns[index]
        _finish(column, out)
        if column.code == Kernel.STRING and column.total > 0:
            count = _leave_bad(texts, column, index, out.int32, leftover, count)
    return count


@inlined
def _load(
    data: Bytes, share: Share, column: Record, index: int, out: Output, texts: Bytes, leftover: Leftover, count: int
) -> int:
    """Load some of a column's rows. Returns the number of values left so far."""
    code = column.code
    if code == Kernel.NONE:
        return _load_none(data, share, column, index, out.int8, leftover, count)
    if code == Kernel.INT16:
        return _load_int16(data, share, column, index, out.int16, leftover, count)
    if code == Kernel.INT32:
        return _load_int32(data, share, column, index, out.int32, leftover, count)
    if code == Kernel.INT64:
        return _load_int64(data, share, column, index, out.int64, leftover, count)
    if code == Kernel.OID:
        return _load_oid(data, share, column, index, out.int64, leftover, count)
    if code == Kernel.BOOLEAN:
        return _load_boolean(data, share, column, index, out.int8, leftover, count)
    if code == Kernel.FLOAT32:
        return _load_float32(data, share, column, index, out.float32, leftover, count)
    if code == Kernel.FLOAT64:
        return _load_float64(data, share, column, index, out.float64, leftover, count)
    if code == Kernel.DECIMAL:
        return _load_decimal(data, share, column, index, out.int64, leftover, count)
    if code == Kernel.DATE:
        return _load_date(data, share, column, index, out.int32, leftover, count)
    if code == Kernel.TIMESTAMP:
        return _load_timestamp(data, share, column, index, out.int64, leftover, count)
    if code == Kernel.TIMESTAMPTZ:
        return _load_timestamptz(data, share, column, index, out.int64, leftover, count)
    if code == Kernel.STRING:
        return _load_string(data, share, column, index, out.int32, leftover, count, texts)
    if code == Kernel.UUID:
        return _load_uuid(data, share, column, index, out.int32, leftover, count, texts)
    if code == Kernel.NUMBER:
        return _load_number(data, share, column, index, out.int32, leftover, count, texts)
    if code == Kernel.BYTES:
        return _load_bytes(data, share, column, index, out.int32, leftover, count, texts)
    return count


@inlined
def _make_ready(column: Record, row_cells: RowCells, out: Output, begin: int, end: int) -> None:
    """Clear the output of some rows and of the rows between them; here the memory is about to enter the cache."""
    first = 0 if begin == 0 else read(row_cells.rows, column.first + begin)
    is_last = end == column.having
    last = column.changes if is_last else read(row_cells.rows, column.first + end)
    values = column.values
    if column.code >= Kernel.STRING:
        # The first text's offset; each other offset is written behind its text.
        write(out.int32, values, 0)
        values += 1
    clear(out.int8, column.width * (values + first), column.width * (last - first))
    # The states are read LANES at a time.
    clear(out.int8, column.states + first, (-(-last // LANES) * LANES if is_last else last) - first)


@inlined
def _finish(column: Record, out: Output) -> None:
    if column.having == 0:
        return
    rows = column.changes
    valued = 0
    for row in range(0, rows, LANES):
        bits = _are_t(out.int8, column.states + row) | _are_b(out.int8, column.states + row)
        write(out.int32, column.validity + row // LANES, bits)
        valued += count_bits(bits)
    column.valued = valued
    if column.code >= Kernel.STRING:
        total = 0
        for item in range(column.values + 1, column.values + rows + 1):
            total += read(out.int32, item)
            write(out.int32, item, total)
        column.total = total


@inlined
def _leave_bad(texts: Bytes, column: Record, index: int, offsets: Ints, leftover: Leftover, count: int) -> int:
    """Leave a column's texts that are not UTF-8. Returns the number of values left so far."""
    start, first, rows = column.texts, column.values, column.changes
    if not are_utf8(texts, start, column.total, offsets[first : first + rows + 1]):
        for row in range(rows):
            begin, end = read(offsets, first + row), read(offsets, first + row + 1)
            if not is_utf8(texts, start + begin, start + end):
                count = _leave(leftover, count, index, row)
    return count
