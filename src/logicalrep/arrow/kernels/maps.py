"""The compiled loops that make maps of rows, and copy names."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from logicalrep.transactions.tags import BINARY, NULL, TEXT, UNCHANGED
from logicalrep_runtime.columnar.located import Bytes, Int64s, Ints
from logicalrep_runtime.columnar.memory import compiled, copy, has_bit, inlined, read, write

_KEY, _WHOLE = map(ord, "KO")


class Columns(NamedTuple):
    first: Int64s
    widths: Int64s
    is_key: Bytes
    names: Bytes
    name_ends: NDArray[np.int32]
    """0, then the end of each name."""


class Side(NamedTuple):
    """The offsets of a batch's old or new rows, as in `located.Cells`. All are empty if it has no such row."""

    offsets: Int64s
    validity: Bytes
    kinds: Bytes
    starts: Int64s
    lengths: NDArray[np.uint32]


class Entries(NamedTuple):
    """The entries of the maps of some rows, with room for all columns of all rows. The caller sets all bits."""

    names: Bytes
    name_ends: NDArray[np.int32]
    values: Bytes
    value_ends: NDArray[np.int32]
    value_bits: Bytes
    """0 for an entry without a value."""
    binary_entries: NDArray[np.int32]
    """The numbers of the entries whose values are in binary format."""
    binary_columns: NDArray[np.int32]
    ends: NDArray[np.int32]
    """0, then the end of each row's entries."""
    row_bits: Bytes
    """0 for a message without such a row."""
    unsent: NDArray[np.int32]
    unsent_ends: NDArray[np.int32]
    """0, then the end of each row's unsent columns."""


class Sizes(NamedTuple):
    """The numbers of filled entries: all of them, the bytes of their names and values; and of some of them."""

    entries: int
    names: int
    values: int
    nulls: int
    binary: int
    missing: int
    """The number of messages without such a row."""
    unsent: int
    wrong: int
    """The row with another number of values than its table has columns, which ends the filling; -1 if there is none."""


@inlined
def _first_cell(side: Side, row: int) -> int:
    """Return the first value of a message's row; -1 if the message has no such row."""
    if len(side.offsets) == 0 or not has_bit(side.validity, row):
        return -1
    return read(side.offsets, row)


@inlined
def _has_width(side: Side, row: int, width: int) -> bool:
    return read(side.offsets, row + 1) - read(side.offsets, row) == width


@inlined
def _clear(bits: Bytes, index: int) -> None:
    write(bits, index >> 3, read(bits, index >> 3) & ~(1 << (index & 7)))


@compiled
def fill_maps(
    rows: Ints,
    tables: Ints,
    columns: Columns,
    side: Side,
    other: Side,
    are_new: bool,
    old_kinds: Bytes,
    data: Bytes,
    to: Entries,
) -> Sizes:
    """Fill the maps of the old or new rows of messages.

    `rows` has the messages' indices in the batch, `tables` their table numbers. `side` is the wanted rows. `are_new`
    says whether they are new rows. For new rows `other` is the old rows, and empty if no message has one: a value
    that was not sent is taken from a whole old row. For old rows `other` is empty. `old_kinds` has each message's
    kind of old row in the batch, or is empty if no message has one. An old row that is a key gets the key's columns
    and the columns with a value. `data` is the batch's bytes.
    """
    entry = names_size = values_size = nulls = binary = missing = left_out = 0
    for ends in (to.name_ends, to.value_ends, to.ends, to.unsent_ends):
        write(ends, 0, 0)
    for index in range(len(rows)):
        row, table = read(rows, index), read(tables, index)
        first, width = read(columns.first, table), read(columns.widths, table)
        cell = _first_cell(side, row)
        if cell < 0:
            missing += 1
            _clear(to.row_bits, index)
        else:
            if not _has_width(side, row, width):
                return Sizes(entry, names_size, values_size, nulls, binary, missing, left_out, index)
            old_kind = 0 if len(old_kinds) == 0 else read(old_kinds, row)
            whole = -1
            if are_new and old_kind == _WHOLE:
                whole = _first_cell(other, row)
                if whole >= 0 and not _has_width(other, row, width):
                    return Sizes(entry, names_size, values_size, nulls, binary, missing, left_out, index)
            is_key = not are_new and old_kind == _KEY
            # Most rows have all their columns: names are copied together, or one by one once a column is left out.
            name_start = read(columns.name_ends, first)
            size = read(columns.name_ends, first + width) - name_start
            copy(to.names, names_size, columns.names, name_start, size, len(to.names))
            is_whole = True
            for column in range(width):
                name_end = read(columns.name_ends, first + column + 1)
                kind, start = read(side.kinds, cell + column), read(side.starts, cell + column)
                length = read(side.lengths, cell + column)
                if kind != TEXT:
                    if kind == UNCHANGED and whole >= 0:
                        kind, start = read(other.kinds, whole + column), read(other.starts, whole + column)
                        length = read(other.lengths, whole + column)
                    if kind == UNCHANGED and are_new:
                        write(to.unsent, left_out, first + column)
                        left_out += 1
                        is_whole, name_start = False, name_end
                        continue
                    if is_key and kind == NULL and not read(columns.is_key, first + column):
                        is_whole, name_start = False, name_end
                        continue
                    if kind == BINARY:
                        write(to.binary_entries, binary, entry)
                        write(to.binary_columns, binary, first + column)
                        binary += 1
                    elif kind != TEXT:
                        nulls += 1
                        length = 0
                        _clear(to.value_bits, entry)
                if not is_whole:
                    copy(to.names, names_size, columns.names, name_start, name_end - name_start, len(to.names))
                names_size += name_end - name_start
                name_start = name_end
                copy(to.values, values_size, data, start, length, len(to.values))
                values_size += length
                entry += 1
                write(to.name_ends, entry, names_size)
                write(to.value_ends, entry, values_size)
        write(to.ends, index + 1, entry)
        write(to.unsent_ends, index + 1, left_out)
    return Sizes(entry, names_size, values_size, nulls, binary, missing, left_out, -1)


@compiled
def find_keys(tables: Ints, key_columns: Ints, key_ends: Ints, columns: Ints, ends: Ints) -> int:
    """Write the key columns of tables one after another, and the end of each table's; return their number."""
    count = 0
    write(ends, 0, 0)
    for index in range(len(tables)):
        table = read(tables, index)
        for item in range(read(key_ends, table), read(key_ends, table + 1)):
            write(columns, count, read(key_columns, item))
            count += 1
        write(ends, index + 1, count)
    return count


@compiled
def find_names(numbers: Ints, name_ends: Ints, ends: Ints) -> int:
    """Write the end of each number's name, one after another; return the names' total bytes."""
    size = 0
    write(ends, 0, 0)
    for index in range(len(numbers)):
        number = read(numbers, index)
        size += read(name_ends, number + 1) - read(name_ends, number)
        write(ends, index + 1, size)
    return size


@compiled
def copy_names(numbers: Ints, names: Bytes, name_ends: Ints, to: Bytes, ends: Ints) -> None:
    """Copy names up to their ends; adjacent names, as of a whole row, are copied together."""
    index = 0
    while index < len(numbers):
        start, number = index, read(numbers, index)
        index += 1
        while index < len(numbers) and read(numbers, index) == number + index - start:
            index += 1
        offset = read(ends, start)
        copy(to, offset, names, read(name_ends, number), read(ends, index) - offset, len(to))
