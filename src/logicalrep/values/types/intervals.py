"""Intervals: separate months, days and microseconds, as on the server. Only the IntervalStyle postgres is read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from logicalrep.values.types.temporal import SECOND, format_clock, read_microseconds

_INT32_MAX, _INT32_MIN, _INT64_MAX, _INT64_MIN = 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval as on the server: three parts that do not convert into each other. Prints as PostgreSQL's text.

    Attributes:
        months, days, microseconds: each with its own sign; 12 months are printed as a year. All three at their
        highest or lowest value are infinity and -infinity (since PostgreSQL 17).
    """

    months: int = 0
    days: int = 0
    microseconds: int = 0

    @property
    def is_infinite(self) -> bool:
        """Whether the interval is infinity or -infinity."""
        return self in _INFINITE_INTERVAL

    def __str__(self) -> str:
        if infinity := _INFINITE_INTERVAL.get(self):
            return infinity
        parts: list[str] = []
        below_zero = False  # whether the part before has a minus, after which a plus is written out
        years = abs(self.months) // 12 * (-1 if self.months < 0 else 1)
        for count, unit in (years, "year"), (self.months - 12 * years, "mon"), (self.days, "day"):
            if count:
                parts.append(f"{'+' if below_zero and count > 0 else ''}{count} {unit}{'' if count == 1 else 's'}")
                below_zero = count < 0
        if self.microseconds or not parts:
            sign = "-" if self.microseconds < 0 else "+" if below_zero else ""
            parts.append(sign + format_clock(abs(self.microseconds)))
        return " ".join(parts)


_INFINITE_INTERVAL = {
    Interval(_INT32_MAX, _INT32_MAX, _INT64_MAX): "infinity",
    Interval(_INT32_MIN, _INT32_MIN, _INT64_MIN): "-infinity",
}

_INTERVAL = re.compile(
    r"(?:([+-]?[0-9]{1,10}) years?)?"
    r"(?:(?:^|(?<=[a-z]) )([+-]?[0-9]{1,10}) mons?)?"
    r"(?:(?:^|(?<=[a-z]) )([+-]?[0-9]{1,10}) days?)?"
    r"(?:(?:^|(?<=[a-z]) )([+-]?)([0-9]{2,10}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?)?"
)


def interval_text(text: str) -> Interval:
    match = _INTERVAL.fullmatch(text)
    if match is None or not text:
        for value, infinity in _INFINITE_INTERVAL.items():
            if text == infinity:
                return value
        raise ValueError("not an interval in the IntervalStyle postgres")
    years, months, days, sign, hours, minutes, seconds, fraction = match.groups()
    if int(minutes or 0) > 59 or int(seconds or 0) > 59:
        raise ValueError("more than 59 minutes or seconds")
    clock = int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    microseconds = clock * SECOND + read_microseconds(fraction)
    interval = Interval(
        int(years or 0) * 12 + int(months or 0),
        int(days or 0),
        -microseconds if sign == "-" else microseconds,
    )
    if not (
        _INT32_MIN <= interval.months <= _INT32_MAX
        and _INT32_MIN <= interval.days <= _INT32_MAX
        and _INT64_MIN <= interval.microseconds <= _INT64_MAX
    ):
        raise ValueError("an interval out of the server's range")
    return interval


def make_interval(microseconds: int, days: int, months: int) -> Interval:
    return Interval(months, days, microseconds)


def arrow_interval(value: Interval) -> tuple[int, int, int]:
    """Return a value for month_day_nano_interval: months, days, nanoseconds."""
    nanoseconds = value.microseconds * 1000
    if value.is_infinite or not _INT64_MIN <= nanoseconds <= _INT64_MAX:
        raise ValueError("the target type cannot hold this interval")
    return value.months, value.days, nanoseconds
