"""Maps from column names to values, for the old or new rows of many messages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from logicalrep.arrow.loops.choosing import native_if_installed
from logicalrep.arrow.loops.joining import write_joined
from logicalrep.transactions.tags import BINARY, KEY, NULL, TEXT, UNCHANGED, WHOLE_ROW
from logicalrep_runtime.columnar.located import Bytes, Int64s


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


@native_if_installed
def fill_maps(
    rows: Int64s,
    tables: NDArray[np.int32],
    columns: Columns,
    side: Side,
    other: Side,
    are_new: bool,
    old_kinds: Bytes,
    data: Bytes,
    to: Entries,
) -> tuple[int, ...]:
    """Fill the maps of the old or new rows of messages. Returns the Sizes.

    `rows` has the messages' indices in the batch, `tables` their table numbers. `side` is the wanted rows. `are_new`
    says whether they are new rows. For new rows `other` is the old rows, and empty if no message has one: a value
    that was not sent is taken from a whole old row. For old rows `other` is empty. `old_kinds` has each message's
    kind of old row in the batch, or is empty if no message has one. An old row that is a key gets the key's columns
    and the columns with a value. `data` is the batch's bytes.
    """
    first, widths, is_key = columns.first.tolist(), columns.widths.tolist(), columns.is_key.tolist()
    sent, old, bytes_ = _values(side, rows), _values(other, rows), data.tobytes()
    filled: list[tuple[int, bytes]] = []
    nulls: list[int] = []
    binary: list[tuple[int, int]] = []
    unsent: list[int] = []
    ends, unsent_ends, missing, wrong = [0], [0], 0, -1
    for index, (row, table) in enumerate(zip(rows.tolist(), tables.tolist(), strict=True)):
        values, old_kind, whole = sent.get(row), int(old_kinds[row]) if len(old_kinds) else 0, None
        if values is None:
            missing += 1
            _clear(to.row_bits, index)
        elif are_new and old_kind == WHOLE_ROW:
            whole = old.get(row)
        if any(row_values is not None and len(row_values) != widths[table] for row_values in (values, whole)):
            wrong = index
            break
        for number, (kind, start, length) in enumerate(values or ()):
            column = first[table] + number
            if kind == UNCHANGED and whole is not None:
                kind, start, length = whole[number]
            if kind == UNCHANGED and are_new:
                unsent.append(column)
            elif kind in (TEXT, BINARY):
                if kind == BINARY:
                    binary.append((len(filled), column))
                filled.append((column, bytes_[start : start + length]))
            elif kind != NULL or are_new or old_kind != KEY or is_key[column]:
                nulls.append(len(filled))
                filled.append((column, b""))
        ends.append(len(filled))
        unsent_ends.append(len(unsent))
    for entry in nulls:
        _clear(to.value_bits, entry)
    name_ends, characters = columns.name_ends.tolist(), columns.names.tobytes()
    names = [characters[name_ends[column] : name_ends[column + 1]] for column, _ in filled]
    names_size = write_joined(names, to.name_ends, to.names)
    values_size = write_joined([value for _, value in filled], to.value_ends, to.values)
    entries, binary_columns = zip(*binary, strict=True) if binary else ((), ())
    for target, numbers in (
        (to.binary_entries, entries),
        (to.binary_columns, binary_columns),
        (to.ends, ends),
        (to.unsent, unsent),
        (to.unsent_ends, unsent_ends),
    ):
        target[: len(numbers)] = numbers
    return len(filled), names_size, values_size, len(nulls), len(binary), missing, len(unsent), wrong


def _clear(bits: Bytes, index: int) -> None:
    bits[index >> 3] &= ~(1 << (index & 7)) & 0xFF


def _values(side: Side, rows: Int64s) -> dict[int, list[tuple[int, int, int]]]:
    """Return the kinds, starts and lengths of the values of each of the messages that has such a row."""
    if not len(side.offsets) or not len(rows):
        return {}
    first = int(rows.min())
    offsets = side.offsets[first : int(rows.max()) + 2].tolist()
    base = offsets[0]
    arrays = (array[base : offsets[-1]].tolist() for array in (side.kinds, side.starts, side.lengths))
    values = list(zip(*arrays, strict=True))
    present = rows[(side.validity[rows >> 3] >> (rows & 7) & 1).astype(bool)].tolist()
    return {row: values[offsets[row - first] - base : offsets[row - first + 1] - base] for row in present}
