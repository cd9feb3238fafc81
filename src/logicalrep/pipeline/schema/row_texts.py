from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

_TEXT = pa.large_binary()
_NOTHING = pa.scalar(b"", _TEXT)


def row_texts(columns: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Array | pa.ChunkedArray:
    """Return texts that are equal if and only if all values are: NULL equals NULL, NaN equals NaN, 0 is not -0."""
    return pc.binary_join_element_wise(*map(_delimited, columns), _NOTHING)


def _delimited(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_delimited(chunk) for chunk in column.chunks], _TEXT)
    texts = _texts(column)
    lengths = pc.binary_length(texts).cast(pa.large_string()).cast(_TEXT)
    whole = pc.binary_join_element_wise(lengths, texts, pa.scalar(b":", _TEXT))
    return pc.if_else(texts.is_null(), pa.scalar(b"-", _TEXT), whole)


def _texts(column: pa.Array) -> pa.Array:
    type_ = column.type
    if pa.types.is_map(type_):
        entry = pa.struct([pa.field("key", type_.key_type, nullable=False), pa.field("value", type_.item_type)])
        return _texts(column.cast(pa.list_(entry)))
    if pa.types.is_list(type_):
        ends = pc.cumulative_sum(pc.list_value_length(column).fill_null(0))
        offsets = pa.concat_arrays([pa.array([0], ends.type), ends])
        items = pa.ListArray.from_arrays(offsets, _delimited(column.flatten()))
        return _where_valid(column, pc.binary_join(items, _NOTHING))
    if pa.types.is_struct(type_):
        return _where_valid(column, row_texts(column.flatten()))
    if pa.types.is_timestamp(type_) or pa.types.is_date32(type_):
        # Arrow's text of a day after the year 9999 is not unique.
        column = column.cast(pa.int64() if pa.types.is_timestamp(type_) else pa.int32())
    return (column if pa.types.is_binary(type_) else column.cast(pa.large_string())).cast(_TEXT)


def _where_valid(column: pa.Array, texts: pa.Array) -> pa.Array:
    return pc.if_else(column.is_valid(), texts, pa.scalar(None, _TEXT))
