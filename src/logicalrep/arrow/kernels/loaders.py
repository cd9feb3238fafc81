"""Compiled loaders of rows' values in the server's usual notation, read in place in a batch, column by column.

Each loader reads exactly as those in `values` do, and leaves to them every value it is not sure of. The line of a
column in a table of int64 tells how to load it: see the names of the entries below.

A text is read as two integers of eight characters that end at its end, with other bytes masked out: a loop over a few
characters costs more in mispredicted branches.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from logicalrep.transactions.tags import BINARY, KEY, NULL, TEXT
from logicalrep_runtime.columnar.memory import (
    LANES,
    checked,
    compiled,
    copy,
    inlined,
    int16,
    int32,
    int64,
    intrinsic,
    ir,
    lane_bits,
    load_lanes,
    read1,
    read2,
    read4,
    read8,
    types,
    uint8,
    uint32,
    write1,
    write2,
    write4,
    write8,
)
from logicalrep_runtime.columnar.utf8 import are_utf8, is_utf8

_cgutils: Any = importlib.import_module("numba.core.cgutils")


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
"""The results a column can have: OTHER leaves all of its values; UUID and NUMBER are strings of that form."""

ENTRIES = 18
(
    CODE,
    WIDTH,
    PRECISION,
    SCALE,
    ROWS,
    FIRST,
    COUNT,
    CHANGES,
    KINDS,
    STARTS,
    LENGTHS,
    STATES,
    VALIDITY,
    VALUES,
    TOTAL,
    VALUED,
    TEXTS,
    NEXT,
) = range(ENTRIES)
"""A column's line in the table: the code; the bytes of a value, or of a text's offset; a decimal's precision and scale;
the addresses of the rows that have the column and of the indices of their first values, and the number of these rows;
the number of all rows; the addresses of the kinds, starts and lengths of the first column's values, moved on to this
column's; the addresses of the output of `load_rows`: the states, the validity bits, the values or offsets of texts; the
bytes of all texts, at most and in the end; the number of values in the end; the start of this line's texts among all
texts, and the place of the next text."""

BLOCK = 256
"""The rows of the longest line that are loaded at a time, with an equal share of each other line: lines are mostly of
the same messages, whose data are still in the cache for the next line."""

AT_ONCE = 64
"""The block size, in bytes, in which texts are copied."""

_MINUS, _PLUS, _POINT, _ZERO = map(ord, "-+.0")
_A, _F, _X, _BACKSLASH, _TRUE, _FALSE = map(ord, "afx\\tf")
_MOST = (1 << 63) - 1
_DAY = 86_400_000_000


def _leap_days(year: int) -> int:
    """Return the number of leap days before a year, from the year 1 on."""
    return (year - 1) // 4 - (year - 1) // 100 + (year - 1) // 400


# For each byte of an integer: the character 0, the highest bit, and the addend that sets this bit if a byte exceeds 9.
_ZEROS = 0x3030303030303030
_HIGH, _TO_HIGH = -0x7F7F7F7F7F7F7F80, 0x7676767676767676
# Masks of the last 0 to 7 characters of an integer, and of all 8.
_LAST = np.array([(1 << 8 * size) - 1 for size in range(8)] + [-1])
# Days from 1970-01-01 to each year, times 2, plus 1 for a leap year.
_YEARS = np.array(
    [
        2 * (365 * (year - 1970) + _leap_days(year) - _leap_days(1970)) + _leap_days(year + 1) - _leap_days(year)
        for year in range(10_000)
    ]
)
_LENGTHS = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] + [0] * 19
# The days before each month, times 32, plus the month's length: first in an ordinary year, then in a leap year.
_MONTHS = np.array(
    [
        32 * (sum(_LENGTHS[:month]) + (leap and month > 2)) + _LENGTHS[month] + (leap and month == 2)
        for leap in (0, 1)
        for month in range(32)
    ]
)
_POWERS = np.array([10**exponent for exponent in range(19)])
_EXACT4 = np.float32(10) ** np.arange(11, dtype=np.float32)
_EXACT8 = 10.0 ** np.arange(23)
"""The powers of ten that are exact in each precision."""
_UTC = int.from_bytes(b"+00", "big")
_UUID_MARKS = 1 << 8 | 1 << 13 | 1 << 18 | 1 << 23
# The beginning of the year 1 and of the year 10000, in UTC.
_FIRST_MOMENT, _END_MOMENT = -62_135_596_800_000_000, 253_402_300_800_000_000


@intrinsic
def _write_float(typing_context: Any, address: Any, index: Any, value: Any) -> Any:
    """Write an item of an array of numbers of the value's precision."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, index, value = arguments
        builder.store(value, builder.gep(builder.inttoptr(address, value.type.as_pointer()), [index]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, value), generate


def _form(least: str, most: str) -> Any:
    """Make an intrinsic that returns bits for which of 32 characters lie between two others.

    These are given for each place in order; the last ones hold for all following places.
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


_are_digits, _are_points, _are_letters = _form("0", "9"), _form(".", "."), _form("a", "f")
_are_t, _are_b = _form("t", "t"), _form("b", "b")
_are_of_uuid = _form("0" * 8 + "-0000-0000-0000-0", "f" * 8 + "-ffff-ffff-ffff-f")
_are_of_timestamp = _form("0000-00-00 00:00:00.0", "9999-19-39 29:59:59.9")


@intrinsic
def _parts_of_moment(typing_context: Any, data: Any, offset: Any, size: Any) -> Any:
    """Return the parts of a moment in the first 10 to 26 of 32 characters, which `_are_of_timestamp` accepts.

    The parts are the year; the month times 64, plus the day; the minute of the day; the hundredths of a second of that
    minute; and the remaining microseconds.
    """
    digits = [0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18, 20, 21, 22, 23, 24, 25]
    weights = [100, 64, 60, 100, 100, 0, 0, 0]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = load_lanes(context, builder, signature.args[0], *arguments[:2])
        bytes_, words, longs = (ir.VectorType(ir.IntType(width), 8 * LANES // width) for width in (8, 16, 32))
        places, long = ir.VectorType(ir.IntType(32), LANES), ir.IntType(32)
        zeros = bytes_([0] * LANES)
        sizes = builder.insert_element(zeros, builder.trunc(arguments[2], bytes_.element), long(0))
        sizes = builder.shuffle_vector(sizes, zeros, places([0] * LANES))
        is_sent = builder.icmp_unsigned("<", bytes_(list(range(LANES))), sizes)
        numbers = builder.select(is_sent, builder.xor(lanes, bytes_([_ZERO] * LANES)), zeros)
        # The digits are moved together, then joined in pairs to numbers, and these again in pairs.
        numbers = builder.shuffle_vector(numbers, zeros, places(digits + [LANES] * (LANES - len(digits))))
        for type_, factors in ((words, [10] * 16), (longs, weights)):
            numbers, half = builder.bitcast(numbers, type_), type_.element.width // 2
            first = builder.and_(numbers, type_([(1 << half) - 1] * type_.count))
            second = builder.lshr(numbers, type_([half] * type_.count))
            numbers = builder.add(builder.mul(first, type_(factors)), second)
        found = [builder.extract_element(numbers, long(place)) for place in range(5)]
        found = [builder.zext(number, ir.IntType(64)) for number in found]
        return context.make_tuple(builder, signature.return_type, found)

    return types.UniTuple(types.int64, 5)(data, types.int64, types.int64), generate


@intrinsic
def _count_bits(typing_context: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), generate


@inlined
def _fit(bits: int, size: int) -> bool:
    """Return whether the first `size` characters fit."""
    wanted = (1 << size) - 1
    return bits & wanted == wanted


@inlined
def _pairs(digits: int) -> Any:
    """Return in each byte the number of its digit and the one before it, for an integer in network byte order."""
    return (digits >> 8) * 10 + digits


@inlined
def _eight(digits: int) -> Any:
    """Return the number that eight digits stand for."""
    pairs = _pairs(digits)
    # The upper half of each product holds two of the pairs, times their weights.
    first, second = pairs & 0x000000FF000000FF, pairs >> 16 & 0x000000FF000000FF
    return (first * (1 << 32 | 10_000) + second * (100 << 32 | 1_000_000)) >> 32


@inlined
def _beyond_nine(digits: int) -> int:
    """Return nonzero if a byte is not a digit."""
    return (digits | (digits + _TO_HIGH)) & _HIGH


@inlined
def _last_digits(data: Any, end: int, size: int) -> Any:
    """Return the number of the 0 to 8 digits before `end`; -1 if one is not a digit."""
    if end < 8:
        return _few_digits(data, end - size, end)
    digits = (int64(data, end - 8) ^ _ZEROS) & _LAST[size]
    return -1 if _beyond_nine(digits) else _eight(digits)


@inlined
def _digits(data: Any, start: int, end: int) -> Any:
    """Return the number that 1 to 18 digits stand for; -1 if they are not digits, or more."""
    size = end - start
    if size <= 0 or size > 18:
        return -1
    if size <= 8:
        return _last_digits(data, end, size)
    if size > 16 or end < 16:
        return _few_digits(data, start, end)
    last, former = int64(data, end - 8) ^ _ZEROS, (int64(data, end - 16) ^ _ZEROS) & _LAST[size - 8]
    if _beyond_nine(last) | _beyond_nine(former):
        return -1
    return _eight(former) * 100_000_000 + _eight(last)


@compiled
def _few_digits(data: Any, start: int, end: int) -> int:
    """Read digits one by one: 17 or 18 of them, or those at the beginning of the data."""
    number = 0
    for offset in range(start, end):
        digit = uint8(data, offset) - _ZERO
        if digit < 0 or digit > 9:
            return -1
        number = 10 * number + digit
    return number


def _integer(low: int, high: int, width: int, from_binary: Any) -> Any:
    @inlined
    def parse(data: Any, start: int, length: int, kind: int, line: int) -> Any:
        if kind == BINARY:
            return (from_binary(data, start), True) if length == width else (0, False)
        negative = length > 0 and uint8(data, start) == _MINUS
        number = _digits(data, start + negative, start + length)
        good = number >= 0
        if negative:
            number = -number
        return number, good and low <= number <= high

    return parse


_int16 = _integer(-(1 << 15), (1 << 15) - 1, 2, int16)
_int32 = _integer(-(1 << 31), (1 << 31) - 1, 4, int32)
_int64 = _integer(-_MOST - 1, _MOST, 8, int64)
_oid = _integer(0, (1 << 32) - 1, 4, uint32)


@inlined
def _boolean(data: Any, start: int, length: int, kind: int, line: int) -> Any:
    byte = uint8(data, start) if length == 1 else 255
    if kind == TEXT:
        return byte == _TRUE, byte in (_TRUE, _FALSE)
    return byte == 1, byte <= 1


@inlined
def _decimal(data: Any, start: int, length: int, kind: int, line: int) -> Any:
    if kind != TEXT:
        return 0, False
    end = start + length
    scale = read8(line, SCALE)
    negative = length > 0 and uint8(data, start) == _MINUS
    start += negative
    point = end - scale - 1
    if 0 < scale <= 8 and point > start and end - start <= 16 <= end and uint8(data, point) == _POINT:
        # The server prints all digits of the scale after the point.
        number = _without_point(data, end, end - start, scale)
        if number < 0:
            return 0, False
    else:
        number, digits, places = _scaled(data, start, end)
        missing = scale - places
        if digits == 0 or missing < 0 or digits + missing > 18:
            return 0, False
        number *= _POWERS[missing]
    precision = read8(line, PRECISION)
    if precision < 18 and number >= _POWERS[precision]:
        return 0, False
    return -number if negative else number, True


@inlined
def _without_point(data: Any, end: int, size: int, scale: int) -> Any:
    """Return the number in the 3 to 16 characters before `end` as an integer. A point stands before the last 1 to 8.

    Returns -1 if one of the others is not a digit.
    """
    last, former = int64(data, end - 8) ^ _ZEROS, int64(data, end - 16) ^ _ZEROS
    behind = _LAST[scale]
    # The characters before the point move into its place.
    last = (last & behind) | ((last >> 8 & _LAST[7] | former << 56) & ~behind)
    if size <= 9:
        last &= _LAST[size - 1]
        return -1 if _beyond_nine(last) else _eight(last)
    former = former >> 8 & _LAST[size - 9]
    if _beyond_nine(last) | _beyond_nine(former):
        return -1
    return _eight(former) * 100_000_000 + _eight(last)


@inlined
def _scaled(data: Any, start: int, end: int) -> Any:
    """Return a decimal number's digits as an integer, their number, and the number of them after the point.

    Their number is 0 if the text is not such a number, or has more than 18 digits.
    """
    number = 0
    digits = 0
    point = -1
    for offset in range(start, end):
        byte = uint8(data, offset)
        if byte == _POINT and point < 0 and offset > start and offset + 1 < end:
            point = offset
        elif _ZERO <= byte <= _ZERO + 9 and digits < 18:
            number = 10 * number + byte - _ZERO
            digits += 1
        else:
            return 0, 0, 0
    return number, digits, end - point - 1 if point >= 0 else 0


@inlined
def _float(data: Any, start: int, length: int, kind: int, most: int, most_places: int) -> Any:
    """Return a number of few digits as an integer, and the number of its digits after the point.

    Dividing the integer by that power of ten rounds once, if both are exact: `most` is the largest exact integer.
    """
    if kind != TEXT:
        return 0, 0, False
    negative = length > 0 and uint8(data, start) == _MINUS
    number, digits, places = _scaled(data, start + negative, start + length)
    # A negative zero is left, to keep its sign.
    if digits == 0 or number > most or places > most_places or (negative and number == 0):
        return 0, 0, False
    return -number if negative else number, places, True


@inlined
def _day(year: int, month_and_day: int) -> Any:
    """Return the days from 1970-01-01 to that day, and whether the day exists."""
    # The table spares a division, which would take as long as all the rest.
    first = _YEARS[year]
    before = _MONTHS[32 * (first & 1) + (month_and_day >> 6)]
    day = month_and_day & 63
    # Months 0 and 13 to 19 have no days, and there is no year 0.
    return (first >> 1) + (before >> 5) + day - 1, (day >= 1) & (day <= before & 31) & (year >= 1)


@inlined
def _date(data: Any, start: int, length: int, kind: int, line: int) -> Any:
    # Values at the end of the data are left.
    if kind != TEXT or length != 10 or start + LANES > len(data):
        return 0, False
    if not _fit(_are_of_timestamp(data, start), length):
        return 0, False
    year, month_and_day, _, _, _ = _parts_of_moment(data, start, length)
    return _day(year, month_and_day)


def _moment(zone: int) -> Any:
    @inlined
    def parse(data: Any, start: int, length: int, kind: int, line: int) -> Any:
        """Return microseconds since 1970-01-01, and whether it is a timestamp of the years 1 to 9999."""
        size = length - 3 * zone
        # Values at the end of the data are left.
        if kind != TEXT or size < 19 or size == 20 or size > 26 or start + LANES > len(data):
            return 0, False
        if not _fit(_are_of_timestamp(data, start), size):
            return 0, False
        year, month_and_day, minutes, hundredths, rest = _parts_of_moment(data, start, size)
        days, good = _day(year, month_and_day)
        moment = days * _DAY + minutes * 60_000_000 + hundredths * 10_000 + rest
        if zone:
            written = uint32(data, start + size - 1) & 0xFFFFFF
            if written != _UTC:
                sign, digits = written >> 16, (written & 0xFFFF) ^ 0x3030
                hours = 10 * (digits >> 8) + (digits & 255)
                if (sign != _PLUS and sign != _MINUS) or _beyond_nine(digits) or hours > 15:
                    return 0, False
                shift = hours * 3_600_000_000
                moment += shift if sign == _MINUS else -shift
        return moment, good & (minutes < 1440) & (moment >= _FIRST_MOMENT) & (moment < _END_MOMENT)

    return parse


_timestamp, _timestamptz = _moment(0), _moment(1)


@inlined
def _is_bytes(data: Any, start: int, length: int, kind: int) -> bool:
    if kind == BINARY:
        return True
    if length < 2 or length % 2 or uint8(data, start) != _BACKSLASH or uint8(data, start + 1) != _X:
        return False
    for offset in range(start + 2, start + length):  # noqa: SIM110 (numba has no all())
        if _hexadecimal(uint8(data, offset)) < 0:
            return False
    return True


@inlined
def _is_uuid(data: Any, start: int, length: int, kind: int) -> Any:
    if kind == BINARY or length != 36 or start + 36 > len(data):
        return False
    last = start + 36 - LANES
    hexadecimal = _are_digits(data, start) | _are_letters(data, start) | _UUID_MARKS
    more = _are_digits(data, last) | _are_letters(data, last) | _UUID_MARKS >> 4
    return _fit(_are_of_uuid(data, start) & hexadecimal, LANES) and _fit(more, LANES)


@inlined
def _is_number(data: Any, start: int, length: int, kind: int) -> Any:
    """Return whether the text is a decimal number without leading zeros, as the server prints it."""
    end = start + length
    if kind == BINARY:
        return False
    if length > 0 and uint8(data, start) == _MINUS:
        start += 1
    size = end - start
    if size <= 0 or uint8(data, start) == _POINT or uint8(data, end - 1) == _POINT:
        return False
    if uint8(data, start) == _ZERO and size > 1 and uint8(data, start + 1) != _POINT:
        return False
    if size > LANES or start + LANES > len(data):
        return _is_long_number(data, start, end)
    points = _are_points(data, start) & ((1 << size) - 1)
    return points & (points - 1) == 0 and _fit(_are_digits(data, start) | points, size)


@compiled
def _is_long_number(data: Any, start: int, end: int) -> bool:
    """Check a number one character at a time, also at the end of the data."""
    points = 0
    for offset in range(start, end):
        byte = uint8(data, offset)
        points += byte == _POINT
        if byte != _POINT and (byte < _ZERO or byte > _ZERO + 9):
            return False
    return points <= 1


@inlined
def _is_text(data: Any, start: int, length: int, kind: int) -> bool:
    """Return whether the value was sent as text. Its characters are checked with all others."""
    return kind == TEXT


@inlined
def _hexadecimal(byte: int) -> int:
    """Return the value of a lowercase hexadecimal digit; -1 if it is not one."""
    if _ZERO <= byte <= _ZERO + 9:
        return byte - _ZERO
    return byte - _A + 10 if _A <= byte <= _F else -1


@intrinsic
def _clear(typing_context: Any, address: Any, size: Any) -> Any:
    """Set `size` bytes to 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        _cgutils.memset(builder, pointer, arguments[1], 0)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@inlined
def _write16(address: int, index: int, number: int) -> None:
    write8(address, 2 * index, number)
    write8(address, 2 * index + 1, number >> 63)


def _loop(take: Callable[..., Any]) -> Any:
    """Make the loop over a line's rows from `begin` to `end`. `take` says whether it has written a row's value.

    The loop returns the number of values left so far.
    """

    @inlined
    def load(data: Any, line: int, index: int, begin: int, end: int, left: int, count: int) -> int:
        rows, first, kinds, states = read8(line, ROWS), read8(line, FIRST), read8(line, KINDS), read8(line, STATES)
        starts, lengths, values = read8(line, STARTS), read8(line, LENGTHS), read8(line, VALUES)
        for place in range(begin, end):
            row, cell = read8(rows, place), read8(first, place)
            kind = read1(kinds, cell)
            write1(states, row, kind)
            if kind in (TEXT, BINARY) and not take(
                data, read8(starts, cell), read4(lengths, cell), kind, line, values, row
            ):
                write8(left, 2 * count, index)
                write8(left, 2 * count + 1, row)
                count += 1
        return count

    return load


def _numbers(parse: Callable[..., Any], write: Any) -> Any:
    """Make the loop for a type whose values become integers of one width."""

    @inlined
    def take(data: Any, start: int, length: int, kind: int, line: int, values: int, row: int) -> Any:
        number, good = parse(data, start, length, kind, line)
        if good:
            write(values, row, number)
        return good

    return _loop(take)


def _floats(make: Any, powers: Any, most: int, most_places: int) -> Any:
    """Make the loop for floating point numbers."""

    @inlined
    def take(data: Any, start: int, length: int, kind: int, line: int, values: int, row: int) -> Any:
        number, places, good = _float(data, start, length, kind, most, most_places)
        if good:
            _write_float(values, row, make(number) / powers[places])
        return good

    return _loop(take)


def _texts(is_good: Callable[..., Any], *, hexadecimal: bool = False) -> Any:
    """Make the loop for a type whose values are copied. It writes each length behind the place of the offset."""

    @inlined
    def load(data: Any, line: int, index: int, begin: int, end: int, left: int, count: int, texts: Any) -> int:
        rows, first, kinds, states = read8(line, ROWS), read8(line, FIRST), read8(line, KINDS), read8(line, STATES)
        starts, lengths, values = read8(line, STARTS), read8(line, LENGTHS), read8(line, VALUES)
        target, limit = read8(line, NEXT), read8(line, TEXTS) + read8(line, TOTAL)
        for place in range(begin, end):
            row, cell = read8(rows, place), read8(first, place)
            kind = read1(kinds, cell)
            write1(states, row, kind)
            if kind in (TEXT, BINARY):
                start, size = read8(starts, cell), read4(lengths, cell)
                if not is_good(data, start, size, kind):
                    write8(left, 2 * count, index)
                    write8(left, 2 * count + 1, row)
                    count += 1
                    continue
                if hexadecimal and kind == TEXT:
                    size = _from_hexadecimal(data, start + 2, start + size, texts, target)
                elif size <= AT_ONCE and start + AT_ONCE <= len(data) and target + AT_ONCE <= limit:
                    # Whole blocks are copied whatever the length, which spares an unpredictable branch; the next text
                    # overwrites the rest.
                    for part in range(0, AT_ONCE, 32):
                        copy(texts, target + part, data, start + part, 32, limit)
                else:
                    copy(texts, target, data, start, size, limit)
                write4(values, row + 1, size)
                target += size
        write8(line, NEXT, target)
        return count

    return load


@inlined
def _from_hexadecimal(data: Any, start: int, end: int, texts: Any, target: int) -> Any:
    """Write the bytes that hexadecimal digits stand for; return their number."""
    size = (end - start) >> 1
    for number in range(size):
        high = _hexadecimal(uint8(data, start + 2 * number))
        texts[target + number] = high << 4 | _hexadecimal(uint8(data, start + 2 * number + 1))
    return size


@inlined
def _none(data: Any, start: int, length: int, kind: int, line: int, values: int, row: int) -> Any:
    return False


_load_int16, _load_int32, _load_int64 = _numbers(_int16, write2), _numbers(_int32, write4), _numbers(_int64, write8)
_load_oid, _load_boolean = _numbers(_oid, write8), _numbers(_boolean, write1)
_load_float32 = _floats(np.float32, _EXACT4, 1 << 24, 10)
_load_float64 = _floats(np.float64, _EXACT8, 1 << 53, 22)
_load_decimal, _load_date = _numbers(_decimal, _write16), _numbers(_date, write4)
_load_timestamp, _load_timestamptz = _numbers(_timestamp, write8), _numbers(_timestamptz, write8)
_load_string, _load_uuid, _load_number = _texts(_is_text), _texts(_is_uuid), _texts(_is_number)
_load_bytes = _texts(_is_bytes, hexadecimal=True)
_load_other = _loop(_none)


GROUPS = 1 << 12
"""The places of the hash table in `group_rows`; at most half of them are used."""


@compiled
def group_rows(
    rows: int, count: int, oids: int, codes: int, places: int, found: int, counts: int, grouped: int
) -> int:  # fmt: skip
    """Bring messages of the same table together, otherwise in their order.

    `rows` is the address of the messages' indices in the batch, `oids` that of the OID of each message there. `codes`
    gets the number of each one's table, counted from 0; `places` is room for GROUPS numbers of 16 bits; `found` gets
    the tables' OIDs and `counts` the number of each table's messages, of 32 bits; `grouped` gets the indices.

    Returns the number of tables; -1 if there are too many.
    """
    for place in range(GROUPS):
        write2(places, place, 0)
    tables = 0
    for index in range(count):
        oid = read4(oids, read8(rows, index))
        place = (oid * 0x9E3779B1 >> 8) & (GROUPS - 1)
        while True:
            code = read2(places, place)
            if code == 0:
                if tables == GROUPS // 2:
                    return -1
                write4(found, tables, oid)
                write4(counts, tables, 0)
                tables += 1
                code = tables
                write2(places, place, code)
                break
            if read4(found, code - 1) == oid:
                break
            place = (place + 1) & (GROUPS - 1)
        write2(codes, index, code - 1)
        write4(counts, code - 1, read4(counts, code - 1) + 1)
    # From here on `places` holds the next index of each table, of 32 bits: there is room for half as many.
    start = 0
    for table in range(tables):
        write4(places, table, start)
        start += read4(counts, table)
    for index in range(count):
        table = read2(codes, index)
        place = read4(places, table)
        write8(grouped, place, read8(rows, index))
        write4(places, table, place + 1)
    return tables


@compiled
def find_rows(
    rows: int, count: int, offsets: int, validity: int, kinds: int, columns: int, in_key: int, key_kinds: int,
    any_: int, whole: int,
) -> tuple[int, int, int, bool]:  # fmt: skip
    """Find the messages that have a row, and the first value of each row.

    `rows` is the address of the messages' indices in the batch; `offsets` and `validity` give each message's first
    value and whether it has the row, `kinds` the kind of each value. `in_key` has a byte for each column, 0 outside of
    the key; `key_kinds` is 0 or the address of a byte for each message, K for a row that is a key. The address `any_`
    gets the indices among `rows` of the messages with a row and, behind `count` of them, their first values; `whole`
    gets those of rows that are no key (the same address if none can be).

    Returns the number of each; the message with another number of values than `columns`, -1 if none; and whether a row
    that is a key has a value outside of the key.
    """
    found = 0
    found_whole = 0
    has_more = False
    for index in range(count):
        row = read8(rows, index)
        if not read1(validity, row >> 3) >> (row & 7) & 1:
            continue
        cell = read8(offsets, row)
        if read8(offsets, row + 1) - cell != columns:
            return found, found_whole, index, has_more
        write8(any_, found, index)
        write8(any_, count + found, cell)
        found += 1
        if key_kinds == 0 or read1(key_kinds, row) != KEY:
            write8(whole, found_whole, index)
            write8(whole, count + found_whole, cell)
            found_whole += 1
        elif not has_more:
            for column in range(columns):
                has_more |= read1(in_key, column) == 0 and read1(kinds, cell + column) != NULL
    return found, found_whole, -1, has_more


@compiled
def measure_rows(table: int, lines: int) -> None:
    """Note the most bytes that the texts of each line can take, which they do take unless some are left.

    `table` is the address of the table, and `lines` the number of its lines.
    """
    for index in range(lines):
        line = table + 8 * ENTRIES * index
        code = read8(line, CODE)
        if code < STRING:
            continue
        first, kinds, lengths = read8(line, FIRST), read8(line, KINDS), read8(line, LENGTHS)
        total = 0
        for place in range(read8(line, COUNT)):
            cell = read8(first, place)
            kind = read1(kinds, cell)
            if kind in (TEXT, BINARY):
                length = read4(lengths, cell)
                total += length >> 1 if code == BYTES and kind == TEXT else length
        write8(line, TOTAL, total)


@compiled
def load_rows(data: Any, table: int, lines: int, block: Any, address: int, texts: Any, left: int) -> int:
    """Load the values of rows, and note the kind of each as its state.

    `data` is a batch's bytes; `table` the address of the table, and `lines` the number of its lines. The output lies in
    `block`, at `address`, and is 0 where there is no value; nothing is written for a line without rows. Texts go to
    `texts`, with PADDING bytes around them all. `left` is the address of an array that gets the line's index and the
    row of each value that is left; texts that are not UTF-8 are among these.

    Returns the number of values left. They are 0 or empty in the output, except for these texts.
    """
    count = 0
    steps = -(-_most(table, lines) // BLOCK)
    for step in range(steps):
        # A column at a time, so that each loop does one thing.
        for index in range(lines):
            line = table + 8 * ENTRIES * index
            begin, end = _part(line, step, steps)
            if begin >= end:
                continue
            _make_ready(line, begin, end)
            code = read8(line, CODE)
            if code == OTHER:
                count = _load_other(data, line, index, begin, end, left, count)
            elif code == INT16:
                count = _load_int16(data, line, index, begin, end, left, count)
            elif code == INT32:
                count = _load_int32(data, line, index, begin, end, left, count)
            elif code == INT64:
                count = _load_int64(data, line, index, begin, end, left, count)
            elif code == OID:
                count = _load_oid(data, line, index, begin, end, left, count)
            elif code == BOOLEAN:
                count = _load_boolean(data, line, index, begin, end, left, count)
            elif code == FLOAT32:
                count = _load_float32(data, line, index, begin, end, left, count)
            elif code == FLOAT64:
                count = _load_float64(data, line, index, begin, end, left, count)
            elif code == DECIMAL:
                count = _load_decimal(data, line, index, begin, end, left, count)
            elif code == DATE:
                count = _load_date(data, line, index, begin, end, left, count)
            elif code == TIMESTAMP:
                count = _load_timestamp(data, line, index, begin, end, left, count)
            elif code == TIMESTAMPTZ:
                count = _load_timestamptz(data, line, index, begin, end, left, count)
            elif code == STRING:
                count = _load_string(data, line, index, begin, end, left, count, texts)
            elif code == UUID:
                count = _load_uuid(data, line, index, begin, end, left, count, texts)
            elif code == NUMBER:
                count = _load_number(data, line, index, begin, end, left, count, texts)
            elif code == BYTES:
                count = _load_bytes(data, line, index, begin, end, left, count, texts)
    for index in range(lines):
        line = table + 8 * ENTRIES * index
        _finish(line, block, address)
        if read8(line, CODE) == STRING and read8(line, TOTAL) > 0:
            count = _leave_bad(texts, line, index, left, count)
    return count


@inlined
def _most(table: int, lines: int) -> int:
    """Return the most rows that a line has."""
    most = 0
    for index in range(lines):
        most = max(most, read8(table + 8 * ENTRIES * index, COUNT))
    return most


@inlined
def _part(line: int, step: int, steps: int) -> Any:
    """Return the range of a line's rows that are loaded in one step."""
    count = read8(line, COUNT)
    return count * step // steps, count * (step + 1) // steps


@inlined
def _make_ready(line: int, begin: int, end: int) -> None:
    """Clear the output of some of the rows that have the column, and of the rows up to the next that has it.

    Clearing here costs little: the memory is about to enter the cache in any case.
    """
    rows, count, changes, width = read8(line, ROWS), read8(line, COUNT), read8(line, CHANGES), read8(line, WIDTH)
    first = 0 if begin == 0 else read8(rows, begin)
    last = changes if end == count else read8(rows, end)
    values = read8(line, VALUES)
    if read8(line, CODE) >= STRING:
        # The first text's offset; each other offset is written behind its text.
        write4(values, 0, 0)
        values += width
    _clear(values + width * first, width * (last - first))
    # The states are read LANES at a time.
    _clear(read8(line, STATES) + first, (-(-last // LANES) * LANES if end == count else last) - first)


@inlined
def _finish(line: int, block: Any, address: int) -> None:
    """Make the validity from the states, and the offsets of texts from their lengths."""
    if read8(line, COUNT) == 0:
        return
    states, validity = read8(line, STATES) - address, read8(line, VALIDITY)
    rows = read8(line, CHANGES)
    valued = 0
    for row in range(0, rows, LANES):
        bits = _are_t(block, states + row) | _are_b(block, states + row)
        write4(validity, row // LANES, bits)
        valued += _count_bits(bits)
    write8(line, VALUED, valued)
    if read8(line, CODE) >= STRING:
        offsets = read8(line, VALUES)
        total = 0
        for row in range(rows):
            total += read4(offsets, row + 1)
            write4(offsets, row + 1, total)
        write8(line, TOTAL, total)


@inlined
def _leave_bad(texts: Any, line: int, index: int, left: int, count: int) -> int:
    """Leave a line's texts that are not UTF-8. Returns the number of values left so far."""
    rows, offsets, start, length = read8(line, CHANGES), read8(line, VALUES), read8(line, TEXTS), read8(line, TOTAL)
    if not are_utf8(texts, start, length, offsets, rows):
        for row in range(rows):
            if not is_utf8(texts, start + read4(offsets, row), start + read4(offsets, row + 1)):
                write8(left, 2 * count, index)
                write8(left, 2 * count + 1, row)
                count += 1
    return count
