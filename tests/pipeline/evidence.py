"""Facts of the catalog for descriptions of tables that no server has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from logicalrep.pipeline.schema.table_facts import Evidence


def evidence(columns: Sequence[tuple[int, str, int, int]], **facts: Any) -> Evidence:
    """Return the facts of columns (number, name, type's OID and modifier), with others as given or empty."""
    numbers = max((number for number, *_ in columns), default=0)
    fields: dict[str, Any] = {
        "columns_written": (), "numbers": numbers, "published": (), "written": (), "links": (), "bounds": (), "labelled": (),
        "key_indexes": (), "filled": (), "logged": (), "lc_monetary": "C",
    }  # fmt: skip
    return Evidence(columns=tuple(columns), **{**fields, **facts})
