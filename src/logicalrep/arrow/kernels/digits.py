"""Integers, decimals, floating point numbers and booleans, read in place from their text or binary format.

Each function returns whether it has read the value; it reads exactly as its counterpart in `values` does, and leaves
every other value.

A text is read as two integers of eight characters that end at its end, with other bytes masked out: a loop over a
few characters costs more in mispredicted branches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from logicalrep.transactions.tags import BINARY, TEXT
from logicalrep_runtime.columnar.located import Bytes, Record
from logicalrep_runtime.columnar.memory import compiled, inlined, int16, int32, int64, uint8, uint32

MINUS, PLUS, POINT, ZERO = map(ord, "-+.0")
_TRUE, _FALSE = map(ord, "tf")
_MOST = (1 << 63) - 1

# For each byte of an integer: the character 0, the highest bit, and the addend that sets this bit if a byte exceeds 9.
_ZEROS = 0x3030303030303030
_HIGH, _TO_HIGH = -0x7F7F7F7F7F7F7F80, 0x7676767676767676
# Masks of the last 0 to 7 characters of an integer, and of all 8.
_LAST = np.array([(1 << 8 * size) - 1 for size in range(8)] + [-1])
POWERS = np.array([10**exponent for exponent in range(19)])


@inlined
def pairs(digits: int) -> int:
    """Return in each byte the number of its digit and the previous digit, for an integer in network byte order."""
    return (digits >> 8) * 10 + digits


@inlined
def _eight(digits: int) -> int:
    numbers = pairs(digits)
    # The upper half of each product holds two of these, times their weights.
    first, second = numbers & 0x000000FF000000FF, numbers >> 16 & 0x000000FF000000FF
    return (first * (1 << 32 | 10_000) + second * (100 << 32 | 1_000_000)) >> 32


@inlined
def beyond_nine(digits: int) -> int:
    return (digits | (digits + _TO_HIGH)) & _HIGH


@inlined
def last_digits(data: Bytes, end: int, size: int) -> int:
    """Return the number of the 0 to 8 digits before `end`; -1 if a byte is not a digit."""
    if end < 8:
        return _few_digits(data, end - size, end)
    digits = (int64(data, end - 8) ^ _ZEROS) & _LAST[size]
    return -1 if beyond_nine(digits) else _eight(digits)


@inlined
def _digits(data: Bytes, start: int, end: int) -> int:
    """Return the number that 1 to 18 digits stand for; -1 for other bytes, or more of them."""
    size = end - start
    if size <= 0 or size > 18:
        return -1
    if size <= 8:
        return last_digits(data, end, size)
    if size > 16 or end < 16:
        return _few_digits(data, start, end)
    last, former = int64(data, end - 8) ^ _ZEROS, (int64(data, end - 16) ^ _ZEROS) & _LAST[size - 8]
    if beyond_nine(last) | beyond_nine(former):
        return -1
    return _eight(former) * 100_000_000 + _eight(last)


@compiled
def _few_digits(data: Bytes, start: int, end: int) -> int:
    """Read digits one by one: 17 or 18 of them, or digits at the beginning of the data."""
    number = 0
    for offset in range(start, end):
        digit = uint8(data, offset) - ZERO
        if digit < 0 or digit > 9:
            return -1
        number = 10 * number + digit
    return number


def _integer(low: int, high: int, width: int, from_binary: Callable[..., Any]) -> Callable[..., Any]:
    @inlined
    def parse(data: Bytes, start: int, length: int, kind: int, column: Record) -> tuple[int, bool]:
        if kind == BINARY:
            return (from_binary(data, start), True) if length == width else (0, False)
        negative = length > 0 and uint8(data, start) == MINUS
        number = _digits(data, start + negative, start + length)
        good = number >= 0
        if negative:
            number = -number
        return number, good and low <= number <= high

    return parse


parse_int16 = _integer(-(1 << 15), (1 << 15) - 1, 2, int16)
parse_int32 = _integer(-(1 << 31), (1 << 31) - 1, 4, int32)
parse_int64 = _integer(-_MOST - 1, _MOST, 8, int64)
parse_oid = _integer(0, (1 << 32) - 1, 4, uint32)


@inlined
def parse_boolean(data: Bytes, start: int, length: int, kind: int, column: Record) -> tuple[int, bool]:
    byte = uint8(data, start) if length == 1 else 255
    if kind == TEXT:
        return byte == _TRUE, byte in (_TRUE, _FALSE)
    return byte == 1, byte <= 1


@inlined
def parse_decimal(data: Bytes, start: int, length: int, kind: int, column: Record) -> tuple[int, bool]:
    if kind != TEXT:
        return 0, False
    end = start + length
    scale = column.scale
    negative = length > 0 and uint8(data, start) == MINUS
    start += negative
    point = end - scale - 1
    if 0 < scale <= 8 and point > start and end - start <= 16 <= end and uint8(data, point) == POINT:
        # The server prints all digits of the scale after the point.
        number = _without_point(data, end, end - start, scale)
        if number < 0:
            return 0, False
    else:
        number, digits, places = _scaled(data, start, end)
        missing = scale - places
        if digits == 0 or missing < 0 or digits + missing > 18:
            return 0, False
        number *= POWERS[missing]
    if column.precision < 18 and number >= POWERS[column.precision]:
        return 0, False
    return -number if negative else number, True


@inlined
def _without_point(data: Bytes, end: int, size: int, scale: int) -> int:
    """Return the number in the 3 to 16 characters before `end` as an integer. A point precedes the last 1 to 8.

    Returns -1 if another character is not a digit.
    """
    last, former = int64(data, end - 8) ^ _ZEROS, int64(data, end - 16) ^ _ZEROS
    behind = _LAST[scale]
    # The characters before the point move into its place.
    last = (last & behind) | ((last >> 8 & _LAST[7] | former << 56) & ~behind)
    if size <= 9:
        last &= _LAST[size - 1]
        return -1 if beyond_nine(last) else _eight(last)
    former = former >> 8 & _LAST[size - 9]
    if beyond_nine(last) | beyond_nine(former):
        return -1
    return _eight(former) * 100_000_000 + _eight(last)


@inlined
def _scaled(data: Bytes, start: int, end: int) -> tuple[int, int, int]:
    """Return a decimal number's digits as an integer, their number, and the number of them after the point.

    Their number is 0 if the text is not such a number, or has more than 18 digits.
    """
    number = 0
    digits = 0
    point = -1
    for offset in range(start, end):
        byte = uint8(data, offset)
        if byte == POINT and point < 0 and offset > start and offset + 1 < end:
            point = offset
        elif ZERO <= byte <= ZERO + 9 and digits < 18:
            number = 10 * number + byte - ZERO
            digits += 1
        else:
            return 0, 0, 0
    return number, digits, end - point - 1 if point >= 0 else 0


def _float(make: Any, powers: Any, most: int) -> Callable[..., Any]:
    """Return a function that reads a number of few digits: an integer of up to `most`, the largest that is exact.

    Dividing it by a power of ten rounds once, as both are exact.
    """
    most_places = len(powers) - 1

    @inlined
    def parse(data: Bytes, start: int, length: int, kind: int, column: Record) -> tuple[float, bool]:
        if kind != TEXT:
            return make(0), False
        negative = length > 0 and uint8(data, start) == MINUS
        number, digits, places = _scaled(data, start + negative, start + length)
        # A negative zero is left, to keep its sign.
        if digits == 0 or number > most or places > most_places or (negative and number == 0):
            return make(0), False
        return make(-number if negative else number) / powers[places], True

    return parse


parse_float32 = _float(np.float32, np.float32(10) ** np.arange(11, dtype=np.float32), 1 << 24)
parse_float64 = _float(np.float64, 10.0 ** np.arange(23), 1 << 53)
"""With the powers of ten that are exact in each precision."""
