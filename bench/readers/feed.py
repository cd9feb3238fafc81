"""The change data feed that two versions of a table imply."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from bench.readers.examining import texts_of


def changes_between(old: pa.Table, new: pa.Table, version: int) -> pa.Table:
    """Return the rows before and after each change between two versions, as Delta's change data feed has them."""
    old_rows, new_rows = _rows_by_id(old), _rows_by_id(new)
    changed = [id_ for id_, row in old_rows.items() if new_rows.get(id_, row) != row]
    parts = {
        "insert": _rows_of(new, new_rows.keys() - old_rows.keys()),
        "delete": _rows_of(old, old_rows.keys() - new_rows.keys()),
        "update_preimage": _rows_of(old, changed),
        "update_postimage": _rows_of(new, changed),
    }
    return pa.concat_tables(
        rows.append_column("_change_type", pa.array([kind] * len(rows), pa.string())).append_column(
            "_commit_version", pa.array([version] * len(rows), pa.int64())
        )
        for kind, rows in parts.items()
    )


def _rows_by_id(rows: pa.Table) -> dict[int, tuple[str, ...]]:
    texts = [texts_of(column, column.type) for column in rows.columns]
    return dict(zip(rows.column("id").to_pylist(), zip(*texts, strict=True), strict=True))


def _rows_of(rows: pa.Table, ids: Collection[int]) -> pa.Table:
    return rows.filter(pc.field("id").isin(list(ids)))


__all__ = ["changes_between"]
