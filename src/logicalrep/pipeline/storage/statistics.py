"""Statistics of data files, which let readers and replicate skip files.

A file has the bounds of all columns of `statistics_columns`, or no bounds: if one file alone lacks a column's bounds,
some readers take its values for values that meet no condition.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from logicalrep.pipeline.schema.forms import END_COLUMN

_MOST_COLUMNS = 32
_LONGEST_TEXT = 32
"""The number of characters of a text in a bound."""
LAST = chr(0x10FFFF)
"""The end of an upper bound that is a truncated text."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """The bounds of a file's values by column; empty if a bound has no JSON form."""

    least: dict[str, Any] = field(default_factory=dict)
    """A lower bound of each column that has values."""
    greatest: dict[str, Any] = field(default_factory=dict)
    """An upper bound of each column that has values."""
    nulls: dict[str, int] = field(default_factory=dict)
    """The number of nulls of each column with bounds."""
    other_nulls: dict[str, int] = field(default_factory=dict, compare=False)
    """The number of nulls of each column without bounds: Iceberg alone stores it."""


def statistics_columns(schema: pa.Schema) -> list[str]:
    """Return the columns with statistics: the end columns and the first columns whose bounds are exact in JSON."""
    names = [column.name for column in schema if _has_bounds(column.type)]
    # Each batch checks by the end columns whether a file has current rows.
    return sorted(names, key=lambda name: name not in END_COLUMN.values())[:_MOST_COLUMNS]


def statistics_of(rows: pa.Table) -> Statistics:
    nulls = {name: rows.column(name).null_count for name in rows.column_names}
    without_bounds = Statistics(other_nulls=dict(nulls))
    bounded = statistics_columns(rows.schema)
    statistics = Statistics(nulls={name: nulls.pop(name) for name in bounded}, other_nulls=nulls)
    for name in bounded:
        column = rows.column(name)
        if column.null_count == len(column):
            continue
        bounds = pc.min_max(column)
        try:
            least, greatest = bounds["min"].as_py(), bounds["max"].as_py()
        except (OverflowError, ValueError):
            # Python's dates cover the years 1 to 9999.
            return without_bounds
        if isinstance(greatest, str) and len(greatest) > _LONGEST_TEXT:
            if greatest[_LONGEST_TEXT] == LAST:
                return without_bounds
            greatest = greatest[:_LONGEST_TEXT] + LAST
        statistics.least[name] = least[:_LONGEST_TEXT] if isinstance(least, str) else least
        statistics.greatest[name] = greatest
    return statistics


def _has_bounds(type_: pa.DataType) -> bool:
    is_number = pa.types.is_integer(type_)
    return bool(is_number or pa.types.is_string(type_) or pa.types.is_date(type_) or pa.types.is_timestamp(type_))
