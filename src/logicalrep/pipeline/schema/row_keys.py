from __future__ import annotations

import numpy as np
import pyarrow as pa

from logicalrep.pipeline.schema.row_texts import row_texts
from logicalrep.pipeline.schema.table_spec import TableSpec


def row_keys(table: TableSpec, rows: pa.Table) -> pa.Array:
    """Return one value per row: two are equal if and only if the rows' keys are.

    Without a key all columns are compared; then NULL equals NULL, and NaN equals NaN.
    """
    columns = [rows.column(name) for name in table.key_names]
    if table.key is not None and len(columns) == 1 and _is_plain(columns[0].type):
        return _whole(columns[0])
    if not columns:
        return pa.array(np.zeros(rows.num_rows, np.int8))
    return _whole(row_texts(columns))


def _is_plain(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_string(type_) or pa.types.is_date(type_))


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
