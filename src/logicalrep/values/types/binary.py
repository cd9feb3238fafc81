"""A reader of PostgreSQL's binary (send) format, which checks every length, and loaders of fixed layouts and texts."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

__all__ = ["BinaryReader", "FromBinary", "FromText", "ToText", "fixed", "matching"]

# A type's loaders, from its text and from its bytes in the encoding of a session, and its text of a loaded value.
FromText = Callable[[str], object]
FromBinary = Callable[[bytes, str], object]
ToText = Callable[[Any], str]


class BinaryReader:
    """A value's bytes and the position of the reader. Every mismatch raises ValueError."""

    __slots__ = ("data", "offset")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.offset = 0

    @property
    def remaining(self) -> int:
        return len(self.data) - self.offset

    def take(self, length: int) -> bytes:
        if not 0 <= length <= self.remaining:
            raise ValueError(f"length {length} at byte {self.offset}, where {self.remaining} bytes are left")
        start = self.offset
        self.offset = start + length
        return self.data[start : self.offset]

    def uint8(self) -> int:
        return self.take(1)[0]

    def int16(self) -> int:
        return int.from_bytes(self.take(2), "big", signed=True)

    def uint16(self) -> int:
        return int.from_bytes(self.take(2), "big")

    def int32(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def uint32(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def count(self, least: int) -> int:
        """Read an Int32 count of items of at least `least` bytes each, which the remaining bytes bound."""
        count = self.int32()
        if not 0 <= count * least <= self.remaining:
            raise ValueError(f"count {count}, where {self.remaining} bytes are left")
        return count

    def field(self) -> bytes | None:
        """Read a value after its Int32 length; None for length -1, which is NULL."""
        length = self.int32()
        return None if length == -1 else self.take(length)

    def string(self) -> bytes:
        end = self.data.find(b"\0", self.offset)
        if end < 0:
            raise ValueError(f"no zero byte ends the string at byte {self.offset}")
        start, self.offset = self.offset, end + 1
        return self.data[start:end]

    def end(self) -> None:
        if self.remaining:
            raise ValueError(f"{self.remaining} bytes too many")


def fixed(layout: str, make: Callable[..., object] | None = None) -> FromBinary:
    """Return a binary loader for values of fixed length: `layout` as in `struct`, big-endian.

    `make` takes the parts of the layout; without `make` the layout has one part, the value.
    """
    structure = struct.Struct(f"!{layout}")
    size, unpack = structure.size, structure.unpack

    def load(value: bytes, encoding: str) -> object:
        if len(value) != size:
            raise ValueError(f"{len(value)} bytes where there should be {size}")
        parts = unpack(value)
        return parts[0] if make is None else make(*parts)

    return load


def matching(form: str, kind: str) -> Callable[[str], str]:
    """Return the loader of texts that match a regular expression, unchanged; it refuses other texts as not `kind`."""
    matches = re.compile(form).fullmatch

    def load(text: str) -> str:
        if not matches(text):
            raise ValueError(f"not {kind}")
        return text

    return load
