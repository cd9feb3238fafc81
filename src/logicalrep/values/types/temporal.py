"""Dates and times: Python's own objects where they can hold the value, exact integers otherwise.

`datetime` has a smaller range than PostgreSQL: no year before 1 or after 9999, no infinity and no 24:00:00. Such
values become an ExtendedDate, ExtendedTime or ExtendedTimestamp, which hold the server's own integer and print its
text.

Only the ISO DateStyle is read: in other styles 01/02/2003 can mean two days.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone

from logicalrep_runtime.scalars import EPOCH

__all__ = ["ExtendedDate", "ExtendedTime", "ExtendedTimestamp"]

_EPOCH = EPOCH.replace(tzinfo=None)
_EPOCH_ORDINAL = EPOCH.toordinal()
_LAST_ORDINAL = date.max.toordinal()
SECOND = 1_000_000
_DAY = 86_400 * SECOND

# The Gregorian calendar repeats after 400 years, so the years of `date` stand for all years.
_CYCLE_YEARS = 400
_CYCLE_DAYS = 146_097

_INFINITE_DATE = {2**31 - 1: "infinity", -(2**31): "-infinity"}
_INFINITE_TIMESTAMP = {2**63 - 1: "infinity", -(2**63): "-infinity"}

# The server's limits: from Julian day 0, 24 November 4714 BC, up to the ends of 5874897 and 294276.
_FIRST_DAY, _END_DAY = -2_451_545, 2_145_031_949
_FIRST_MICROSECOND, _END_MICROSECOND = -211_813_488_000_000_000, 9_223_371_331_200_000_000


# --- the calendar ----------------------------------------------------------------------------------------------


def _days(year: int, month: int, day: int) -> int:
    """Return the days from 2000-01-01 to a day of the proleptic Gregorian calendar; year 0 is 1 BC."""
    cycles, year_of_cycle = divmod(year - 1, _CYCLE_YEARS)
    return date(year_of_cycle + 1, month, day).toordinal() + cycles * _CYCLE_DAYS - _EPOCH_ORDINAL


def _format_days(days: int) -> tuple[str, str]:
    cycles, day_of_cycle = divmod(days + _EPOCH_ORDINAL - 1, _CYCLE_DAYS)
    day = date.fromordinal(day_of_cycle + 1)
    year = day.year + cycles * _CYCLE_YEARS
    before_christ = year < 1
    return f"{1 - year if before_christ else year:04d}-{day:%m-%d}", " BC" if before_christ else ""


def format_clock(microseconds: int) -> str:
    seconds, fraction = divmod(microseconds, SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    decimals = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{hour:02d}:{minute:02d}:{second:02d}{decimals}"


def _format_offset(seconds: int) -> str:
    minutes, second = divmod(abs(seconds), 60)
    hour, minute = divmod(minutes, 60)
    rest = f":{minute:02d}:{second:02d}" if second else f":{minute:02d}" if minute else ""
    return f"{'-' if seconds < 0 else '+'}{hour:02d}{rest}"


def read_microseconds(fraction: str | None) -> int:
    return int(fraction.ljust(6, "0")) if fraction else 0


# --- values that Python's types lack ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class ExtendedDate:
    """A date that `datetime.date` cannot hold: before the year 1, after 9999, or infinite. Prints as PostgreSQL's text.

    Attributes:
        days: days since 2000-01-01; 2**31 - 1 and -2**31 are infinity and -infinity, as on the server.
    """

    days: int

    @property
    def is_infinite(self) -> bool:
        """Whether the date is infinity or -infinity."""
        return self.days in _INFINITE_DATE

    def __str__(self) -> str:
        return _INFINITE_DATE.get(self.days) or "".join(_format_days(self.days))


@dataclass(frozen=True, slots=True, order=True)
class ExtendedTimestamp:
    """A timestamp outside the range of `datetime.datetime`, with the same range and text rules as ExtendedDate.

    Attributes:
        microseconds: microseconds since 2000-01-01 00:00:00, in UTC for a timestamp with time zone; 2**63 - 1 and
            -2**63 are infinity and -infinity, as on the server.
        with_time_zone: whether it is a `timestamp with time zone`.
    """

    microseconds: int
    with_time_zone: bool = False

    @property
    def is_infinite(self) -> bool:
        """Whether the timestamp is infinity or -infinity."""
        return self.microseconds in _INFINITE_TIMESTAMP

    def __str__(self) -> str:
        if infinity := _INFINITE_TIMESTAMP.get(self.microseconds):
            return infinity
        days, clock = divmod(self.microseconds, _DAY)
        day, era = _format_days(days)
        return f"{day} {format_clock(clock)}{'+00' if self.with_time_zone else ''}{era}"


@dataclass(frozen=True, slots=True, order=True)
class ExtendedTime:
    """The time 24:00:00, which `datetime.time` cannot hold.

    Attributes:
        microseconds: microseconds since midnight.
        utc_offset: seconds east of UTC for a `time with time zone`; None for a `time without time zone`.
    """

    microseconds: int
    utc_offset: int | None = None

    def __str__(self) -> str:
        offset = "" if self.utc_offset is None else _format_offset(self.utc_offset)
        return format_clock(self.microseconds) + offset


# --- date ------------------------------------------------------------------------------------------------------

# Python itself reads most values, in a quarter of the time. The patterns exclude texts that servers never write.
_PLAIN_DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch
_PLAIN_TIME = re.compile(r"[0-2][0-9]:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?").fullmatch
_PLAIN_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(\+00)?"
).fullmatch

_DATE = re.compile(r"([0-9]{4,7})-([0-9]{2})-([0-9]{2})( BC)?")


def date_text(text: str) -> date | ExtendedDate:
    if _PLAIN_DATE(text):
        return date.fromisoformat(text)
    match = _DATE.fullmatch(text)
    if match is None:
        if text == "infinity":
            return ExtendedDate(2**31 - 1)
        if text == "-infinity":
            return ExtendedDate(-(2**31))
        raise ValueError("not a date in the ISO style")
    return _make_date(_days(_year(match[1], match[4]), int(match[2]), int(match[3])))


def make_date(days: int) -> date | ExtendedDate:
    if days in _INFINITE_DATE:
        return ExtendedDate(days)
    return _make_date(days)


def _make_date(days: int) -> date | ExtendedDate:
    ordinal = days + _EPOCH_ORDINAL
    if 1 <= ordinal <= _LAST_ORDINAL:
        return date.fromordinal(ordinal)
    if not _FIRST_DAY <= days < _END_DAY:
        raise ValueError("a date out of the server's range")
    return ExtendedDate(days)


def _year(digits: str, before_christ: str | None) -> int:
    """Return the astronomical year (1 BC is 0)."""
    year = int(digits)
    if not year:
        raise ValueError("there is no year 0")
    return 1 - year if before_christ else year


def format_date(value: date | ExtendedDate) -> str:
    return str(value)


# --- timestamp -------------------------------------------------------------------------------------------------

_TIMESTAMP = re.compile(
    r"([0-9]{4,6})-([0-9]{2})-([0-9]{2}) ([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?"
    r"(?:([+-])([0-9]{2})(?::([0-9]{2})(?::([0-9]{2}))?)?)?( BC)?"
)


def timestamp_text(text: str) -> datetime | ExtendedTimestamp:
    return _timestamp_text(text, False)


def timestamptz_text(text: str) -> datetime | ExtendedTimestamp:
    """Read a timestamp with time zone, in UTC. The text's own offset applies, and not the session's TimeZone."""
    return _timestamp_text(text, True)


def _timestamp_text(text: str, with_time_zone: bool) -> datetime | ExtendedTimestamp:
    plain = _PLAIN_TIMESTAMP(text)
    if plain and (plain[1] is not None) is with_time_zone:
        return datetime.fromisoformat(text)
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        if text == "infinity":
            return ExtendedTimestamp(2**63 - 1, with_time_zone)
        if text == "-infinity":
            return ExtendedTimestamp(-(2**63), with_time_zone)
        raise ValueError("not a timestamp in the ISO style")
    year, month, day, hour, minute, second, fraction, sign, hours, minutes, seconds, era = match.groups()
    if (sign is not None) is not with_time_zone:
        raise ValueError("the time zone offset is missing" if with_time_zone else "an unexpected time zone offset")
    days = _days(_year(year, era), int(month), int(day))
    clock = _clock(int(hour), int(minute), int(second))
    if clock >= _DAY:
        raise ValueError("the hour is 24")
    offset = _offset(sign, hours, minutes, seconds)
    return _make_timestamp(
        days * _DAY + clock + read_microseconds(fraction) - offset * SECOND,
        with_time_zone,
    )


def _clock(hour: int, minute: int, second: int) -> int:
    """Return the microseconds since midnight. 24:00:00 is a valid time."""
    if minute > 59 or second > 59 or hour > 24 or (hour == 24 and (minute or second)):
        raise ValueError("not a time of a day")
    return (hour * 3600 + minute * 60 + second) * SECOND


def _offset(sign: str | None, hours: str | None, minutes: str | None, seconds: str | None) -> int:
    offset = int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    if offset >= 16 * 3600 or int(minutes or 0) > 59 or int(seconds or 0) > 59:
        raise ValueError("not a time zone offset")
    return -offset if sign == "-" else offset


def make_timestamp(microseconds: int) -> datetime | ExtendedTimestamp:
    if microseconds in _INFINITE_TIMESTAMP:
        return ExtendedTimestamp(microseconds)
    return _make_timestamp(microseconds, False)


def make_timestamptz(microseconds: int) -> datetime | ExtendedTimestamp:
    if microseconds in _INFINITE_TIMESTAMP:
        return ExtendedTimestamp(microseconds, True)
    return _make_timestamp(microseconds, True)


def _make_timestamp(microseconds: int, with_time_zone: bool) -> datetime | ExtendedTimestamp:
    try:
        return (EPOCH if with_time_zone else _EPOCH) + timedelta(microseconds=microseconds)
    except OverflowError:
        if not _FIRST_MICROSECOND <= microseconds < _END_MICROSECOND:
            raise ValueError("a timestamp out of the server's range") from None
        return ExtendedTimestamp(microseconds, with_time_zone)


def format_timestamp(value: datetime | ExtendedTimestamp) -> str:
    """Return PostgreSQL's text, in UTC with the offset +00 if the value has a time zone."""
    if isinstance(value, ExtendedTimestamp):
        return str(value)
    if value.tzinfo is not None:
        value = value.astimezone(UTC)
    text = value.replace(tzinfo=None).isoformat(" ")
    if value.microsecond:
        text = text.rstrip("0")
    return text if value.tzinfo is None else f"{text}+00"


# --- time ------------------------------------------------------------------------------------------------------

_TIME = re.compile(
    r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?"
    r"(?:([+-])([0-9]{2})(?::([0-9]{2})(?::([0-9]{2}))?)?)?"
)


def time_text(text: str) -> time | ExtendedTime:
    return _time_text(text, False)


def timetz_text(text: str) -> time | ExtendedTime:
    return _time_text(text, True)


def _time_text(text: str, with_time_zone: bool) -> time | ExtendedTime:
    if not with_time_zone and _PLAIN_TIME(text) and text[:2] != "24":
        return time.fromisoformat(text)
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError("not a time")
    hour, minute, second, fraction, sign, hours, minutes, seconds = match.groups()
    if (sign is not None) is not with_time_zone:
        raise ValueError("the time zone offset is missing" if with_time_zone else "an unexpected time zone offset")
    microseconds = _clock(int(hour), int(minute), int(second)) + read_microseconds(fraction)
    return _make_time(microseconds, _offset(sign, hours, minutes, seconds) if with_time_zone else None)


def make_time(microseconds: int) -> time | ExtendedTime:
    return _make_time(microseconds, None)


def make_timetz(microseconds: int, seconds_west: int) -> time | ExtendedTime:
    if abs(seconds_west) >= 16 * 3600:
        raise ValueError("not a time zone offset")
    return _make_time(microseconds, -seconds_west)


def _make_time(microseconds: int, utc_offset: int | None) -> time | ExtendedTime:
    if not 0 <= microseconds <= _DAY:
        raise ValueError("not a time of a day")
    if microseconds == _DAY:
        return ExtendedTime(microseconds, utc_offset)
    zone = None if utc_offset is None else timezone(timedelta(seconds=utc_offset))
    seconds, fraction = divmod(microseconds, SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return time(hour, minute, second, fraction, zone)


def format_time(value: time | ExtendedTime) -> str:
    if isinstance(value, ExtendedTime):
        return str(value)
    text = value.replace(tzinfo=None).isoformat()
    if value.microsecond:
        text = text.rstrip("0")
    offset = value.utcoffset()
    return text if offset is None else text + _format_offset(round(offset.total_seconds()))


# --- Arrow -----------------------------------------------------------------------------------------------------

_UNIX_EPOCH_DAYS = _EPOCH_ORDINAL - date(1970, 1, 1).toordinal()


def arrow_date(value: date | ExtendedDate) -> date | int:
    """Return a value for date32: days since 1970-01-01 if Python has no such date."""
    if isinstance(value, ExtendedDate):
        if value.is_infinite:
            raise ValueError("the target type has no infinite date")
        return value.days + _UNIX_EPOCH_DAYS
    return value


def arrow_timestamp(value: datetime | ExtendedTimestamp) -> datetime | int:
    """Return a value for timestamp[us]: microseconds since 1970-01-01 if Python has no such datetime."""
    if isinstance(value, ExtendedTimestamp):
        if value.is_infinite:
            raise ValueError("the target type has no infinite timestamp")
        microseconds = value.microseconds + _UNIX_EPOCH_DAYS * _DAY
        if microseconds > 2**63 - 1:
            raise ValueError("after the target type's last timestamp, 294247-01-10 04:00:54.775807")
        return microseconds
    return value


def arrow_time(value: time | ExtendedTime) -> time:
    """Return a value for time64[us], which ends before 24:00:00."""
    if isinstance(value, ExtendedTime):
        raise ValueError("the target type has no 24:00:00")
    return value
