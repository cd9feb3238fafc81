"""Changes of one table under one Relation message, with their values as the server sent them.

A value gets its type once the catalog has proven which columns the Relation lists, perhaps later and in another
process: until then it is the server's text. `typed_values` reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.slices import packed, unpacked
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.tags import DELETE, INSERT, UPDATE

UNREADABLE = ord("X")
"""The op of all changes of a transaction with a value that is not text; `unsent` has the columns."""
OLD, NEW = "old.", "new."
_UNSENT = pa.list_(pa.field("element", pa.int32(), nullable=False))
_SCHEMAS = 4096
"""The schemas that are remembered: making one costs as much as decoding a few rows."""
_TIME = pa.timestamp("us", "UTC")
_POSITIONS = (
    pa.field("op", pa.uint8(), nullable=False),
    pa.field("old_kind", pa.uint8(), nullable=False),
    pa.field("commit_lsn", pa.int64(), nullable=False),
    pa.field("ordinal", pa.int64(), nullable=False),
    pa.field("commit_timestamp", _TIME, nullable=False),
    pa.field("xid", pa.int64(), nullable=False),
    pa.field("unsent", _UNSENT, nullable=False),
)


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Changes in the order of the server, whole rows of the server's columns.

    The columns of `rows` are:

    - `op`: the tag of the message, such as `ord("I")`; or UNREADABLE.
    - `old_kind`: `ord("K")` for an old row with the replica identity's columns, `ord("O")` for a whole old row, else
      0.
    - `commit_lsn`, `ordinal`, `commit_timestamp`, `xid`: as in the change feed.
    - `unsent`: the indices of the columns whose TOAST value was not sent, and is not in a whole old row.
    - `old.<name>` and `new.<name>` for each column of the relation: the text; null for NULL, and where there is
      none.

    Example:
        >>> batch.relation.names, batch.num_rows
        (('id', 'v'), 333)
    """

    relation: TableDescription
    rows: pa.RecordBatch

    def __reduce__(self) -> tuple[object, ...]:
        # A slice would be pickled with all the memory that it is a part of.
        return _unpack, (self.relation, packed(pa.Table.from_batches([self.rows])))

    @classmethod
    def of(
        cls,
        relation: TableDescription,
        ops: NDArray[np.uint8],
        old_kinds: NDArray[np.uint8],
        positions: Sequence[NDArray[np.int64]],
        unsent: NDArray[np.bool_] | None,
        old: Sequence[pa.Array],
        new: Sequence[pa.Array],
    ) -> Self:
        """`positions`: commit LSNs, ordinals, commit times in microseconds since 1970, and transaction ids."""
        lsns, ordinals, times, xids = map(pa.array, positions)
        arrays = [pa.array(ops), pa.array(old_kinds), lsns, ordinals, times.view(_TIME), xids]
        arrays += [unsent_lists(unsent, len(ops)), *old, *new]
        return cls(relation, pa.RecordBatch.from_arrays(arrays, schema=schema_of(relation.names)))

    @property
    def num_rows(self) -> int:
        return int(self.rows.num_rows)

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes)

    @property
    def ops(self) -> NDArray[np.uint8]:
        return self._numbers("op")

    @property
    def lsns(self) -> NDArray[np.int64]:
        return self._numbers("commit_lsn")

    @property
    def ordinals(self) -> NDArray[np.int64]:
        return self._numbers("ordinal")

    @property
    def has_old(self) -> NDArray[np.bool_]:
        has_old: NDArray[np.bool_] = self._numbers("old_kind") != 0
        return has_old

    @property
    def has_new(self) -> NDArray[np.bool_]:
        ops = self.ops
        has_new: NDArray[np.bool_] = (ops == INSERT) | (ops == UPDATE)
        return has_new

    @property
    def takes(self) -> NDArray[np.bool_]:
        ops = self.ops
        takes: NDArray[np.bool_] = (ops == DELETE) | (ops == UPDATE)
        return takes

    def _numbers(self, name: str) -> NDArray[Any]:
        numbers: NDArray[Any] = self.rows.column(name).to_numpy(zero_copy_only=False)
        return numbers

    def unsent(self) -> NDArray[np.bool_]:
        lists, width = self.rows.column("unsent"), len(self.relation.names)
        ends = lists.offsets.to_numpy()
        mask = np.zeros((len(lists), width), bool)
        of_rows = np.repeat(np.arange(len(lists)), np.diff(ends))
        mask[of_rows, lists.values.to_numpy()[int(ends[0]) : int(ends[-1])]] = True
        return mask

    def texts(self, prefix: str) -> list[pa.Array]:
        width = len(self.relation.names)
        first = len(_POSITIONS) + (width if prefix == NEW else 0)
        return list(self.rows.columns[first : first + width])

    def with_columns(
        self, relation: TableDescription, old: Sequence[pa.Array], new: Sequence[pa.Array], unsent: NDArray[np.bool_]
    ) -> ChangeBatch:
        fixed = self.rows.columns[: len(_POSITIONS) - 1]
        arrays = [*fixed, unsent_lists(unsent, self.num_rows), *old, *new]
        return ChangeBatch(relation, pa.RecordBatch.from_arrays(arrays, schema=schema_of(relation.names)))

    def chosen(self, mask: NDArray[np.bool_]) -> ChangeBatch:
        return self if mask.all() else replace(self, rows=self.rows.filter(pa.array(mask)))

    def slice(self, start: int, count: int | None = None) -> ChangeBatch:
        return replace(self, rows=self.rows.slice(start, count))


@lru_cache(_SCHEMAS)
def schema_of(names: tuple[str, ...]) -> pa.Schema:
    fields = [pa.field(f"{prefix}{name}", pa.string()) for prefix in (OLD, NEW) for name in names]
    return pa.schema([*_POSITIONS, *fields])


def unsent_lists(unsent: NDArray[np.bool_] | None, count: int) -> pa.Array:
    if unsent is None:
        offsets, items = np.zeros(count + 1, np.int32), np.empty(0, np.int32)
    else:
        items = np.nonzero(unsent)[1].astype(np.int32)
        offsets = np.append(0, np.cumsum(unsent.sum(axis=1))).astype(np.int32)
    return pa.Array.from_buffers(_UNSENT, count, [None, pa.py_buffer(offsets)], 0, children=[pa.array(items)])


def joined(batches: Sequence[ChangeBatch]) -> ChangeBatch:
    if len(batches) == 1:
        return batches[0]
    return replace(batches[0], rows=pa.concat_batches([batch.rows for batch in batches]))


def _unpack(relation: TableDescription, data: bytes) -> ChangeBatch:
    batches = unpacked(data).combine_chunks().to_batches()
    rows = batches[0] if batches else pa.RecordBatch.from_pylist([], schema_of(relation.names))
    return ChangeBatch(relation, rows)
