"""The compiled loops that make maps of rows: first which entries there are, then their bytes.

Arrays are given by their addresses, as everywhere in compiled kernels: see logicalrep.columnar.memory.
"""

from __future__ import annotations

from typing import Any

from logicalrep.columnar.memory import compiled, copy_to, inlined, read1, read4, read8, write1, write4, write8
from logicalrep_pipeline.changes import BINARY, NULL, TEXT, UNCHANGED

_KEY, _WHOLE = map(ord, "KO")

_OFFSETS, _VALIDITY, _KINDS, _STARTS, _LENGTHS = range(5)
"""A side: the addresses of what a walk found of the old or the new rows of a batch; `_OFFSETS` is 0 for none."""

_FIRST, _WIDTH, _IS_KEY, _NAME_ENDS = range(4)
"""Of the tables: the addresses of the number of each one's first column among all, and of how many each has; and for
each column of a byte that says whether it is of the key, and of where its name begins and, last, where all end."""

_COLUMNS, _NAMES_OF, _STARTS_OF, _KINDS_OF, _VALUES, _VALUE_BITS, _ENDS, _ROW_BITS, _UNSENT, _UNSENT_ENDS = range(10)
"""Of the entries: the addresses of the number of each one's column and where its name ends; of where its value is, the
value's kind, where it ends, and in bits whether there is one. Of the rows: of where each one's entries end, and in bits
whether there is one; of the columns whose values were not sent, and of where each row's such columns end."""


@inlined
def _first_cell(side: int, row: int) -> Any:
    """The first value of a message's row; -1 if it has no such row."""
    if read8(side, _OFFSETS) == 0 or not read1(read8(side, _VALIDITY), row >> 3) >> (row & 7) & 1:
        return -1
    return read8(read8(side, _OFFSETS), row)


@inlined
def _has_width(side: int, row: int, width: int) -> Any:
    offsets = read8(side, _OFFSETS)
    return read8(offsets, row + 1) - read8(offsets, row) == width


@compiled
def find_entries(
    rows: int, count: int, tables: int, of_tables: int, side: int, other: int, old_kinds: int, entries: int, found: int
) -> int:  # fmt: skip
    """Find the entries of the old or new rows of messages.

    `rows` are the messages' indices in the batch, `tables` the numbers of their tables, `of_tables` what is known of
    those. `side` is the rows that are wanted and `other`, for new rows, the old ones, from which a value comes
    that was not sent, if the old row is whole; 0 for old rows. `old_kinds` is each message's kind of old row in the
    batch, or 0 where none has any. Where an old row is a key, it has the key's columns and those with a value.

    `found` becomes how many entries there are, how many bytes their names have and how many their values; how many
    values are null, how many in binary format; how many rows are missing, and how many columns were not sent.
    Returns which of the rows has another number of values than its table has columns, -1 if none.
    """
    columns, names_of = read8(entries, _COLUMNS), read8(entries, _NAMES_OF)
    starts, entry_kinds = read8(entries, _STARTS_OF), read8(entries, _KINDS_OF)
    values, value_bits = read8(entries, _VALUES), read8(entries, _VALUE_BITS)
    ends, row_bits = read8(entries, _ENDS), read8(entries, _ROW_BITS)
    unsent, unsent_ends = read8(entries, _UNSENT), read8(entries, _UNSENT_ENDS)
    firsts, widths = read8(of_tables, _FIRST), read8(of_tables, _WIDTH)
    key_columns, name_ends = read8(of_tables, _IS_KEY), read8(of_tables, _NAME_ENDS)
    side_kinds, side_starts, side_lengths = read8(side, _KINDS), read8(side, _STARTS), read8(side, _LENGTHS)
    entry = names = size = nulls = binary = missing = left_out = 0
    there = full = 0
    write4(names_of, 0, 0)
    write4(values, 0, 0)
    write4(ends, 0, 0)
    write4(unsent_ends, 0, 0)
    for index in range(count):
        row, table = read8(rows, index), read4(tables, index)
        first, width = read8(firsts, table), read8(widths, table)
        cell = _first_cell(side, row)
        if cell < 0:
            missing += 1
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
            name_end = read4(name_ends, first)
            for column in range(width):
                name_start, name_end = name_end, read4(name_ends, first + column + 1)
                kind = read1(side_kinds, cell + column)
                from_old = kind == UNCHANGED and whole >= 0
                if from_old:
                    kind = read1(read8(other, _KINDS), whole + column)
                if kind == UNCHANGED and other != 0:
                    write4(unsent, left_out, first + column)
                    left_out += 1
                    continue
                if is_key and kind == NULL and not read1(key_columns, first + column):
                    continue
                if kind in (TEXT, BINARY):
                    if from_old:
                        write8(starts, entry, read8(read8(other, _STARTS), whole + column))
                        size += read4(read8(other, _LENGTHS), whole + column)
                    else:
                        write8(starts, entry, read8(side_starts, cell + column))
                        size += read4(side_lengths, cell + column)
                    full |= 1 << (entry & 7)
                    binary += kind == BINARY
                else:
                    nulls += 1
                names += name_end - name_start
                write4(columns, entry, first + column)
                write1(entry_kinds, entry, kind)
                write4(names_of, entry + 1, names)
                write4(values, entry + 1, size)
                if entry & 7 == 7:
                    write1(value_bits, entry >> 3, full)
                    full = 0
                entry += 1
            there |= 1 << (index & 7)
        write4(ends, index + 1, entry)
        write4(unsent_ends, index + 1, left_out)
        if index & 7 == 7:
            write1(row_bits, index >> 3, there)
            there = 0
    if entry & 7:
        write1(value_bits, entry >> 3, full)
    if count & 7:
        write1(row_bits, count >> 3, there)
    write8(found, 0, entry)
    write8(found, 1, names)
    write8(found, 2, size)
    write8(found, 3, nulls)
    write8(found, 4, binary)
    write8(found, 5, missing)
    write8(found, 6, left_out)
    return -1


@compiled
def find_keys(tables: int, count: int, key_columns: int, key_ends: int, columns: int, ends: int) -> int:
    """Note the columns of the keys of tables one after another, and where each table's end; returns how many."""
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
    """Note where the name of each number ends, one after another; returns how many bytes they have."""
    size = 0
    write4(ends, 0, 0)
    for index in range(count):
        number = read4(numbers, index)
        size += read4(name_ends, number + 1) - read4(name_ends, number)
        write4(ends, index + 1, size)
    return size


@compiled
def copy_names(numbers: int, count: int, names: Any, name_ends: int, to: int, ends: int) -> None:
    """Copy names to where they are to end; those that lie one after another, as of a whole row, together."""
    index = 0
    while index < count:
        start, number = index, read4(numbers, index)
        index += 1
        while index < count and read4(numbers, index) == number + index - start:
            index += 1
        place = read4(ends, start)
        copy_to(to, place, names, read4(name_ends, number), read4(ends, index) - place)


@compiled
def copy_values(data: Any, starts: int, count: int, to: int, ends: int) -> None:
    """Copy values one after another to where they are to end; nothing of those that are empty or null."""
    place = 0
    for index in range(count):
        end = read4(ends, index + 1)
        if end > place:
            copy_to(to, place, data, read8(starts, index), end - place)
            place = end
