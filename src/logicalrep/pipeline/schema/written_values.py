"""The values of a stored table's columns, made of the server's rows: what becomes of those that a type cannot hold."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.table.columns import Rows
from logicalrep.arrow.table.typed_rows import refuse_unfit
from logicalrep.pipeline.schema.table_spec import TableSpec, WrittenColumn

_WAY_OUT = "--unrepresentable null or text takes such values"
_WAY_OUT_OF_KEY = "the column is of the key, which has to have a value: change it in the database"


def written_values(table: TableSpec, column: WrittenColumn, rows: Rows, chosen: NDArray[np.int64]) -> pa.Array:
    """Return the values of one of the stored table's columns, one for each row.

    Args:
        table: the table.
        column: the column.
        rows: the server's rows, of the table's columns.
        chosen: the numbers of the rows that have the column.

    Raises:
        ColumnValueError: the column's type cannot hold the value of a chosen row, and it must not be NULL.
    """
    source = table.columns[column.ordinal]
    if column.has_texts:
        texts = np.full(rows.values.num_rows, None, object)
        for row, text in rows.unfit.get(source.name, {}).items():
            texts[row] = text
        return pa.array(texts, pa.string())
    if column.refuses:
        is_of_key = source.name in (table.key or ())
        refuse_unfit(rows, source, column.ordinal, chosen, _WAY_OUT_OF_KEY if is_of_key else _WAY_OUT)
    return rows.values.column(column.ordinal).cast(column.type)


def unfit_counts(table: TableSpec, rows: Rows, chosen: NDArray[np.int64]) -> Counter[str]:
    """Return how many values of chosen rows the types of their columns cannot hold, by the names of these columns.

    A column whose value must not be NULL has none: such a value is an error.
    """
    is_chosen = np.zeros(rows.values.num_rows, bool)
    is_chosen[chosen] = True
    names = {table.columns[column.ordinal].name for column in table.written if not column.refuses}
    counts = {name: sum(bool(is_chosen[row]) for row in texts) for name, texts in rows.unfit.items() if name in names}
    return Counter({name: count for name, count in counts.items() if count})
