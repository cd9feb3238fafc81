"""The positions of all values in a batch, located by a walk. Arrow arrays are made from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Int64s = NDArray[np.int64]
Ints = NDArray[np.integer[Any]]
_Number = TypeVar("_Number", bound=np.number[Any])
Records = NDArray[np.void]
Record = Any

TAKEN = 0
REFUSED = -1
FULL = -2
UNKNOWN = -3
OUTSIDE = -4
"""A native walk's result: the message was read; is invalid; needs more memory; has a tag without columns; or lies
outside of the batch's data."""

UTF8 = 1 << 8
"""The bit, next to the session facts' bits, that makes native walks check texts as UTF-8."""

REFUSED_BIT = 0x80
"""The bit of a refused row's status; the other bits are the session facts at that row."""

PADDING = 64
"""The number of bytes required before and behind texts that are checked together."""


@dataclass(slots=True)
class Spans:
    """The positions of one column's values of varying length. Valid until the walk's memory is returned."""

    triples: Int64s
    """Three 64-bit integers for each value: its row, its start in `Located.data`, and its length in bytes (for a list,
    its number of items)."""
    size: int

    @property
    def rows(self) -> Int64s:
        return self.triples[:, 0]

    @property
    def starts(self) -> Int64s:
        return self.triples[:, 1]

    @property
    def lengths(self) -> Int64s:
        return self.triples[:, 2]


@dataclass(slots=True)
class Cells:
    """Cells, one row after the other. Valid until the walk's memory is returned."""

    offsets: Int64s
    """The index of each message's first value, and last the number of values."""
    kinds: Bytes
    starts: Int64s
    lengths: NDArray[np.uint32]
    size: int


@dataclass(slots=True)
class CopiedCells:
    """Cells as copies made by the walk: buffers for Arrow."""

    offsets: pa.Buffer
    """The index of each message's first value, and last the number of values."""
    kinds: pa.Buffer
    starts: pa.Buffer
    """The start of each value among the copied bytes, and last the end of all."""
    values: pa.Buffer


@dataclass(slots=True)
class Located:
    """A located batch. Columns that no message has are missing from the mappings."""

    count: int
    """The number of located messages; if the walk stopped at a refused message, the number before it."""
    tags: Bytes
    """Each message's tag; 0 for a refused message."""
    status: Bytes
    """0 for a message that was read; for a refused one REFUSED_BIT and the session facts at that row."""
    facts: int
    stopped: bool = False
    data: Bytes = field(default_factory=lambda: np.empty(0, np.uint8))
    """The bytes that positions refer to: the batch's data, or copies of the values."""
    lent: Callable[[], None] | None = None
    fixed: dict[int, Ints] = field(default_factory=dict)
    spans: dict[int, Spans] = field(default_factory=dict)
    cells: dict[int, Cells] = field(default_factory=dict)
    copied: dict[int, CopiedCells] = field(default_factory=dict)
    items: dict[int, dict[str, Ints | Spans]] = field(default_factory=dict)
    """The fields of the items of lists by the column's number, if the walk has read them already."""
    validity: dict[int, Bytes] = field(default_factory=dict)
    """Arrow validity bitmaps by the column's number: the messages that have the column."""

    def give_back(self) -> None:
        self.spans, self.cells = {}, {}
        if self.lent is not None:
            self.lent()
            self.lent = None


def check_offsets(data: Ints, offsets: Ints) -> None:
    """Raise ValueError for a message that lies outside the data, or begins before the previous one ends."""
    wrong = np.flatnonzero((offsets[1:] < offsets[:-1]) | (offsets[1:] > len(data)) | (offsets[:-1] < 0))
    if len(wrong):
        raise ValueError(f"the offsets of message {wrong[0]} do not lie within the batch's data")


def room(count: int, dtype: type[_Number] | np.dtype[_Number]) -> NDArray[_Number]:
    """Return an uninitialized array in memory from Arrow's pool, which reuses it."""
    dtype = np.dtype(dtype)
    return np.frombuffer(pa.allocate_buffer(count * dtype.itemsize), dtype)


def zeros(count: int, dtype: type[_Number]) -> NDArray[_Number]:
    array = room(count, dtype)
    array.fill(0)
    return array


def padded_room(size: int) -> Bytes:
    """Return uninitialized bytes with PADDING zero bytes before and behind them."""
    array = room(size + 2 * PADDING, np.uint8)
    array[:PADDING] = array[-PADDING:] = 0
    return array
