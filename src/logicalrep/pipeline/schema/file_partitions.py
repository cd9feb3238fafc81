"""File partitions: a rule, such as the day of a column, that assigns the rows of a stored table to files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from logicalrep.pipeline.schema.buckets import buckets_of
from logicalrep_runtime.errors import LogicalRepError

Transform = Literal["value", "day", "month", "bucket"]
PartitionValue = int | str | bool | None
"""The partition value of all rows of a file; a day is the days since 1970, a month the months since 1970."""

MOST_BUCKETS = 10_000
_TRANSFORMED = re.compile(r"(?:(day|month)\( *(.+?) *\)|bucket\( *(\d+) *, *(.+?) *\))")
_NULL_IN_LOGS = ("", "__HIVE_DEFAULT_PARTITION__")
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""The first day of the year 1 and the last day of the year 9999, as days since 1970."""


class PartitionColumnError(LogicalRepError, ValueError):
    code = "PARTITION_COLUMN"


class PartitionValueError(LogicalRepError, ValueError):
    code = "PARTITION_VALUE"


class WantedPartition(NamedTuple):
    transform: Transform
    column: str
    buckets: int = 0

    @classmethod
    def of(cls, text: str) -> WantedPartition:
        """Raises ValueError unless the number of buckets is from 1 to 10,000."""
        match = _TRANSFORMED.fullmatch(text.strip())
        if match is None:
            return cls("value", text)
        if match[3] is None:
            return cls("day" if match[1] == "day" else "month", match[2])
        if not 1 <= int(match[3]) <= MOST_BUCKETS:
            raise ValueError(f"{text} has {match[3]} buckets: there can be 1 to {MOST_BUCKETS:,}")
        return cls("bucket", match[4], int(match[3]))


class PartitionRule(NamedTuple):
    """A rule of a table, with the number of its column: renaming the column does not change it."""

    transform: Transform
    number: int
    buckets: int = 0


@dataclass(frozen=True)
class FilePartition:
    source: str
    type: pa.DataType
    transform: Transform
    buckets: int
    is_hidden: bool
    """Whether the format stores the values in its metadata; otherwise they are a column of the table."""

    @property
    def name(self) -> str:
        """The column of the stored table that has the values; if they are hidden, their name in the metadata."""
        if self.transform != "value":
            return f"_{self.source}_{self.transform}"
        return f"_{self.source}" if self.is_hidden else self.source

    @property
    def own_field(self) -> pa.Field | None:
        """The column to add to the table for the values; None if it needs none."""
        if self.is_hidden or self.transform == "value":
            return None
        types = {"day": pa.date32(), "month": pa.string(), "bucket": pa.int32()}
        return pa.field(self.name, types[self.transform])

    @property
    def problem(self) -> str | None:
        type_, is_time = self.type, pa.types.is_date(self.type) or pa.types.is_timestamp(self.type)
        is_whole = pa.types.is_integer(type_) or pa.types.is_string(type_)
        if self.transform in ("day", "month"):
            return None if is_time else f"the column {self.source} is neither a date nor a timestamp"
        if self.transform == "bucket":
            return None if is_whole or is_time else f"buckets do not support the type of the column {self.source}"
        if is_whole or pa.types.is_boolean(type_) or pa.types.is_date(type_):
            return None
        return f"values of the type of the column {self.source} cannot be partitions" + (
            ": use its day" if is_time else ""
        )

    def values_of(self, column: pa.Array) -> pa.Array:
        """Raises PartitionValueError for a value that the format cannot have."""
        if self.transform == "bucket":
            return buckets_of(column, self.buckets)
        if not (pa.types.is_date(self.type) or pa.types.is_timestamp(self.type)):
            if not self.is_hidden and pa.types.is_string(self.type):
                is_null_text = pc.is_in(column, value_set=pa.array(_NULL_IN_LOGS, column.type))
                if pc.any(is_null_text).as_py():
                    text = column.filter(is_null_text)[0].as_py()
                    raise PartitionValueError(
                        f"the column {self.source} has the text {text!r}, which programs read as NULL in partitions "
                        f"of a Delta table: partition by bucket(16, {self.source}), or an Iceberg table"
                    )
            return column
        days = _days(column)
        if not self.is_hidden and len(days) - days.null_count:
            bounds = pc.min_max(days)
            if bounds["min"].as_py() < _FIRST_DAY or bounds["max"].as_py() > _LAST_DAY:
                raise PartitionValueError(
                    f"the column {self.source} has a date outside of the years 1 to 9999, which no partition of a "
                    f"Delta table can have: partition by bucket(16, {self.source}), or an Iceberg table"
                )
        return days if self.transform != "month" else _months(days)

    def logged(self, value: PartitionValue) -> str | None:
        """Return a value's text in a Delta log, such as `2026-11`; None for NULL."""
        if value is None:
            return None
        if self.transform == "month":
            assert isinstance(value, int)
            return f"{1970 + value // 12:04}-{value % 12 + 1:02}"
        if self._has_days:
            return str(pa.scalar(value, pa.int32()).cast(pa.date32()).as_py())
        return str(value).lower() if isinstance(value, bool) else str(value)

    def scalar(self, value: PartitionValue) -> pa.Scalar:
        if self.transform == "month":
            return pa.scalar(self.logged(value), pa.string())
        if self._has_days:
            return pa.scalar(value, pa.int32()).cast(pa.date32())
        return pa.scalar(value, pa.int32() if self.transform == "bucket" else self.type)

    def value_of(self, logged: object) -> PartitionValue:
        """The inverse of `scalar`, and of `logged` for a month. Raises ValueError."""
        if logged is None:
            return None
        if self.transform == "month":
            year, _, month = str(logged).rpartition("-")
            return (int(year) - 1970) * 12 + int(month) - 1
        if self._has_days:
            days: int = pa.scalar(logged, pa.date32()).cast(pa.int32()).as_py()
            return days
        assert isinstance(logged, int | str | bool)
        return logged

    @property
    def _has_days(self) -> bool:
        return self.transform == "day" or (self.transform == "value" and pa.types.is_date(self.type))


def partitioning_problem(partitions: Sequence[FilePartition], names: Sequence[str]) -> str | None:
    for partition in partitions:
        if partition.problem is not None:
            return partition.problem
        if partition.name != partition.source and partition.name.casefold() in {name.casefold() for name in names}:
            return f"its column {partition.name} has the name of its partitions: rename the column"
    if not all(partition.is_hidden for partition in partitions) and {*names} <= {
        partition.name for partition in partitions
    }:
        return "a Delta table needs a column that is no partition column"
    return None


def _days(column: pa.Array) -> pa.Array:
    """Return the days since 1970 of dates or times, rounded down, also before 1970."""
    if pa.types.is_date(column.type):
        return column.cast(pa.int32())
    day = 86_400_000_000
    times = column.cast(pa.int64())
    quotients = pc.divide(times, day)
    # Arrow rounds towards zero.
    is_above = pc.greater(pc.multiply(quotients, day), times)
    return pc.subtract(quotients, is_above.cast(pa.int64())).cast(pa.int32())


def _months(days: pa.Array) -> pa.Array:
    dates = days.cast(pa.date32())
    months = pc.add(pc.multiply(pc.subtract(pc.year(dates), 1970), 12), pc.subtract(pc.month(dates), 1))
    return months.cast(pa.int32())
