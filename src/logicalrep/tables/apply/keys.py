"""The identity of rows as one value each, so that rows can be found by it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logicalrep.tables.delta.replicated_table import ReplicatedTable

_TEXT = pa.large_binary()


def row_keys(table: ReplicatedTable, rows: pa.Table) -> pa.Array:
    """Return one value for each row, equal for rows with the same key and for no others.

    Without a key all columns count; NULL equals NULL then, and NaN equals NaN.

    Args:
        table: the table, which tells the key.
        rows: rows with at least the key's columns.
    """
    columns = [rows.column(name) for name in table.key_names]
    if table.key is not None and len(columns) == 1 and _is_plain(columns[0].type):
        return _whole(columns[0])
    if not columns:
        return pa.array(np.zeros(rows.num_rows, np.int8))
    parts = [_encoded(column) for column in columns]
    return _whole(pc.binary_join_element_wise(*parts, pa.scalar(b"", _TEXT)))


def _is_plain(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_string(type_) or pa.types.is_date(type_))


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _encoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return each value as its length and its text, so that no two rows of values have the same joined text."""
    texts = _texts(column).cast(_TEXT)
    lengths = pc.binary_length(texts).cast(pa.large_string()).cast(_TEXT)
    whole = pc.binary_join_element_wise(lengths, texts, pa.scalar(b":", _TEXT))
    return pc.if_else(texts.is_null(), pa.scalar(b"-", _TEXT), whole)


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    type_ = column.type
    if pa.types.is_nested(type_):
        texts = [None if value is None else repr(value) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.large_string())])
    if pa.types.is_timestamp(type_):
        column = column.cast(pa.int64())
    if pa.types.is_binary(type_):
        return column
    return column.cast(pa.large_string())


__all__ = ["row_keys"]
