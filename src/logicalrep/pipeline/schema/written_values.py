from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.table.columns import Rows
from logicalrep.arrow.table.typed_rows import refuse_unfit
from logicalrep.pipeline.schema.table_spec import TableSpec, WrittenColumn

_WAY_OUT = (
    "the setting unrepresentable is error, which stops the table: --unrepresentable null or text accepts such values"
)
_WAY_OUT_OF_KEY = "the column is part of the key, which cannot be NULL: change the value in the database"


def written_values(table: TableSpec, column: WrittenColumn, rows: Rows, chosen: NDArray[np.int64]) -> pa.Array:
    """Raises ColumnValueError if the type cannot hold a chosen row's value, and the column refuses NULL."""
    source = table.columns[column.ordinal]
    if column.has_texts:
        texts = np.full(rows.values.num_rows, None, object)
        for row, text in rows.unfit.get(source.name, {}).items():
            texts[row] = text
        return pa.array(texts, pa.string())
    if column.refuses:
        is_of_key = source.name in (table.key or ())
        refuse_unfit(
            rows,
            source,
            column.ordinal,
            chosen,
            _WAY_OUT_OF_KEY if is_of_key else _WAY_OUT,
            f"the stored type {column.type}",
            partial(_row_text, table, rows),
        )
    return rows.values.column(column.ordinal).cast(column.type)


def _row_text(table: TableSpec, rows: Rows, row: int) -> str:
    """Return the row's key, without columns that are masked or left out; empty without a key."""
    names = [name for name in table.key or () if name not in table.settings.protected]
    texts = {name: rows.unfit.get(name, {}).get(row) for name in names}
    values = [f"{name}={text or rows.values.column(name)[row].as_py()}" for name, text in texts.items()]
    return f" (in the row {', '.join(values)})" if values else ""


def unfit_counts(table: TableSpec, rows: Rows, chosen: NDArray[np.int64]) -> Counter[str]:
    """Columns that refuse NULL are not counted: such a value is an error."""
    is_chosen = np.zeros(rows.values.num_rows, bool)
    is_chosen[chosen] = True
    names = {table.columns[column.ordinal].name for column in table.written if not column.refuses}
    counts = {name: sum(bool(is_chosen[row]) for row in texts) for name, texts in rows.unfit.items() if name in names}
    return Counter({name: count for name, count in counts.items() if count})
