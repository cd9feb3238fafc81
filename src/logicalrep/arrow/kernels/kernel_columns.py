"""The columns that compiled loops load, as records of an array: how each is loaded, from where, and to where."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

(
    OTHER,
    INT16,
    INT32,
    INT64,
    OID,
    BOOLEAN,
    FLOAT32,
    FLOAT64,
    DECIMAL,
    DATE,
    TIMESTAMP,
    TIMESTAMPTZ,
    STRING,
    UUID,
    NUMBER,
    BYTES,
) = range(16)
"""The codes of the results that a column can have: OTHER leaves all of its values; from STRING on results are texts or
bytes; UUID and NUMBER are strings of that form."""

WIDTHS = {OTHER: 0, BOOLEAN: 1, INT16: 2, INT32: 4, DATE: 4, FLOAT32: 4, DECIMAL: 16} | dict.fromkeys(
    (STRING, UUID, NUMBER, BYTES), 4
)
"""The bytes of a value, or of a text's offset; 8 for all other codes."""


class KernelColumn(NamedTuple):
    """A column that is loaded. Offsets in the block of output are counted in items of the array that has them there."""

    code: int
    width: int
    """The bytes of a value or offset."""
    precision: int
    scale: int
    """Those of a decimal."""
    ordinal: int
    """The column's index in its table."""
    side: int
    """0 or 1: the side, old or new rows, that it is a column of."""
    first: int
    """The first of the rows in `RowCells` that have the column."""
    having: int
    """The number of these."""
    changes: int
    """The number of all rows."""
    states: int
    """The offset of the states, of 8 bits."""
    validity: int
    """The offset of the validity bits, in integers of 32 bits."""
    values: int
    """The offset of the values, or of the offsets of texts, in items of its width."""
    texts: int
    """The start of its texts among all texts."""
    total: int
    """The bytes of its texts, at most and in the end."""
    next: int
    """The offset of its next text."""
    valued: int
    """The number of its values in the end."""


FIXED = 5
"""The number of fields that are the same for all rows."""

COLUMN = np.dtype([(name, np.int64) for name in KernelColumn._fields])
"""A record of the array that compiled loops are given."""
