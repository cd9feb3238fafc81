"""Integer types: log positions, times, object and transaction ids."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NewType, Self

Buffer = bytes | bytearray | memoryview

Oid = NewType("Oid", int)
"""The number of a catalog object, 0 to 2^32-1."""

TransactionId = NewType("TransactionId", int)
"""A transaction id without its epoch, 0 to 2^32-1. It wraps around, so a larger id need not be newer."""

_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})", re.ASCII)
_MICROSECONDS = re.compile(r"(-?[0-9]+) microseconds since 2000-01-01")
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""PostgreSQL's epoch, from which it counts microseconds."""
UNIX_EPOCH = 946_684_800_000_000
"""PostgreSQL's epoch in microseconds since 1970-01-01, as Unix and Arrow count."""
_MICROSECOND = timedelta(microseconds=1)


class Lsn(int):
    """A position in the write-ahead log, in bytes: an integer with PostgreSQL's notation, `16/B374D848`.

    Example:
        >>> int(Lsn("0/10")), str(Lsn(17))
        (16, '0/11')
    """

    __slots__ = ()

    def __new__(cls, value: int | str) -> Self:
        """Convert a number or a text such as `16/B374D848`. Raises ValueError for an invalid number or text."""
        if isinstance(value, str):
            match = _LSN.fullmatch(value)
            if match is None:
                raise ValueError(f"{value!r} is not an LSN; expected two hexadecimal numbers, as in 16/B374D848")
            value = int(match[1], 16) << 32 | int(match[2], 16)
        if not 0 <= value < 1 << 64:
            raise ValueError(f"{value} is not an LSN; expected 0 to 2^64-1")
        return super().__new__(cls, value)

    def __str__(self) -> str:
        return f"{self >> 32:X}/{self & 0xFFFFFFFF:X}"

    def __repr__(self) -> str:
        return f"Lsn('{self}')"

    def __format__(self, specification: str) -> str:
        return format(int(self), specification) if specification else str(self)


lsn_of: Callable[[int], Lsn] = partial(int.__new__, Lsn)
"""Make an Lsn from an unsigned 64-bit integer without a check, for decoders."""


class TimestampTz(int):
    """A point in time: an integer in microseconds since 2000-01-01 00:00:00 UTC, with a property `datetime`.

    Example:
        >>> TimestampTz(1_000_000).datetime
        datetime.datetime(2000, 1, 1, 0, 0, 1, tzinfo=datetime.timezone.utc)
    """

    __slots__ = ()

    @classmethod
    def from_datetime(cls, moment: datetime) -> Self:
        """Convert a datetime. Raises ValueError if it has no time zone."""
        if moment.tzinfo is None:
            raise ValueError(f"{moment!r} has no time zone")
        return cls((moment - EPOCH) // _MICROSECOND)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Convert a text of `str(time)`, or another ISO 8601 text with a time zone. Raises ValueError."""
        match = _MICROSECONDS.fullmatch(text)
        return cls(match[1]) if match is not None else cls.from_datetime(datetime.fromisoformat(text))

    @property
    def datetime(self) -> datetime:
        """The point in time in UTC. Raises OverflowError outside the years 1 to 9999."""
        return EPOCH + timedelta(microseconds=int(self))

    def __str__(self) -> str:
        """Return ISO 8601 in UTC, or the number of microseconds outside the years 1 to 9999."""
        try:
            return self.datetime.isoformat().replace("+00:00", "Z")
        except OverflowError:
            return f"{int(self)} microseconds since 2000-01-01"

    def __repr__(self) -> str:
        return f"TimestampTz({int(self)})"

    def __format__(self, specification: str) -> str:
        return format(int(self), specification) if specification else str(self)
