"""Slices of rows that are bounded by bytes, and rows passed to other processes without the memory behind a slice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import pyarrow as pa

_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatch)


def sliced(rows: _Rows, most_bytes: int) -> Iterator[_Rows]:
    """Yield rows in slices of at most `most_bytes`; a larger row is a slice by itself."""
    if rows.num_rows < 2 or rows.nbytes <= most_bytes:
        yield rows
        return
    half = rows.num_rows // 2
    yield from sliced(rows.slice(0, half), most_bytes)
    yield from sliced(rows.slice(half), most_bytes)


def packed(rows: pa.Table) -> bytes:
    """Return the bytes of the slice alone: a pickled slice has all the memory behind it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpacked(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()
