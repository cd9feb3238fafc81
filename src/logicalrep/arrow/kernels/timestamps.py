"""Dates and timestamps, read in place from their text: see `digits`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from logicalrep.arrow.kernels.digits import MINUS, PLUS, POINT, POWERS, beyond_nine, last_digits, pairs
from logicalrep.transactions.tags import TEXT
from logicalrep_runtime.columnar.located import Bytes, Record
from logicalrep_runtime.columnar.memory import inlined, int64, uint8, uint16, uint32

_DAY = 86_400_000_000


def _leap_days(year: int) -> int:
    """Return the number of leap days before a year, counted from the year 1."""
    return (year - 1) // 4 - (year - 1) // 100 + (year - 1) // 400


# Days from 1970-01-01 to each year, times 2, plus 1 for a leap year.
_YEARS = np.array(
    [
        2 * (365 * (year - 1970) + _leap_days(year) - _leap_days(1970)) + _leap_days(year + 1) - _leap_days(year)
        for year in range(10_000)
    ]
)
_LENGTHS = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] + [0] * 115
# The days before each month, times 32, plus the month's length: first in an ordinary year, then in a leap year.
_MONTHS = np.array(
    [
        32 * (sum(_LENGTHS[:month]) + (leap and month > 2)) + _LENGTHS[month] + (leap and month == 2)
        for leap in (0, 1)
        for month in range(128)
    ]
)
_UTC = int.from_bytes(b"+00", "big")
# The beginning of the year 1 and of the year 10000, in UTC.
_FIRST, _END = -62_135_596_800_000_000, 253_402_300_800_000_000


@inlined
def _day(year: int, month: int, day: int) -> tuple[int, bool]:
    """Return the days from 1970-01-01 to a day, and whether the day exists."""
    # The tables spare a division, which would take as long as all the rest.
    first = _YEARS[year]
    days_before = _MONTHS[128 * (first & 1) + month]
    # Other months than 1 to 12 have no days, and there is no year 0.
    return (first >> 1) + (days_before >> 5) + day - 1, (day >= 1) & (day <= days_before & 31) & (year >= 1)


@inlined
def _year_and_month(data: Bytes, start: int) -> tuple[int, int, int]:
    """Return the year and month that eight characters stand for, and 0 if the characters have the form 2024-06-."""
    digits = int64(data, start) ^ 0x303030302D30302D
    numbers = pairs(digits)
    year = 100 * (numbers >> 48 & 0xFF) + (numbers >> 32 & 0xFF)
    return year, numbers >> 8 & 0xFF, beyond_nine(digits) | (digits & 0x00000000FF0000FF)


@inlined
def parse_date(data: Bytes, start: int, length: int, kind: int, column: Record) -> tuple[int, bool]:
    if kind != TEXT or length != 10:
        return 0, False
    year, month, wrong = _year_and_month(data, start)
    digits = uint16(data, start + 8) ^ 0x3030
    if wrong | beyond_nine(digits):
        return 0, False
    return _day(year, month, pairs(digits) & 0xFF)


def _timestamp(zone: int) -> Callable[..., Any]:
    @inlined
    def parse(data: Bytes, start: int, length: int, kind: int, column: Record) -> tuple[int, bool]:
        """Return microseconds since 1970-01-01, and whether it is a timestamp of the years 1 to 9999."""
        end = start + length - 3 * zone
        if kind != TEXT or end < start + 19 or end > start + 26:
            return 0, False
        year, month, wrong = _year_and_month(data, start)
        # The forms are "30 23:59" and ":59".
        digits = int64(data, start + 8) ^ 0x30302030303A3030
        more = (uint32(data, start + 15) & 0xFFFFFF) ^ 0x3A3030
        wrong |= beyond_nine(digits) | beyond_nine(more)
        if wrong | (digits & 0x0000FF0000FF0000) | (more & 0xFF0000):
            return 0, False
        numbers = pairs(digits)
        hour, minute, second = numbers >> 24 & 0xFF, numbers & 0xFF, pairs(more) & 0xFF
        fraction = 0
        if end > start + 19:
            places = end - start - 20
            fraction = last_digits(data, end, places)
            if uint8(data, start + 19) != POINT or places == 0 or fraction < 0:
                return 0, False
            fraction *= POWERS[6 - places]
        days, good = _day(year, month, numbers >> 48 & 0xFF)
        microseconds = days * _DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction
        if zone:
            written = uint32(data, end - 1) & 0xFFFFFF
            if written != _UTC:
                sign, digits = written >> 16, (written & 0xFFFF) ^ 0x3030
                hours = pairs(digits) & 0xFF
                if (sign != PLUS and sign != MINUS) or beyond_nine(digits) or hours > 15:
                    return 0, False
                shift = hours * 3_600_000_000
                microseconds += shift if sign == MINUS else -shift
        good &= (hour < 24) & (minute < 60) & (second < 60)
        return microseconds, good & (microseconds >= _FIRST) & (microseconds < _END)

    return parse


parse_timestamp, parse_timestamptz = _timestamp(0), _timestamp(1)
