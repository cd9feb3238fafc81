"""The compiled loops that make maps of rows, and copy names.

Arrays are given by their addresses, as in all compiled kernels: see logicalrep_runtime.columnar.memory.
"""

from __future__ import annotations

from typing import Any

from logicalrep.transactions.tags import BINARY, NULL, TEXT, UNCHANGED
from logicalrep_runtime.columnar.memory import compiled, copy_to, inlined, read1, read4, read8, write1, write4, write8

_KEY, _WHOLE = map(ord, "KO")

_OFFSETS, _VALIDITY, _KINDS, _STARTS, _LENGTHS = range(5)
"""The entries of a side, a batch's old or new rows: the addresses of a walk's results; `_OFFSETS` is 0 for none."""

_FIRST, _WIDTH, _IS_KEY, _NAME_ENDS = range(4)
"""The entries on tables: the addresses of each table's first column number among all columns, and of its number of
columns; and for all columns the addresses of a byte that marks the key's, and of the starts of their names and, last,
the end of all."""

_NAMES, _ENDS_OF_NAMES, _VALUES, _ENDS_OF_VALUES, _VALUE_BITS, _BINARY_ENTRIES, _BINARY_COLUMNS = range(7)
_ENDS, _ROW_BITS, _UNSENT, _UNSENT_ENDS = range(7, 11)
"""The entries on the output, all addresses. For map entries: names and their ends, values and their ends, bits for
entries with a value; the numbers of those in binary format, and their columns. For rows: the ends of their entries,
bits for rows that exist; the columns whose values were not sent, and the ends of each row's."""


@inlined
def _first_cell(side: int, row: int) -> Any:
    """Return the first value of a message's row; -1 if the message has no such row."""
    if read8(side, _OFFSETS) == 0 or not read1(read8(side, _VALIDITY), row >> 3) >> (row & 7) & 1:
        return -1
    return read8(read8(side, _OFFSETS), row)


@inlined
def _has_width(side: int, row: int, width: int) -> Any:
    offsets = read8(side, _OFFSETS)
    return read8(offsets, row + 1) - read8(offsets, row) == width


@inlined
def _clear(bits: int, index: int) -> None:
    write1(bits, index >> 3, read1(bits, index >> 3) & ~(1 << (index & 7)))


@compiled
def fill_maps(
    rows: int, count: int, tables: int, of_tables: int, side: int, other: int, old_kinds: int,
    data: Any, all_names: Any, to: int, found: int,
) -> int:  # fmt: skip
    """Fill the maps of the old or new rows of messages.

    `rows` has the messages' indices in the batch, `tables` their table numbers, `of_tables` the entries on these
    tables. `side` is the wanted rows. For new rows `other` is the old rows: a value that was not sent is taken from
    there if the old row is whole. For old rows it is 0. `old_kinds` has each message's kind of old row in the batch, or
    is 0 if no message has one. An old row that is a key gets the key's columns and those with a value. `data` is the
    batch's bytes, `all_names` the columns' names.

    The output `to` has room for all columns of all rows, and its bits are set. `found` gets the number of entries, the
    bytes of their names and of their values; the number of nulls and of values in binary format; the number of missing
    rows, and of columns that were not sent. Returns the row with another number of values than its table has columns,
    -1 if there is none.
    """
    firsts, widths = read8(of_tables, _FIRST), read8(of_tables, _WIDTH)
    key_columns, name_ends = read8(of_tables, _IS_KEY), read8(of_tables, _NAME_ENDS)
    kinds, starts, lengths = read8(side, _KINDS), read8(side, _STARTS), read8(side, _LENGTHS)
    names, ends_of_names = read8(to, _NAMES), read8(to, _ENDS_OF_NAMES)
    values, ends_of_values, value_bits = read8(to, _VALUES), read8(to, _ENDS_OF_VALUES), read8(to, _VALUE_BITS)
    binary_entries, binary_columns = read8(to, _BINARY_ENTRIES), read8(to, _BINARY_COLUMNS)
    ends, row_bits = read8(to, _ENDS), read8(to, _ROW_BITS)
    unsent, unsent_ends = read8(to, _UNSENT), read8(to, _UNSENT_ENDS)
    entry = names_size = values_size = nulls = binary = missing = left_out = 0
    write4(ends_of_names, 0, 0)
    write4(ends_of_values, 0, 0)
    write4(ends, 0, 0)
    write4(unsent_ends, 0, 0)
    for index in range(count):
        row, table = read8(rows, index), read4(tables, index)
        first, width = read8(firsts, table), read8(widths, table)
        cell = _first_cell(side, row)
        if cell < 0:
            missing += 1
            _clear(row_bits, index)
        else:
            if not _has_width(side, row, width):
                return index
            old_kind = 0 if old_kinds == 0 else read1(old_kinds, row)
            whole = -1
            if other != 0 and old_kind == _WHOLE:
                whole = _first_cell(other, row)
                if whole >= 0 and not _has_width(other, row, width):
                    return index
            is_key = other == 0 and old_kind == _KEY
            # Most rows have all their columns: names are copied together, or one by one once a column is left out.
            name_start = read4(name_ends, first)
            copy_to(names, names_size, all_names, name_start, read4(name_ends, first + width) - name_start)
            is_whole = True
            for column in range(width):
                name_end = read4(name_ends, first + column + 1)
                kind, start = read1(kinds, cell + column), read8(starts, cell + column)
                length = read4(lengths, cell + column)
                if kind != TEXT:
                    if kind == UNCHANGED and whole >= 0:
                        kind = read1(read8(other, _KINDS), whole + column)
                        start = read8(read8(other, _STARTS), whole + column)
                        length = read4(read8(other, _LENGTHS), whole + column)
                    if kind == UNCHANGED and other != 0:
                        write4(unsent, left_out, first + column)
                        left_out += 1
                        is_whole, name_start = False, name_end
                        continue
                    if is_key and kind == NULL and not read1(key_columns, first + column):
                        is_whole, name_start = False, name_end
                        continue
                    if kind == BINARY:
                        write4(binary_entries, binary, entry)
                        write4(binary_columns, binary, first + column)
                        binary += 1
                    elif kind != TEXT:
                        nulls += 1
                        length = 0
                        _clear(value_bits, entry)
                if not is_whole:
                    copy_to(names, names_size, all_names, name_start, name_end - name_start)
                names_size += name_end - name_start
                name_start = name_end
                copy_to(values, values_size, data, start, length)
                values_size += length
                entry += 1
                write4(ends_of_names, entry, names_size)
                write4(ends_of_values, entry, values_size)
        write4(ends, index + 1, entry)
        write4(unsent_ends, index + 1, left_out)
    write8(found, 0, entry)
    write8(found, 1, names_size)
    write8(found, 2, values_size)
    write8(found, 3, nulls)
    write8(found, 4, binary)
    write8(found, 5, missing)
    write8(found, 6, left_out)
    return -1


@compiled
def find_keys(tables: int, count: int, key_columns: int, key_ends: int, columns: int, ends: int) -> int:
    """Note the key columns of tables one after another, and the end of each table's. Returns their number."""
    found = 0
    write4(ends, 0, 0)
    for index in range(count):
        table = read4(tables, index)
        for place in range(read8(key_ends, table), read8(key_ends, table + 1)):
            write4(columns, found, read4(key_columns, place))
            found += 1
        write4(ends, index + 1, found)
    return found


@compiled
def find_names(numbers: int, count: int, name_ends: int, ends: int) -> int:
    """Note the end of each number's name, one after another. Returns the names' total bytes."""
    size = 0
    write4(ends, 0, 0)
    for index in range(count):
        number = read4(numbers, index)
        size += read4(name_ends, number + 1) - read4(name_ends, number)
        write4(ends, index + 1, size)
    return size


@compiled
def copy_names(numbers: int, count: int, names: Any, name_ends: int, to: int, ends: int) -> None:
    """Copy names up to their ends; adjacent names, as of a whole row, are copied together."""
    index = 0
    while index < count:
        start, number = index, read4(numbers, index)
        index += 1
        while index < count and read4(numbers, index) == number + index - start:
            index += 1
        place = read4(ends, start)
        copy_to(to, place, names, read4(name_ends, number), read4(ends, index) - place)
