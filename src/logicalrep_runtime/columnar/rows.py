"""What compiled kernels write: integers, places of values, and bits that say which rows have them.

A kernel is given the address of a table of int64: for each column COLUMN_ENTRIES entries, then for each column of rows'
values CELLS_ENTRIES more. `walk.py` makes it.
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
"""The address of the values or spans; that of the validity bitmap; how many spans or cells there are; their bytes, or
the items of their lists; for how many spans there is room.
"""

ADDRESS, VALIDITY, COUNT, SIZE, ROOM = range(COLUMN_ENTRIES)

SEEN = 2
"""In the table of tags that are known, which are not 0: the batch has it."""

CELLS_ENTRIES = 7
"""The addresses of the offsets, the kinds, the starts and the lengths of rows' values; for how many there is room; the
address to copy their bytes to, and for how many of them there is room.

Where that address is 0 nothing is copied. Where they are copied there are no lengths; the offsets and the starts are
integers of 32 bits then, and the starts say where each begins in the copy.
"""


def _put(width: int) -> Any:
    """An intrinsic, and no function of its own, of which numba would compile one for each column."""
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
    """A pointer to one part of a column's entry in the table."""
    table = builder.inttoptr(out, ir.IntType(64).as_pointer())
    return builder.gep(table, [builder.add(entry, ir.IntType(64)(part))])


def _column(builder: Any, out: Any, entry: Any, part: int, bits: Any) -> Any:
    """The address that one part of the entry holds, as a pointer to integers."""
    return builder.inttoptr(builder.load(_entry(builder, out, entry, part)), bits.as_pointer())


def _mark(builder: Any, out: Any, entry: Any, row: Any) -> None:
    """Set the row's bit in the column's validity bitmap."""
    byte, long = ir.IntType(8), ir.IntType(64)
    place = builder.gep(_column(builder, out, entry, VALIDITY, byte), [builder.lshr(row, long(3))])
    bit = builder.shl(byte(1), builder.trunc(builder.and_(row, long(7)), byte))
    builder.store(builder.or_(builder.load(place), bit), place)


put1, put2, put4, put8 = map(_put, (1, 2, 4, 8))
"""Write an integer of so many bytes: the table's address, the column's entry, the row, the value."""


@intrinsic
def put_span(typing_context: Any, out: Any, entry: Any, row: Any, start: Any, length: Any) -> Any:
    """Where the bytes of a text, of bytes or of a list begin, and how many there are: bytes, or items of a list."""

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
    """How many values there are now, and how many bytes they have, with those of this row."""

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
    """Say where a row's values begin: behind those that there are."""
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

    `offsets` is one longer, of 32 bits or, if `large`, of 64, and says where each begins.
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
    """The same for spans, of which not each row has one; the offsets are those of all rows."""
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
    """The offsets of all rows into the items of the lists that some of them have."""
    row = end = 0
    for index in range(count):
        while row <= read8(spans, 3 * index):
            _put_offset(offsets, row, end, large)
            row += 1
        end += read8(spans, 3 * index + 2)
    while row <= rows:
        _put_offset(offsets, row, end, large)
        row += 1
