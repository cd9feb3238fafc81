"""The output operations of compiled kernels: integers, places of values, and bits for the rows that have them.

A kernel is given the address of a table of int64: COLUMN_ENTRIES entries for each column, then CELLS_ENTRIES more for
each column of rows' values. `locate.py` makes it.
"""

from __future__ import annotations

from typing import Any

from logicalrep_runtime.columnar.memory import (
    compiled,
    copy_to,
    inlined,
    intrinsic,
    ir,
    read4,
    read8,
    types,
    write4,
    write8,
)

COLUMN_ENTRIES = 5
"""The parts of a column's entry: the address of the values or spans; that of the validity bitmap; the number of spans
or cells; their bytes, or the items of their lists; the number of spans that there is room for."""

ADDRESS, VALIDITY, COUNT, SIZE, ROOM = range(COLUMN_ENTRIES)

SEEN = 2
"""The mark of a tag that the batch has, in the table of known tags, where 0 stands for unknown."""

CELLS_ENTRIES = 7
"""The parts of the entry of rows' values: the addresses of their offsets, kinds, starts and lengths; the number of
values that there is room for; the address to copy their bytes to, and the number of bytes that there is room for.

Nothing is copied if that address is 0. If bytes are copied, there are no lengths; the offsets and the starts are then
32-bit integers, and the starts are places in the copy.
"""


def _put(width: int) -> Any:
    """Make an intrinsic that writes an integer. A function instead would be compiled once for each column."""
    bits = ir.IntType(8 * width)

    @intrinsic
    def put(typing_context: Any, out: Any, entry: Any, row: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            out, entry, row, value = arguments
            values = builder.gep(_column(builder, out, entry, ADDRESS, bits), [row])
            builder.store(value if width == 8 else builder.trunc(value, bits), values)
            _mark(builder, out, entry, row)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64, types.int64), generate

    return put


def _entry(builder: Any, out: Any, entry: Any, part: int) -> Any:
    """Return a pointer to one part of a column's entry in the table."""
    table = builder.inttoptr(out, ir.IntType(64).as_pointer())
    return builder.gep(table, [builder.add(entry, ir.IntType(64)(part))])


def _column(builder: Any, out: Any, entry: Any, part: int, bits: Any) -> Any:
    """Return the address in one part of the entry, as a pointer to integers."""
    return builder.inttoptr(builder.load(_entry(builder, out, entry, part)), bits.as_pointer())


def _mark(builder: Any, out: Any, entry: Any, row: Any) -> None:
    """Set the row's bit in the column's validity bitmap."""
    byte, long = ir.IntType(8), ir.IntType(64)
    place = builder.gep(_column(builder, out, entry, VALIDITY, byte), [builder.lshr(row, long(3))])
    bit = builder.shl(byte(1), builder.trunc(builder.and_(row, long(7)), byte))
    builder.store(builder.or_(builder.load(place), bit), place)


put1, put2, put4, put8 = map(_put, (1, 2, 4, 8))
"""Write an integer of 1, 2, 4 or 8 bytes. Arguments: the table's address, the column's entry, the row, the value."""


@intrinsic
def put_span(typing_context: Any, out: Any, entry: Any, row: Any, start: Any, length: Any) -> Any:
    """Note the start of a text, of bytes or of a list, and its length in bytes or in items."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, entry, row, start, length = arguments
        long = ir.IntType(64)
        filled = _entry(builder, out, entry, COUNT)
        count = builder.load(filled)
        span = builder.gep(_column(builder, out, entry, ADDRESS, long), [builder.mul(count, long(3))])
        for index, value in enumerate((row, start, length)):
            builder.store(value, builder.gep(span, [long(index)]))
        builder.store(builder.add(count, long(1)), filled)
        sizes = _entry(builder, out, entry, SIZE)
        builder.store(builder.add(builder.load(sizes), length), sizes)
        _mark(builder, out, entry, row)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), generate


@intrinsic
def put_cells(typing_context: Any, out: Any, entry: Any, row: Any, count: Any, size: Any) -> Any:
    """Note the number of values up to and including this row's, and their bytes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, entry, row, count, size = arguments
        builder.store(count, _entry(builder, out, entry, COUNT))
        sizes = _entry(builder, out, entry, SIZE)
        builder.store(builder.add(builder.load(sizes), size), sizes)
        _mark(builder, out, entry, row)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), generate


@inlined
def begin_cells(out: int, entry: int, cells: int, row: int) -> None:
    """Note that a row's values begin behind those already there."""
    if read8(out, cells + 5) != 0:
        write4(read8(out, cells), row, read8(out, entry + COUNT))
    else:
        write8(read8(out, cells), row, read8(out, entry + COUNT))


@inlined
def _put_offset(offsets: int, index: int, value: int, large: bool) -> None:
    if large:
        write8(offsets, index, value)
    else:
        write4(offsets, index, value)


@compiled
def gather(data: Any, starts: int, lengths: int, count: int, offsets: int, large: bool, values: int) -> None:
    """Copy the bytes of values together, with SLACK bytes of room behind them.

    `offsets` gets the start of each value and, last, the end of all: integers of 32 bits or, if `large`, of 64.
    """
    end = 0
    for index in range(count):
        length = read4(lengths, index)
        _put_offset(offsets, index, end, large)
        copy_to(values, end, data, read8(starts, index), length)
        end += length
    _put_offset(offsets, count, end, large)


@compiled
def gather_texts(data: Any, spans: int, count: int, rows: int, offsets: int, large: bool, values: int) -> None:
    """Copy spans together like `gather`. Not every row has a span; the offsets are those of all rows."""
    row = end = 0
    for index in range(count):
        while row <= read8(spans, 3 * index):
            _put_offset(offsets, row, end, large)
            row += 1
        length = read8(spans, 3 * index + 2)
        copy_to(values, end, data, read8(spans, 3 * index + 1), length)
        end += length
    while row <= rows:
        _put_offset(offsets, row, end, large)
        row += 1


@compiled
def spread_lists(spans: int, count: int, rows: int, offsets: int, large: bool) -> None:
    """Write the offsets of all rows into the items of the lists that some of them have."""
    row = end = 0
    for index in range(count):
        while row <= read8(spans, 3 * index):
            _put_offset(offsets, row, end, large)
            row += 1
        end += read8(spans, 3 * index + 2)
    while row <= rows:
        _put_offset(offsets, row, end, large)
        row += 1
