"""Compiled loaders of rows' values: what a server ordinarily writes, read where it lies in a batch, row after row.

Each knows for sure what it reads, exactly as the loaders in `values` do, and leaves all else to those. What to do with
a column stands in its line of a table of int64: see the names of the entries below.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from logicalrep.columnar.memory import (
    compiled,
    copy,
    inlined,
    int16,
    int32,
    int64,
    is_utf8,
    read1,
    read4,
    read8,
    uint8,
    uint32,
    write1,
    write2,
    write4,
    write8,
)

TEXT = ord("t")
BINARY = ord("b")

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
"""What is made of a column: OTHER leaves all of its values; UUID and NUMBER are strings of that form."""

ENTRIES = 8
CODE, IN_KEY, PRECISION, SCALE, VALUES, STATES, TOTAL, VALUED = range(ENTRIES)
"""A column's line in the table: one of the codes; whether rows that are a key have it; a decimal's digits, in all and
after the point; where in the block its values begin, of strings and bytes the offsets; the address of the states; the
bytes of all strings, and for `copy_rows` where they begin; how many values there are."""

_MINUS, _PLUS, _POINT, _BLANK, _ZERO = map(ord, "-+. 0")
_A, _F, _X, _BACKSLASH, _TRUE, _FALSE = map(ord, "afx\\tf")
_BLOCK = 16
_MOST = (1 << 63) - 1
_DAY = 86_400_000_000


def _leap_days(year: int) -> int:
    """How many leap days there are before a year, from the year 1 on."""
    return (year - 1) // 4 - (year - 1) // 100 + (year - 1) // 400


# Each byte of an integer: the characters 0 and ., the highest bit, and what takes a byte above 9 to that bit.
_ZEROS, _POINTS = 0x3030303030303030, 0x2E2E2E2E2E2E2E2E
_HIGH, _TO_HIGH = -0x7F7F7F7F7F7F7F80, 0x7676767676767676
# What is no digit in `0000-00-` and in `00:00:00`.
_CALENDAR, _CLOCK = (int.from_bytes(form, "big") for form in (b"0000-00-", b"00:00:00"))
_CALENDAR_MARKS, _CLOCK_MARKS = 0x00000000FF0000FF, 0x0000FF0000FF0000
# Days from 1970-01-01 to each year, those of each month in an ordinary year, and those before it.
_YEARS = np.array([365 * (year - 1970) + _leap_days(year) - _leap_days(1970) for year in range(10_001)])
_MONTH_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
_MONTHS = np.cumsum(_MONTH_DAYS) - _MONTH_DAYS
_POWERS = np.array([10**exponent for exponent in range(19)])
_NO_DAY = -(1 << 40)
# In UTC: the beginning of the year 1, and of the year 10000.
_FIRST_MOMENT, _END_MOMENT = -62_135_596_800_000_000, 253_402_300_800_000_000


@compiled
def load_rows(
    data: Any, kinds: int, starts: int, lengths: int, first: Any, is_key: Any, table: int, columns: int, block: int,
    floats4: Any, floats8: Any, powers4: Any, powers8: Any, hard: Any,
) -> int:  # fmt: skip
    """Load the values of rows, and note the kind of each as its state: 0 where the row has none.

    `data` is a batch's bytes; `kinds`, `starts` and `lengths` are the addresses of what a walk found of its values
    (logicalrep.columnar.walked.Cells); `first` is for each row the index of its first value, negative where there is no
    such row; `is_key` says which rows are a key. `block` is the address of the block that takes the values, `floats4`
    and `floats8` the block as arrays. `hard` gets those that are left, each as row * columns + column.

    Returns how many are left. Their values are 0 or empty here.
    """
    count = 0
    for column in range(columns):
        line = table + 8 * ENTRIES * column
        if read8(line, CODE) >= STRING:
            write4(block + read8(line, VALUES), 0, 0)
    # A column at a time, so that each loop does one thing; of so many rows that their values are still in the cache.
    for begin in range(0, len(first), _BLOCK):
        end = min(begin + _BLOCK, len(first))
        for column in range(columns):
            line = table + 8 * ENTRIES * column
            code = read8(line, CODE)
            valued = 0
            states = read8(line, STATES)
            for row in range(begin, end):
                kind = 0
                if first[row] >= 0 and (not is_key[row] or read8(line, IN_KEY)):
                    kind = read1(kinds, first[row] + column)
                write1(states, row, kind)
                valued += _is_valued(kind)
            write8(line, VALUED, read8(line, VALUED) + valued)
            place = read8(line, VALUES)
            out = block + place
            if code == OTHER:
                for row in range(begin, end):
                    if _is_valued(read1(states, row)):
                        hard[count] = row * columns + column
                        count += 1
            elif code >= STRING:
                total = read8(line, TOTAL)
                for row in range(begin, end):
                    kind = read1(states, row)
                    if _is_valued(kind):
                        cell = first[row] + column
                        length = read4(lengths, cell)
                        if _is_good(data, read8(starts, cell), length, kind, code):
                            total += (length - 2) >> 1 if code == BYTES and kind == TEXT else length
                        else:
                            hard[count] = row * columns + column
                            count += 1
                    write4(out, row + 1, total)
                write8(line, TOTAL, total)
            elif code in (FLOAT32, FLOAT64):
                for row in range(begin, end):
                    kind = read1(states, row)
                    number = 0
                    places = 0
                    if _is_valued(kind):
                        cell = first[row] + column
                        most = (1 << 53, 22) if code == FLOAT64 else (1 << 24, 10)
                        number, places, good = _float(data, read8(starts, cell), read4(lengths, cell), kind, *most)
                        if not good:
                            hard[count] = row * columns + column
                            count += 1
                    if code == FLOAT64:
                        floats8[(place >> 3) + row] = floats8.dtype.type(number) / powers8[places]
                    else:
                        floats4[(place >> 2) + row] = floats4.dtype.type(number) / powers4[places]
            elif code in (TIMESTAMP, TIMESTAMPTZ):
                zone = int(code == TIMESTAMPTZ)
                for row in range(begin, end):
                    kind = read1(states, row)
                    number = 0
                    if _is_valued(kind):
                        cell = first[row] + column
                        number, good = _timestamp(data, read8(starts, cell), read4(lengths, cell), kind, zone)
                        if not good:
                            number = 0
                            hard[count] = row * columns + column
                            count += 1
                    write8(out, row, number)
            elif code == INT32:
                for row in range(begin, end):
                    kind = read1(states, row)
                    number = 0
                    if _is_valued(kind):
                        cell = first[row] + column
                        number, good = _integer(data, read8(starts, cell), read4(lengths, cell), kind, line, INT32)
                        if not good:
                            number = 0
                            hard[count] = row * columns + column
                            count += 1
                    write4(out, row, number)
            else:
                for row in range(begin, end):
                    kind = read1(states, row)
                    number = 0
                    if _is_valued(kind):
                        cell = first[row] + column
                        number, good = _integer(data, read8(starts, cell), read4(lengths, cell), kind, line, code)
                        if not good:
                            number = 0
                            hard[count] = row * columns + column
                            count += 1
                    if code == DECIMAL:
                        write8(out, 2 * row, number)
                        write8(out, 2 * row + 1, number >> 63)
                    elif code == DATE:
                        write4(out, row, number)
                    elif code == BOOLEAN:
                        write1(out, row, number)
                    elif code == INT16:
                        write2(out, row, number)
                    else:
                        write8(out, row, number)
    return count


@inlined
def _is_valued(kind: int) -> bool:
    return kind in (TEXT, BINARY)


@inlined
def _timestamp(data: Any, start: int, length: int, kind: int, zone: int) -> Any:
    if kind != TEXT or length < 19 + 3 * zone or length > 26 + 3 * zone:
        return 0, False
    return _moment(data, start, start + length, zone)


@inlined
def _integer(data: Any, start: int, length: int, kind: int, line: int, code: int) -> Any:
    """What becomes an integer, timestamps apart: the integer, and whether it is one for sure."""
    end = start + length
    if code == DECIMAL:
        if kind != TEXT:
            return 0, False
        return _decimal(data, start, end, read8(line, PRECISION), read8(line, SCALE))
    if code == DATE:
        days = _days(data, start) if kind == TEXT and length == 10 else _NO_DAY
        return days, days != _NO_DAY
    if code == BOOLEAN:
        byte = uint8(data, start) if length == 1 else 255
        if kind == TEXT:
            return byte == _TRUE, byte in (_TRUE, _FALSE)
        return byte == 1, byte <= 1
    low = -_MOST - 1
    high = _MOST
    width = 8
    if code == INT32:
        low, high, width = -(1 << 31), (1 << 31) - 1, 4
    elif code == INT16:
        low, high, width = -(1 << 15), (1 << 15) - 1, 2
    elif code == OID:
        low, high, width = 0, (1 << 32) - 1, 4
    if kind == BINARY:
        if length != width:
            return 0, False
        if code == INT16:
            return int16(data, start), True
        if code == INT32:
            return int32(data, start), True
        if code == OID:
            return uint32(data, start), True
        return int64(data, start), True
    negative = length > 0 and uint8(data, start) == _MINUS
    number = _digits(data, start + negative, end)
    good = number >= 0
    if negative:
        number = -number
    return number, good and low <= number <= high


@inlined
def _digits(data: Any, start: int, end: int) -> int:
    """The number that 1 to 18 digits stand for; -1 if they are none, or more.

    Up to eight at a time, as the bytes of one integer: what is read beyond the end is shifted out.
    """
    if end <= start or end - start > 18:
        return -1
    number = 0
    while start < end:
        size = min(end - start, 8)
        if start + 8 > len(data):
            digit = uint8(data, start) - _ZERO
            if digit < 0 or digit > 9:
                return -1
            number = 10 * number + digit
            start += 1
            continue
        digits = (int64(data, start) ^ _ZEROS) >> (64 - 8 * size)
        if (digits | (digits + _TO_HIGH)) & _HIGH:
            return -1
        digits = ((digits >> 8) & 0x00FF00FF00FF00FF) * 10 + (digits & 0x00FF00FF00FF00FF)
        digits = ((digits >> 16) & 0x0000FFFF0000FFFF) * 100 + (digits & 0x0000FFFF0000FFFF)
        digits = (digits >> 32) * 10000 + (digits & 0xFFFFFFFF)
        number = number * _POWERS[size] + digits
        start += size
    return number


@inlined
def _scaled(data: Any, start: int, end: int) -> Any:
    """The digits of a decimal number as a whole number, how many there are, and how many after the point.

    There are no digits where it is no such number, or one of more than 18 digits.
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
def _decimal(data: Any, start: int, end: int, precision: int, scale: int) -> Any:
    negative = start < end and uint8(data, start) == _MINUS
    start += negative
    if scale > 0 and end - start > scale + 1 and end - start <= 18 and uint8(data, end - scale - 1) == _POINT:
        # As the server prints it: all digits that there may be after the point.
        whole, fraction = _digits(data, start, end - scale - 1), _digits(data, end - scale, end)
        if whole < 0 or fraction < 0:
            return 0, False
        number = whole * _POWERS[scale] + fraction
    else:
        number, digits, places = _scaled(data, start, end)
        missing = scale - places
        if digits == 0 or missing < 0 or digits + missing > 18:
            return 0, False
        number *= _POWERS[missing]
    if precision < 18 and number >= _POWERS[precision]:
        return 0, False
    return -number if negative else number, True


@inlined
def _float(data: Any, start: int, length: int, kind: int, most: int, most_places: int) -> Any:
    """A number of few digits as a whole number and how many of its digits stand after the point.

    Divided by that power of ten it is rounded once, if both are exact: `most` is the largest whole number that is.
    """
    if kind != TEXT:
        return 0, 0, False
    negative = length > 0 and uint8(data, start) == _MINUS
    number, digits, places = _scaled(data, start + negative, start + length)
    # A zero below zero keeps its sign elsewhere.
    if digits == 0 or number > most or places > most_places or (negative and number == 0):
        return 0, 0, False
    return -number if negative else number, places, True


@inlined
def _days(data: Any, start: int) -> Any:
    """Days from 1970-01-01 to the `year-month-day` of ten characters there; _NO_DAY if there is none."""
    calendar = int64(data, start) ^ _CALENDAR
    day = _digits(data, start + 8, start + 10)
    if calendar & _CALENDAR_MARKS or (calendar | (calendar + _TO_HIGH)) & _HIGH:
        return _NO_DAY
    year = 1000 * (calendar >> 56) + 100 * (calendar >> 48 & 15) + 10 * (calendar >> 40 & 15) + (calendar >> 32 & 15)
    month = 10 * (calendar >> 16 & 15) + (calendar >> 8 & 15)
    if year < 1 or month < 1 or month > 12 or day < 1:
        return _NO_DAY
    # A division takes as long as all the rest.
    first = _YEARS[year]
    leap = _YEARS[year + 1] - first - 365
    if day > _MONTH_DAYS[month] + (leap & (month == 2)):
        return _NO_DAY
    return first + _MONTHS[month] + (leap & (month > 2)) + day - 1


@inlined
def _moment(data: Any, start: int, end: int, zone: int) -> Any:
    """Microseconds since 1970-01-01, and whether it is a timestamp of the years 1 to 9999."""
    days = _days(data, start)
    clock = int64(data, start + 11) ^ _CLOCK
    if (
        days == _NO_DAY
        or clock & _CLOCK_MARKS
        or (clock | (clock + _TO_HIGH)) & _HIGH
        or uint8(data, start + 10) != _BLANK
    ):
        return 0, False
    hour = 10 * (clock >> 56) + (clock >> 48 & 15)
    minute = 10 * (clock >> 32 & 15) + (clock >> 24 & 15)
    second = 10 * (clock >> 8 & 15) + (clock & 15)
    if hour > 23 or minute > 59 or second > 59:
        return 0, False
    moment = days * _DAY + (hour * 3600 + minute * 60 + second) * 1_000_000
    if zone:
        end -= 3
        sign = uint8(data, end)
        hours = _digits(data, end + 1, end + 3)
        if (sign != _PLUS and sign != _MINUS) or hours < 0 or hours > 15:
            return 0, False
        shift = hours * 3_600_000_000
        moment += shift if sign == _MINUS else -shift
    offset = start + 19
    if offset < end:
        fraction = _digits(data, offset + 1, end)
        if fraction < 0 or uint8(data, offset) != _POINT:
            return 0, False
        moment += fraction * _POWERS[6 - (end - offset - 1)]
    return moment, _FIRST_MOMENT <= moment < _END_MOMENT


@inlined
def _is_good(data: Any, start: int, length: int, kind: int, code: int) -> Any:
    """Whether a string or bytes can be copied as they are, or be made of hexadecimal digits."""
    end = start + length
    if kind == BINARY:
        return code == BYTES
    if code == STRING:
        return _is_ascii(data, start, end) or is_utf8(data, start, end)
    if code == NUMBER:
        return _is_number(data, start, end)
    if code == UUID:
        return length == 36 and _is_uuid(data, start)
    if length < 2 or length % 2 or uint8(data, start) != _BACKSLASH or uint8(data, start + 1) != _X:
        return False
    for offset in range(start + 2, end):  # noqa: SIM110 (numba has no all())
        if _hexadecimal(uint8(data, offset)) < 0:
            return False
    return True


@inlined
def _is_ascii(data: Any, start: int, end: int) -> bool:
    """Whether a text is all ASCII, for sure: not so at the very end of the data."""
    while start < end:
        if start + 8 > len(data):
            return False
        size = min(end - start, 8)
        if int64(data, start) & (_HIGH << (64 - 8 * size)):
            return False
        start += size
    return True


@inlined
def _is_uuid(data: Any, start: int) -> bool:
    for index in range(36):
        byte = uint8(data, start + index)
        if index == 8 or index == 13 or index == 18 or index == 23:
            if byte != _MINUS:
                return False
        elif _hexadecimal(byte) < 0:
            return False
    return True


@inlined
def _is_number(data: Any, start: int, end: int) -> bool:
    """Whether it is a decimal number without zeros in front, which is what it is printed as."""
    if start < end and uint8(data, start) == _MINUS:
        start += 1
    if start >= end or uint8(data, start) == _POINT or uint8(data, end - 1) == _POINT:
        return False
    if uint8(data, start) == _ZERO and end - start > 1 and uint8(data, start + 1) != _POINT:
        return False
    points = 0
    while start < end:
        if start + 8 > len(data):
            byte = uint8(data, start)
            points += byte == _POINT
            if byte != _POINT and (byte < _ZERO or byte > _ZERO + 9):
                return False
            start += 1
            continue
        size = min(end - start, 8)
        beyond = 64 - 8 * size
        digits = int64(data, start) ^ _ZEROS
        others = ((digits | (digits + _TO_HIGH)) & _HIGH) >> beyond
        # The highest bit of each byte that is a point.
        point = int64(data, start) ^ _POINTS
        point = (~(((point & ~_HIGH) + ~_HIGH) | point) & _HIGH) >> beyond
        if others != point or point & (point - 1):
            return False
        points += point != 0
        start += size
    return points <= 1


@inlined
def _hexadecimal(byte: int) -> int:
    """What a small hexadecimal digit stands for; -1 if it is none."""
    if _ZERO <= byte <= _ZERO + 9:
        return byte - _ZERO
    return byte - _A + 10 if _A <= byte <= _F else -1


@compiled
def copy_rows(
    data: Any, kinds: int, starts: int, lengths: int, first: Any, table: int, columns: int, block: int, out: Any
) -> None:  # fmt: skip
    """Copy the strings and bytes of each column together, to where `load_rows` says that they end."""
    for row in range(len(first)):
        for column in range(columns):
            line = table + 8 * ENTRIES * column
            if read8(line, CODE) < STRING:
                continue
            ends = block + read8(line, VALUES)
            length = read4(ends, row + 1) - read4(ends, row)
            if length > 0:
                to = read8(line, TOTAL) + read4(ends, row)
                start = read8(starts, first[row] + column)
                if read8(line, CODE) == BYTES and read1(kinds, first[row] + column) == TEXT:
                    for index in range(length):
                        high = _hexadecimal(uint8(data, start + 2 + 2 * index))
                        out[to + index] = high << 4 | _hexadecimal(uint8(data, start + 3 + 2 * index))
                else:
                    copy(out, to, data, start, length, read8(line, TOTAL) + read4(ends, len(first)))
