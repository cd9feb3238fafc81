"""The columns that the native loops load, as records of an array: the loader, the source and the target of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from logicalrep.values.native_loaders import NativeLoader

WIDTHS = dict.fromkeys(NativeLoader, 8) | {
    NativeLoader.NONE: 0,
    NativeLoader.BOOLEAN: 1,
    NativeLoader.INT16: 2,
    NativeLoader.INT32: 4,
    NativeLoader.DATE: 4,
    NativeLoader.FLOAT32: 4,
    NativeLoader.DECIMAL: 16,
    **dict.fromkeys((NativeLoader.STRING, NativeLoader.UUID, NativeLoader.NUMBER, NativeLoader.BYTES), 4),
}
"""The bytes of a value, or of a text's offset."""


class NativeColumn(NamedTuple):
    """A column to load, as in `native/src/loaders.c`. Offsets in the block of output count items of the array there."""

    code: int
    width: int
    precision: int
    scale: int
    ordinal: int
    side: int
    """The column's side: 0 or 1, old or new rows."""
    first: int
    """The first of the rows in `RowCells` that have the column."""
    having: int
    changes: int
    states: int
    """The offset of the states, of 8 bits."""
    validity: int
    values: int
    texts: int
    total: int
    """The bytes of its texts: an upper limit first, the exact number in the end."""
    next: int
    valued: int


FIXED = 5
"""The number of fields that are equal for all rows."""

COLUMN = np.dtype([(name, np.int64) for name in NativeColumn._fields])
