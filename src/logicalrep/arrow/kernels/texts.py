"""Texts of a known form, and bytes, recognized in place: see `digits`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from logicalrep.arrow.kernels.digits import MINUS, POINT, ZERO
from logicalrep.transactions.tags import BINARY, TEXT
from logicalrep_runtime.columnar.located import Bytes
from logicalrep_runtime.columnar.memory import (
    LANES,
    checked,
    compiled,
    inlined,
    intrinsic,
    ir,
    lane_bits,
    load_lanes,
    types,
    uint8,
    write,
)

_A, _F, _X, _BACKSLASH = map(ord, "afx\\")
_UUID_MARKS = 1 << 8 | 1 << 13 | 1 << 18 | 1 << 23


def lanes_between(least: str, most: str) -> Callable[[Bytes, int], int]:
    """Return an intrinsic that returns bits for which of 32 characters lie between two others.

    The two characters are given for each position in order; the last two apply to all following positions.
    """
    bounds = [list(bound.ljust(LANES, bound[-1]).encode()) for bound in (least, most)]

    @intrinsic
    def fits(typing_context: Any, data: Any, offset: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            lanes = load_lanes(context, builder, signature.args[0], *arguments)
            low, high = (ir.Constant(lanes.type, bound) for bound in bounds)
            within = builder.icmp_unsigned(">=", lanes, low), builder.icmp_unsigned("<=", lanes, high)
            return lane_bits(builder, builder.and_(*within))

        return types.int64(data, types.int64), generate

    return checked(fits, LANES)


_are_digits, _are_points, _are_letters = lanes_between("0", "9"), lanes_between(".", "."), lanes_between("a", "f")
_are_of_uuid = lanes_between("0" * 8 + "-0000-0000-0000-0", "f" * 8 + "-ffff-ffff-ffff-f")


@inlined
def _fit(bits: int, size: int) -> bool:
    wanted = (1 << size) - 1
    return bits & wanted == wanted


@inlined
def is_bytes(data: Bytes, start: int, length: int, kind: int) -> bool:
    if kind == BINARY:
        return True
    if length < 2 or length % 2 or uint8(data, start) != _BACKSLASH or uint8(data, start + 1) != _X:
        return False
    for offset in range(start + 2, start + length):  # noqa: SIM110 (numba has no all())
        if _hexadecimal(uint8(data, offset)) < 0:
            return False
    return True


@inlined
def is_uuid(data: Bytes, start: int, length: int, kind: int) -> bool:
    if kind == BINARY or length != 36 or start + 36 > len(data):
        return False
    last = start + 36 - LANES
    hexadecimal = _are_digits(data, start) | _are_letters(data, start) | _UUID_MARKS
    more = _are_digits(data, last) | _are_letters(data, last) | _UUID_MARKS >> 4
    return _fit(_are_of_uuid(data, start) & hexadecimal, LANES) and _fit(more, LANES)


@inlined
def is_number(data: Bytes, start: int, length: int, kind: int) -> bool:
    """Return whether the text is a decimal number without leading zeros, as the server prints it."""
    end = start + length
    if kind == BINARY:
        return False
    if length > 0 and uint8(data, start) == MINUS:
        start += 1
    size = end - start
    if size <= 0 or uint8(data, start) == POINT or uint8(data, end - 1) == POINT:
        return False
    if uint8(data, start) == ZERO and size > 1 and uint8(data, start + 1) != POINT:
        return False
    if size > LANES or start + LANES > len(data):
        return _is_long_number(data, start, end)
    points = _are_points(data, start) & ((1 << size) - 1)
    return points & (points - 1) == 0 and _fit(_are_digits(data, start) | points, size)


@compiled
def _is_long_number(data: Bytes, start: int, end: int) -> bool:
    points = 0
    for offset in range(start, end):
        byte = uint8(data, offset)
        points += byte == POINT
        if byte != POINT and (byte < ZERO or byte > ZERO + 9):
            return False
    return points <= 1


@inlined
def is_text(data: Bytes, start: int, length: int, kind: int) -> bool:
    return kind == TEXT


@inlined
def _hexadecimal(byte: int) -> int:
    """Return the value of a lowercase hexadecimal digit; -1 for another byte."""
    if ZERO <= byte <= ZERO + 9:
        return byte - ZERO
    return byte - _A + 10 if _A <= byte <= _F else -1


@inlined
def from_hexadecimal(data: Bytes, start: int, end: int, texts: Bytes, target: int) -> int:
    """Write the bytes that hexadecimal digits stand for; return their number."""
    size = (end - start) >> 1
    for number in range(size):
        high = _hexadecimal(uint8(data, start + 2 * number))
        write(texts, target + number, high << 4 | _hexadecimal(uint8(data, start + 2 * number + 1)))
    return size
