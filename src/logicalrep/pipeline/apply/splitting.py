"""A batch's rows by table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from logicalrep.arrow.slices import chosen_slices

_ENOUGH_ROWS, _ENOUGH_BYTES = 20_000, 8 << 20
"""The rows, and the bytes, from which on a batch is not joined with the next one."""


def by_table(batches: Iterable[pa.RecordBatch]) -> dict[int, list[pa.RecordBatch]]:
    """Return the change feed's rows by their tables' OIDs, in the order they have; messages have none and are left out.

    Rows of a large transaction, which may lie in a file, stay where they are.

    Example:
        >>> {oid: sum(batch.num_rows for batch in rows) for oid, rows in by_table(changes.batches).items()}
        {16385: 3, 16390: 1}
    """
    found: dict[int, list[pa.RecordBatch]] = {}
    for batch in _joined(batches):
        of_rows = batch.column("relation_id").fill_null(0).to_numpy(zero_copy_only=False)
        oids = np.unique(of_rows).tolist()
        for oid in oids:
            if oid:
                parts = [batch] if len(oids) == 1 else chosen_slices(batch, of_rows == oid)
                found.setdefault(oid, []).extend(parts)
    return found


def _joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows with small batches joined: each costs milliseconds, and a small transaction has its own."""
    small: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.nbytes >= _ENOUGH_BYTES:
            yield from _one(small)
            yield batch
            small, rows, size = [], 0, 0
            continue
        small.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _ENOUGH_ROWS or size >= _ENOUGH_BYTES:
            yield from _one(small)
            small, rows, size = [], 0, 0
    yield from _one(small)


def _one(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    return batches if len(batches) < 2 else pa.Table.from_batches(batches).combine_chunks().to_batches()
