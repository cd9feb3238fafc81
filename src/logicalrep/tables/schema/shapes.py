"""The columns and the key that rows of the change feed have: all that the stream says of a changed table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.tables.delta.replicated_table import ReplicatedTable

_Fingerprints = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns and the key of rows."""

    names: frozenset[str] | None
    """The columns' names; None where no row tells them, as rows of deletes have the key's only."""
    key: frozenset[str]
    """The columns that the replica identity sends of old rows."""

    def fits(self, table: ReplicatedTable) -> bool:
        """Return whether rows of this shape are those of a table."""
        has_key = table.sent_key is None or self.key == set(table.sent_key)
        return has_key and (self.names is None or self.names == set(table.relation.names))


def by_shape(rows: pa.Table) -> Iterator[tuple[Shape, pa.Table]]:
    """Yield a table's rows of the change feed in runs of one shape, in their order.

    Example:
        >>> [(sorted(shape.names), part.num_rows) for shape, part in by_shape(rows)]
        [(['id', 'v'], 7), (['id', 'v', 'w'], 3)]
    """
    if not rows.num_rows:
        return
    (batch,) = rows.combine_chunks().to_batches()
    after, unchanged, key = batch["after"], batch["unchanged"], batch["key"]
    of_names = _fingerprints(after, after.keys) + _fingerprints(unchanged, unchanged.values)
    # A row that does not tell the columns has those of the row before it.
    tells = after.is_valid().to_numpy(zero_copy_only=False)
    teller = np.maximum.accumulate(np.where(tells, np.arange(len(batch)), -1))
    of_names = np.where(teller < 0, np.uint64(0), of_names[teller])
    of_key = _fingerprints(key, key.values)
    starts = [0, *(np.flatnonzero((np.diff(of_names) != 0) | (np.diff(of_key) != 0)) + 1).tolist(), len(batch)]
    for start, end in pairwise(starts):
        key_names = frozenset(key[start].as_py())
        names = None
        if teller[start] >= 0:
            row = int(teller[start])
            names = frozenset(name for name, _ in after[row].as_py()) | frozenset(unchanged[row].as_py())
        yield Shape(names if names is None or key_names <= names else None, key_names), rows.slice(start, end - start)


def _fingerprints(lists: pa.ListArray, items: pa.StringArray) -> _Fingerprints:
    """Return for each list of names a number that another set of names has not."""
    ends = lists.offsets.to_numpy()
    encoded = items[int(ends[0]) : int(ends[-1])].dictionary_encode()
    numbers = [
        int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")
        for name in encoded.dictionary.to_pylist()
    ]
    of_items = np.array(numbers, np.uint64)[encoded.indices.to_numpy(zero_copy_only=False)]
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(of_items, dtype=np.uint64)))
    found: _Fingerprints = sums[ends[1:] - ends[0]] - sums[ends[:-1] - ends[0]]
    return found
