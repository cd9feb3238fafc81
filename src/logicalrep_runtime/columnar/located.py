"""What a kernel finds in a batch: every value's place, no value's copy. Arrow is made from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[Any]
"""Integers of some width."""

TAKEN = 0
REFUSED = -1
FULL = -2
UNKNOWN = -3
OUTSIDE = -4
"""What a kernel says of a message: it was read, it is no message, there is no room for its values, there are no columns
for its tag, or it does not lie within the batch's data."""

UTF8 = 1 << 8
"""Among the session's facts as bits: texts are to be checked as UTF-8."""

REFUSED_BIT = 0x80
"""In a row's status: the row was refused; the other bits are the session's facts there."""

PADDING = 64
"""How many bytes there are to be before and behind texts that are looked at together."""


@dataclass(slots=True)
class Spans:
    """Where values of varying length are, those of the rows that have one; until what was walked is given back."""

    found: Ints
    """Three integers of 64 bits for each: its row, where it begins in the batch's data, and how many bytes it has; of a
    list, how many items."""
    size: int
    """How many bytes or items there are in all."""

    @property
    def rows(self) -> Ints:
        """The rows that have one."""
        return self.found[:, 0]

    @property
    def starts(self) -> Ints:
        """Where each begins."""
        return self.found[:, 1]

    @property
    def lengths(self) -> Ints:
        """How many bytes or items each has."""
        return self.found[:, 2]


@dataclass(slots=True)
class Cells:
    """The values of rows, one after the other; until what was walked is given back."""

    offsets: Ints
    """For each message the first of its values; one more than there are messages."""
    kinds: Ints
    """Their kinds as bytes."""
    starts: Ints
    """Where the bytes of each begin in the batch's data."""
    lengths: Ints
    """How many bytes each has."""
    size: int
    """How many bytes they have together."""


@dataclass(slots=True)
class CopiedCells:
    """The values of rows, where the walk has copied them: buffers for Arrow."""

    offsets: Any
    """For each message the first of its values; one more than there are messages."""
    kinds: Any
    """Their kinds as bytes."""
    starts: Any
    """Where each begins among the bytes and, last, where all end."""
    values: Any
    """Their bytes."""


@dataclass(slots=True)
class Located:
    """A batch that was located. Columns that no message has are in none of the mappings."""

    count: int
    """How many messages were located; in a walk that stopped at a refused one, those before it."""
    tags: Ints
    """Each message's tag; 0 for one that was refused."""
    status: Ints
    """0 for each message that was read; REFUSED_BIT and the facts that held there for the others."""
    facts: int
    """The session's facts as bits after the last message."""
    stopped: bool = False
    """Whether it stopped because the next message is none."""
    lent: Callable[[], None] | None = None
    """Gives back the memory that spans and cells lie in, where a thread has lent it."""
    fixed: dict[int, Ints] = field(default_factory=dict)
    """By the column's number: each message's integer, 0 where it has none."""
    spans: dict[int, Spans] = field(default_factory=dict)
    """By the column's number."""
    cells: dict[int, Cells] = field(default_factory=dict)
    """By the column's number."""
    copied: dict[int, CopiedCells] = field(default_factory=dict)
    """By the column's number, of all that would be in `cells` otherwise."""
    validity: dict[int, NDArray[np.uint8]] = field(default_factory=dict)
    """By the column's number: which messages have it, in bits as in Arrow."""

    def give_back(self) -> None:
        """Forget spans and cells, whose memory other batches may use then."""
        self.spans, self.cells = {}, {}
        if self.lent is not None:
            self.lent()
            self.lent = None


def check_offsets(data: Ints, offsets: Ints) -> None:
    """Raise ValueError for a message that does not lie within the data, or begins before the one in front ends."""
    wrong = np.flatnonzero((offsets[1:] < offsets[:-1]) | (offsets[1:] > len(data)) | (offsets[:-1] < 0))
    if len(wrong):
        raise ValueError(f"the offsets of message {wrong[0]} do not lie within the batch's data")


def address(array: Ints) -> int:
    """Where an array's items begin; takes a seventh of the time of its `ctypes`."""
    return pa.py_buffer(array).address  # type: ignore[no-any-return]


def room(count: int, dtype: Any) -> Any:
    """An array whose values are yet to be written, in memory that Arrow's pool uses again and again."""
    dtype = np.dtype(dtype)
    return np.frombuffer(pa.allocate_buffer(count * dtype.itemsize), dtype)


def zeros(count: int, dtype: Any) -> Any:
    """The same, filled with zeros."""
    array = room(count, dtype)
    array.fill(0)
    return array


def padded_room(size: int) -> Any:
    """So many bytes that are yet to be written, with PADDING bytes of zeros before and behind them."""
    array = room(size + 2 * PADDING, np.uint8)
    array[:PADDING] = array[-PADDING:] = 0
    return array
