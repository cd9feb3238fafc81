"""Ranges and multiranges of any type."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from logicalrep.values.types.binary import BinaryReader, FromBinary, FromText, ToText

__all__ = ["Range"]


@dataclass(frozen=True, slots=True)
class Range:
    """A range of values of one type.

    Attributes:
        lower, upper: the bounds; None where the range is unbounded. An infinite date or timestamp is a bound.
        bounds: `[` or `(`, then `]` or `)`: whether the bounds belong to the range; `empty` for the empty range.
    """

    lower: Any = None
    upper: Any = None
    bounds: str = "[)"

    @property
    def is_empty(self) -> bool:
        """Whether the range is empty."""
        return self.bounds == "empty"


EMPTY = Range(bounds="empty")

# A bound is quoted as a whole or not at all.
_BOUND = r'(?:"((?:[^"\\]|\\.|"")*)"|([^"\\()\[\],\s]+))?'
_RANGE = re.compile(rf"empty|([\[(]){_BOUND},{_BOUND}([\])])", re.DOTALL | re.ASCII)
_DOUBLED = re.compile(r'\\(.)|"(")', re.DOTALL)
_TO_QUOTE = re.compile(r'["\\()\[\],\s]', re.ASCII)


class RangeText:
    """The text formats of ranges, `[1,10)`, and of multiranges, `{[1,3),[5,8)}`."""

    def __init__(self, load: FromText, format: ToText) -> None:
        self._load = load
        self._format = format

    def load(self, text: str) -> Range:
        match = _RANGE.fullmatch(text)
        if match is None:
            raise ValueError("not the text of a range")
        return self._make(match)

    def load_multirange(self, text: str) -> tuple[Range, ...]:
        if text == "{}":
            return ()
        if not (text.startswith("{") and text.endswith("}")):
            raise ValueError("not the text of a multirange")
        ranges = []
        position, end = 1, len(text) - 1
        while True:
            match = _RANGE.match(text, position, end)
            if match is None:
                raise ValueError(f"not the text of a multirange, at character {position}")
            ranges.append(_member(self._make(match)))
            position = match.end()
            if position == end:
                return tuple(ranges)
            if text[position] != ",":
                raise ValueError(f"no comma at character {position}")
            position += 1

    def _make(self, match: re.Match[str]) -> Range:
        opening, quoted_lower, lower, quoted_upper, upper, closing = match.groups()
        if opening is None:
            return EMPTY
        return _checked(self._bound(quoted_lower, lower), self._bound(quoted_upper, upper), f"{opening}{closing}")

    def _bound(self, quoted: str | None, unquoted: str | None) -> object:
        if quoted is not None:
            return self._load(_DOUBLED.sub(lambda match: match[1] or match[2], quoted))
        return None if unquoted is None else self._load(unquoted)

    def format(self, value: Range) -> str:
        if value.is_empty:
            return "empty"
        lower, upper = self._format_bound(value.lower), self._format_bound(value.upper)
        return f"{value.bounds[0]}{lower},{upper}{value.bounds[1]}"

    def format_multirange(self, value: tuple[Range, ...]) -> str:
        return f"{{{','.join(map(self.format, value))}}}"

    def _format_bound(self, value: object) -> str:
        if value is None:
            return ""
        text = self._format(value)
        if text and not _TO_QUOTE.search(text):
            return text
        escaped = text.replace("\\", "\\\\").replace('"', '""')
        return f'"{escaped}"'


def _checked(lower: object, upper: object, bounds: str) -> Range:
    if (lower is None and bounds[0] == "[") or (upper is None and bounds[1] == "]"):
        raise ValueError("a bound that is missing belongs to the range")
    return Range(lower, upper, bounds)


def _member(value: Range) -> Range:
    if value.is_empty:
        raise ValueError("an empty range in a multirange")
    return value


_EMPTY, _LOWER_INCLUSIVE, _UPPER_INCLUSIVE, _NO_LOWER, _NO_UPPER = 1, 2, 4, 8, 16


def range_binary(load: FromBinary) -> Callable[[bytes, str], Range]:
    """Return a loader for the binary format of ranges: a byte of flags, then each existing bound with its length."""

    def load_range(value: bytes, encoding: str) -> Range:
        reader = BinaryReader(value)
        flags = reader.uint8()
        if flags == _EMPTY:
            reader.end()
            return EMPTY
        if flags & ~(_LOWER_INCLUSIVE | _UPPER_INCLUSIVE | _NO_LOWER | _NO_UPPER):
            raise ValueError(f"the flags of a range are {flags:#04x}")

        def bound() -> object:
            field = reader.field()
            if field is None:
                raise ValueError("a bound is NULL")
            return load(field, encoding)

        lower = None if flags & _NO_LOWER else bound()
        upper = None if flags & _NO_UPPER else bound()
        reader.end()
        opening = "[" if flags & _LOWER_INCLUSIVE else "("
        return _checked(lower, upper, opening + ("]" if flags & _UPPER_INCLUSIVE else ")"))

    return load_range


def multirange_binary(load: FromBinary) -> Callable[[bytes, str], tuple[Range, ...]]:
    """Return a loader for the binary format of multiranges: a count, then each range with its length."""
    load_range = range_binary(load)

    def load_multirange(value: bytes, encoding: str) -> tuple[Range, ...]:
        reader = BinaryReader(value)
        ranges = []
        for _ in range(reader.count(5)):
            field = reader.field()
            if field is None:
                raise ValueError("a range is NULL")
            ranges.append(_member(load_range(field, encoding)))
        reader.end()
        return tuple(ranges)

    return load_multirange
