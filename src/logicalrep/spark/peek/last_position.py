"""The position of the last yielded row, from which a reader continues when it reads its range again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from logicalrep_runtime.scalars import Lsn, lsn_of


class YieldedRows:
    """The position of the last yielded row, and the yielded rows of that position.

    A position is a commit LSN with a change's number, or the end LSN of a message outside of transactions. The two
    images of an update share a position, as do a table's descriptions and the change after them.
    """

    def __init__(self) -> None:
        self._last: tuple[int, int] | None = None
        self._rows: set[tuple[object, ...]] = set()

    @property
    def lsn(self) -> Lsn | None:
        """The commit LSN of the last row's transaction, or the end LSN of its message; None before the first row."""
        return None if self._last is None else lsn_of(self._last[0])

    def take_new(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        lsns, ordinals = _positions(batch)
        if self._last is not None:
            lsn, ordinal = self._last
            is_new = (lsns > lsn) | ((lsns == lsn) & (ordinals > ordinal))
            equal_rows = np.flatnonzero((lsns == lsn) & (ordinals == ordinal))
            is_new[equal_rows] = [row not in self._rows for row in _rows(batch, equal_rows)]
            if not is_new.all():
                batch, lsns, ordinals = batch.filter(pa.array(is_new)), lsns[is_new], ordinals[is_new]
        if batch.num_rows:
            last = int(lsns[-1]), int(ordinals[-1])
            if last != self._last:
                self._last = last
                self._rows.clear()
            self._rows.update(_rows(batch, np.flatnonzero((lsns == lsns[-1]) & (ordinals == ordinals[-1]))))
        return batch


def _positions(batch: pa.RecordBatch) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the LSN and the ordinal of each row; the ordinal is -1 for a message outside of transactions."""
    if _is_typed(batch):
        lsns, ordinals = batch["_commit_version"], batch["_ordinal"]
    else:
        lsns, ordinals = pc.coalesce(batch["commit_lsn"], batch["lsn"]), batch["ordinal"].fill_null(-1)
    return lsns.to_numpy().view(np.uint64), ordinals.to_numpy()


def _rows(batch: pa.RecordBatch, indices: NDArray[np.int64]) -> list[tuple[object, ...]]:
    names = ["_change_type"] if _is_typed(batch) else ["op", "relation_id"]
    return list(zip(*(batch[name].take(indices).to_pylist() for name in names), strict=True))


def _is_typed(batch: pa.RecordBatch) -> bool:
    # A typed table may have columns with the feed's names, but none with these.
    return "_commit_version" in batch.schema.names
