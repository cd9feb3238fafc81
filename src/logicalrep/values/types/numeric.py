"""numeric: exact decimal numbers, their binary format, and the limits set by a type modifier."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

from logicalrep.values.types.binary import BinaryReader

# Decimal() alone would accept exponents, which the server never writes and which can mean any number of digits.
_NUMERIC = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?|Infinity)|NaN").fullmatch

_NEGATIVE = 0x4000
_SPECIAL = {0xC000: Decimal("NaN"), 0xD000: Decimal("Infinity"), 0xF000: Decimal("-Infinity")}

# Ten bytes can stand for 131072 digits. Larger counts of zeros before the decimal point are kept in the exponent.
_MOST_ZEROS = 1000


def numeric_text(text: str) -> Decimal:
    if not _NUMERIC(text):
        raise ValueError("not a number")
    return Decimal(text)


def numeric_binary(value: bytes, encoding: str) -> Decimal:
    """Read a count of base-10000 digits, the weight of the first digit, the sign, the scale shown, and the digits."""
    reader = BinaryReader(value)
    count, weight, sign, scale = reader.uint16(), reader.int16(), reader.uint16(), reader.uint16()
    if reader.remaining != 2 * count:
        raise ValueError(f"{count} base-10000 digits in {reader.remaining} bytes")
    if sign in _SPECIAL:
        if count:
            raise ValueError("digits after NaN or infinity")
        return _SPECIAL[sign]
    if sign not in (0, _NEGATIVE):
        raise ValueError(f"the sign is {sign:#06x}")
    if scale > 0x3FFF:
        raise ValueError(f"the scale is {scale}")
    groups = struct.unpack_from(f"!{count}H", value, 8)
    if count and max(groups) > 9999:
        raise ValueError(f"base-10000 digit {max(groups)} is out of range")
    digits = "".join([f"{group:04d}" for group in groups]).lstrip("0")
    if not digits:
        return Decimal(f"0E-{scale}")
    exponent = 4 * (weight - count + 1)
    zeros = exponent + scale
    if zeros < 0:
        if digits[zeros:].strip("0"):
            raise ValueError(f"more digits than the scale {scale} shows")
        digits, exponent = digits[:zeros] or "0", -scale
    elif zeros <= _MOST_ZEROS:
        digits, exponent = digits + "0" * zeros, -scale
    return Decimal(f"{'-' if sign else ''}{digits}E{exponent}")


def format_numeric(value: Decimal) -> str:
    return f"{value:f}"


class Precision(NamedTuple):
    """The type modifier of a numeric column: `precision` digits in all, `scale` of them after the point.

    Since PostgreSQL 15 a scale can be negative (zeros before the point) or greater than the precision (zeros after it).
    """

    precision: int
    scale: int

    @classmethod
    def from_modifier(cls, modifier: int) -> Precision:
        packed = modifier - 4
        # A signed number of eleven bits; before PostgreSQL 15 the scale had sixteen bits and never exceeded 1000.
        return cls(packed >> 16 & 0xFFFF, (packed & 0x7FF ^ 0x400) - 0x400)

    @property
    def decimal(self) -> tuple[int, int]:
        """The smallest ordinary decimal type, as (precision, scale), that holds every such number."""
        scale = max(self.scale, 0)
        return max(self.precision - self.scale, 0) + scale, scale

    def checked(self, value: Decimal) -> Decimal:
        """Return `value` if the modifier allows it. NaN is a value of every numeric type, infinity is not."""
        if not value.is_finite():
            if value.is_nan():
                return value
            raise ValueError("infinity in a numeric with a precision")
        if value and value.adjusted() >= self.precision - self.scale:
            raise ValueError("more digits than the precision allows")
        exponent = value.as_tuple().exponent
        assert isinstance(exponent, int)  # finite
        if exponent < -max(self.scale, 0):
            raise ValueError("more digits after the point than the scale allows")
        if self.scale < 0 and int(value) % 10**-self.scale:
            raise ValueError("digits that the negative scale rounds away")
        return value


def checked_text(precision: Precision) -> Callable[[str], Decimal]:
    def load(text: str) -> Decimal:
        return precision.checked(numeric_text(text))

    return load


def checked_binary(precision: Precision) -> Callable[[bytes, str], Decimal]:
    def load(value: bytes, encoding: str) -> Decimal:
        return precision.checked(numeric_binary(value, encoding))

    return load
