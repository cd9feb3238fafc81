"""Slices of rows that are bounded by bytes, and rows passed to other processes without the memory behind a slice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatch)

_LONG_RUN = 100
"""The rows one after another that are taken as they are."""


def sliced(rows: _Rows, most_bytes: int) -> Iterator[_Rows]:
    """Yield rows in slices of at most some bytes, in their order; a row that alone has more is a slice of its own.

    Example:
        >>> [part.num_rows for part in sliced(rows, 48 << 20)]
        [512, 512, 1, 1]
    """
    if rows.num_rows < 2 or rows.nbytes <= most_bytes:
        yield rows
        return
    half = rows.num_rows // 2
    yield from sliced(rows.slice(0, half), most_bytes)
    yield from sliced(rows.slice(half), most_bytes)


def in_parts(batches: Iterable[pa.RecordBatch], most_bytes: int) -> Iterator[pa.Table]:
    """Yield rows in parts of at most some bytes, in their order; a row that alone has more is a part of its own."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        for part in sliced(batch, most_bytes):
            if held and size + part.nbytes > most_bytes:
                yield pa.Table.from_batches(held)
                held, size = [], 0
            if part.num_rows:
                held.append(part)
                size += part.nbytes
    if held:
        yield pa.Table.from_batches(held)


def chosen(rows: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """Return the rows for which a mask is true, in their order; long runs of them are not copied.

    Example:
        >>> chosen(rows, pc.greater(rows["commit_lsn"], 17)).num_rows
        3
    """
    if not rows.num_rows:
        return rows
    is_one = mask.fill_null(False).to_numpy()
    ends = np.cumsum([batch.num_rows for batch in rows.to_batches()])
    found = [
        part
        for batch, its in zip(rows.to_batches(), np.split(is_one, ends[:-1]), strict=True)
        for part in chosen_slices(batch, its)
    ]
    return pa.Table.from_batches(found, rows.schema)


def chosen_slices(batch: pa.RecordBatch, mask: NDArray[np.bool_]) -> list[pa.RecordBatch]:
    """Return the rows of a batch for which a mask is true: slices where these are long, else a copy of them."""
    if not mask.any():
        return []
    starts = [0, *(np.flatnonzero(np.diff(mask)) + 1).tolist()]
    if len(starts) > 1 and len(starts) * _LONG_RUN > batch.num_rows:
        return [batch.filter(pa.array(mask))]
    return [batch.slice(start, end - start) for start, end in pairwise([*starts, batch.num_rows]) if mask[start]]


def packed(rows: pa.Table) -> bytes:
    """Return rows as bytes, those of a slice alone: pickled, a slice has all the memory that it is a part of."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpacked(data: bytes) -> pa.Table:
    """Return the rows in the bytes of `packed`."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()
