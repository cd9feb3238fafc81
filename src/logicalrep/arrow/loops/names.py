"""Names, key columns and texts, one after another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logicalrep.arrow.loops.choosing import native_if_installed
from logicalrep_runtime.columnar.located import Bytes, Int64s

Int32s = NDArray[np.int32]


@native_if_installed
def find_keys(tables: Int32s, key_columns: Int32s, key_ends: Int64s, columns: Int32s, ends: Int32s) -> int:
    """Write the key columns of tables one after another, and the end of each table's; return their number."""
    ends[0] = 0
    np.cumsum(np.diff(key_ends)[tables], out=ends[1:])
    for table, start, end in zip(tables.tolist(), ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        columns[start:end] = key_columns[key_ends[table] : key_ends[table + 1]]
    return int(ends[-1])


@native_if_installed
def find_names(numbers: Int32s, name_ends: Int32s, ends: Int32s) -> int:
    """Write the end of each number's name, one after another; return the names' total bytes."""
    ends[0] = 0
    np.cumsum(np.diff(name_ends)[numbers], out=ends[1:])
    return int(ends[-1])


@native_if_installed
def copy_names(numbers: Int32s, names: Bytes, name_ends: Int32s, to: Bytes, ends: Int32s) -> None:
    """Copy names up to their ends."""
    characters, starts = names.tobytes(), name_ends.tolist()
    copies = b"".join([characters[starts[number] : starts[number + 1]] for number in numbers.tolist()])
    to[: ends[len(numbers)]] = np.frombuffer(copies, np.uint8)


@native_if_installed
def are_utf8(texts: Bytes, ends: Int32s) -> bool:
    """Return whether all adjacent texts are UTF-8. `ends` has 0, then the end of each text."""
    data = texts[: ends[-1]]
    try:
        data.tobytes().decode()
    except UnicodeDecodeError:
        return False
    # If all texts together are UTF-8, so is each text that does not begin in the middle of a character.
    return not (data[ends[ends < len(data)]] & 0xC0 == 0x80).any()
