"""Numbers that know what they are: log positions, times, object and transaction ids."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NewType, Self

Buffer = bytes | bytearray | memoryview
"""What the codecs read from."""

Oid = NewType("Oid", int)
"""The number of a catalog object, 0 to 2^32-1."""

TransactionId = NewType("TransactionId", int)
"""A transaction id without its epoch, 0 to 2^32-1; it wraps around, so a larger one need not be newer."""

_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})", re.ASCII)
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""PostgreSQL's epoch, from which it counts microseconds."""
UNIX_EPOCH = 946_684_800_000_000
"""PostgreSQL's epoch in microseconds since 1970-01-01, as Unix and Arrow count."""
_MICROSECOND = timedelta(microseconds=1)


class Lsn(int):
    """A position in the write-ahead log: an integer, in bytes, that reads and prints as PostgreSQL's `16/B374D848`."""

    __slots__ = ()

    def __new__(cls, value: int | str) -> Self:
        """A position from its number or its text; ValueError if it is none."""
        if isinstance(value, str):
            match = _LSN.fullmatch(value)
            if match is None:
                raise ValueError(f"{value!r} is no LSN; two hexadecimal numbers are expected, as in 16/B374D848")
            value = int(match[1], 16) << 32 | int(match[2], 16)
        if not 0 <= value < 1 << 64:
            raise ValueError(f"{value} is no LSN; 0 to 2^64-1 is expected")
        return super().__new__(cls, value)

    def __str__(self) -> str:
        return f"{self >> 32:X}/{self & 0xFFFFFFFF:X}"

    def __repr__(self) -> str:
        return f"Lsn('{self}')"

    def __format__(self, specification: str) -> str:
        return format(int(self), specification) if specification else str(self)


lsn_of: Callable[[int], Lsn] = partial(int.__new__, Lsn)
"""An Lsn from eight unsigned bytes, which are always one: for decoders, that have nothing to check."""


class TimestampTz(int):
    """A point in time: an integer, in microseconds since 2000-01-01 00:00:00 UTC, that also gives a datetime."""

    __slots__ = ()

    @classmethod
    def from_datetime(cls, moment: datetime) -> Self:
        """The same point in time; ValueError if the datetime has no time zone."""
        if moment.tzinfo is None:
            raise ValueError(f"{moment!r} has no time zone")
        return cls((moment - EPOCH) // _MICROSECOND)

    @property
    def datetime(self) -> datetime:
        """The same point in time, in UTC; OverflowError outside the years 1 to 9999."""
        return EPOCH + timedelta(microseconds=int(self))

    def __str__(self) -> str:
        """ISO 8601 in UTC; the number of microseconds where a datetime cannot hold it."""
        try:
            return self.datetime.isoformat().replace("+00:00", "Z")
        except OverflowError:
            return f"{int(self)} microseconds since 2000-01-01"

    def __repr__(self) -> str:
        return f"TimestampTz({int(self)})"

    def __format__(self, specification: str) -> str:
        return format(int(self), specification) if specification else str(self)
