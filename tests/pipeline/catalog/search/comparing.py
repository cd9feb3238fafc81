"""The rows of a copy beside those that the server has, also in companion tables, without any code of the project."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from logicalrep.pipeline.spec.table_settings import TableSettings
from tests.pipeline.comparison import counted


def difference(folder: Path, columns: list[str], expected: Counter[Any], settings: TableSettings) -> str:
    """Return how a copy differs from the rows that the server has in some columns; an empty text if it does not."""
    if not (folder / "_delta_log").exists():
        return "it is not there"
    rows = DeltaTable(folder).to_pyarrow_table()
    if settings.deletes == "soft":
        rows = rows.filter(pc.invert(rows["_deleted"]))
    found = _difference(rows, columns, expected)
    if not found and settings.history:
        versions = DeltaTable(f"{folder}~history").to_pyarrow_table()
        found = _difference(versions.filter(versions["_is_current"]), columns, expected)
        if found:
            return f"the versions of now in its history: {found}"
    return found


def _difference(rows: pa.Table, columns: list[str], expected: Counter[Any]) -> str:
    # Columns of the companion's own, and the texts of values that a type cannot hold, which no history has.
    names = [name for name in rows.column_names if not name.startswith("_") and not name.endswith("_text")]
    if names != columns:
        return f"its columns are {names}, and not {columns}"
    there = counted(rows.select(columns))
    missing, surplus = expected - there, there - expected
    if not missing and not surplus:
        return ""
    return f"{[*missing][:3]} are missing, {[*surplus][:3]} too many"


__all__ = ["difference"]
