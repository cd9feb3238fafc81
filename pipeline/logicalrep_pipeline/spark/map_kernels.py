"""The compiled loops that make maps of rows: first which entries there are, then their bytes.

Arrays are given by their addresses, as everywhere in compiled kernels: see logicalrep.columnar.memory.
"""

from __future__ import annotations

from typing import Any

from logicalrep.columnar.memory import compiled, copy, inlined, read1, read4, read8, write1, write4, write8
from logicalrep_pipeline.changes import BINARY, NULL, TEXT, UNCHANGED

_KEY, _WHOLE = map(ord, "KO")
NO_VALUE = (1 << 32) - 1
"""The length of an entry whose value is null."""

_OFFSETS, _VALIDITY, _KINDS, _STARTS, _LENGTHS = range(5)
"""A side: the addresses of what a walk found of the old or the new rows of a batch; `_OFFSETS` is 0 for none."""

_FIRST, _WIDTH, _IS_KEY = range(3)
"""Of the tables: the addresses of the number of each one's first column among all, and of how many each has; and of a
byte for each column, whether it is of the key."""

_COLUMNS, _STARTS_OF, _LENGTHS_OF, _KINDS_OF, _ENDS, _UNSENT, _UNSENT_ENDS = range(7)
"""Of the entries: the addresses of the number of each one's column, where its value is, and the value's kind; of where
each row's entries end; of the columns whose values were not sent, and of where each row's such columns end."""


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
    rows: int, count: int, tables: int, of_tables: int, side: int, other: int, old_kinds: int, entries: int
) -> tuple[int, int, int, int, int, int]:  # fmt: skip
    """Find the entries of the old or new rows of messages.

    `rows` are the messages' indices in the batch, `tables` the numbers of their tables, `of_tables` what is known of
    those. `side` is the rows that are wanted and `other`, for new rows, the old ones, from which a value comes
    that was not sent, if the old row is whole; 0 for old rows. `old_kinds` is each message's kind of old row in the
    batch, or 0 where none has any. Where an old row is a key, it has the key's columns and those with a value.

    Returns how many entries there are, how many columns that were not sent; how many bytes the entries' values have,
    how many are null, how many in binary format; and which of the rows has another number of values than its table has
    columns, -1 if none.
    """
    columns, starts, lengths = read8(entries, _COLUMNS), read8(entries, _STARTS_OF), read8(entries, _LENGTHS_OF)
    entry_kinds, ends = read8(entries, _KINDS_OF), read8(entries, _ENDS)
    unsent, unsent_ends = read8(entries, _UNSENT), read8(entries, _UNSENT_ENDS)
    found = 0
    left_out = 0
    size = 0
    nulls = 0
    binary = 0
    write4(ends, 0, 0)
    write4(unsent_ends, 0, 0)
    for index in range(count):
        row, table = read8(rows, index), read8(tables, index)
        first, width = read8(read8(of_tables, _FIRST), table), read8(read8(of_tables, _WIDTH), table)
        cell = _first_cell(side, row)
        if cell >= 0:
            if not _has_width(side, row, width):
                return found, left_out, size, nulls, binary, index
            old_kind = 0 if old_kinds == 0 else read1(old_kinds, row)
            whole = -1
            if other != 0 and old_kind == _WHOLE:
                whole = _first_cell(other, row)
                if whole >= 0 and not _has_width(other, row, width):
                    return found, left_out, size, nulls, binary, index
            is_key = other == 0 and old_kind == _KEY
            for column in range(width):
                source, place = side, cell + column
                kind = read1(read8(source, _KINDS), place)
                if kind == UNCHANGED and whole >= 0:
                    source, place = other, whole + column
                    kind = read1(read8(source, _KINDS), place)
                if kind == UNCHANGED and other != 0:
                    write4(unsent, left_out, first + column)
                    left_out += 1
                    continue
                if is_key and kind == NULL and not read1(read8(of_tables, _IS_KEY), first + column):
                    continue
                length = NO_VALUE
                if kind in (TEXT, BINARY):
                    length = read4(read8(source, _LENGTHS), place)
                    size += length
                    binary += kind == BINARY
                else:
                    nulls += 1
                write4(columns, found, first + column)
                write8(starts, found, read8(read8(source, _STARTS), place))
                write4(lengths, found, length)
                write1(entry_kinds, found, kind)
                found += 1
        write4(ends, index + 1, found)
        write4(unsent_ends, index + 1, left_out)
    return found, left_out, size, nulls, binary, -1


@compiled
def find_keys(tables: int, count: int, key_columns: int, key_ends: int, columns: int, ends: int) -> None:
    """Note the columns of the keys of tables one after another, and where each table's end."""
    found = 0
    write4(ends, 0, 0)
    for index in range(count):
        table = read8(tables, index)
        for place in range(read8(key_ends, table), read8(key_ends, table + 1)):
            write4(columns, found, read4(key_columns, place))
            found += 1
        write4(ends, index + 1, found)


@compiled
def find_names(columns: int, count: int, name_ends: int, ends: int) -> int:
    """Note where the name of each column ends, one after another; returns how many bytes they have."""
    size = 0
    write4(ends, 0, 0)
    for index in range(count):
        column = read4(columns, index)
        size += read4(name_ends, column + 1) - read4(name_ends, column)
        write4(ends, index + 1, size)
    return size


@compiled
def copy_names(columns: int, count: int, names: Any, name_ends: int, to: Any, ends: int) -> None:
    """Copy the names of columns to where `find_names` has them end."""
    for index in range(count):
        place = read4(ends, index)
        start = read4(name_ends, read4(columns, index))
        copy(to, place, names, start, read4(ends, index + 1) - place, len(to))


@compiled
def copy_values(data: Any, starts: int, lengths: int, count: int, to: Any, start: int, size: int, ends: int) -> None:
    """Copy values one after another to `start`, where there is room for `size` bytes, and note where each ends."""
    place = 0
    write4(ends, 0, 0)
    for index in range(count):
        length = read4(lengths, index)
        if length != NO_VALUE:
            copy(to, start + place, data, read8(starts, index), length, start + size)
            place += length
        write4(ends, index + 1, place)
