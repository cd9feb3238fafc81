"""The statistics by which readers, and we, leave data files out.

A file has the bounds of all columns of `statistics_columns`, or of none: some readers take a column whose bounds are
missing in one file alone for one that meets no condition.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from logicalrep.pipeline.schema.forms import END

_MOST_COLUMNS = 32
_LONGEST_TEXT = 32
"""The characters of a text that are in a bound."""
LAST = chr(0x10FFFF)
"""The end of an upper bound that is a cut text."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """The bounds of a file's values, by columns; empty where a column's bounds have no form in JSON."""

    least: dict[str, Any] = field(default_factory=dict)
    """A value of each column that has any, which none of the file's is below."""
    greatest: dict[str, Any] = field(default_factory=dict)
    """A value which none of the file's is above."""
    nulls: dict[str, int] = field(default_factory=dict)
    """The number of nulls."""


def statistics_columns(schema: pa.Schema) -> list[str]:
    """Return the first columns, and those of `END`, whose types have bounds that are exact in JSON."""
    names = [column.name for column in schema if _has_bounds(column.type)]
    # Each batch asks of every file whether it has current rows.
    return sorted(names, key=lambda name: name not in END.values())[:_MOST_COLUMNS]


def statistics_of(rows: pa.Table) -> Statistics:
    """Return the statistics of a file's rows."""
    statistics = Statistics()
    for name in statistics_columns(rows.schema):
        column = rows.column(name)
        statistics.nulls[name] = column.null_count
        if column.null_count == len(column):
            continue
        bounds = pc.min_max(column)
        try:
            least, greatest = bounds["min"].as_py(), bounds["max"].as_py()
        except (OverflowError, ValueError):
            # Python has no dates before the year 1 or after 9999.
            return Statistics()
        if isinstance(greatest, str) and len(greatest) > _LONGEST_TEXT:
            if greatest[_LONGEST_TEXT] == LAST:
                return Statistics()
            greatest = greatest[:_LONGEST_TEXT] + LAST
        statistics.least[name] = least[:_LONGEST_TEXT] if isinstance(least, str) else least
        statistics.greatest[name] = greatest
    return statistics


def _has_bounds(type_: pa.DataType) -> bool:
    is_number = pa.types.is_integer(type_)
    return bool(is_number or pa.types.is_string(type_) or pa.types.is_date(type_) or pa.types.is_timestamp(type_))
