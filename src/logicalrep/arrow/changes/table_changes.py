"""A table's changes, and the Relation messages between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from logicalrep.arrow.changes.change_batch import UNREADABLE, ChangeBatch, joined
from logicalrep.arrow.changes.sent_relation import SentRelation, in_order
from logicalrep.arrow.mapped_files import forget_read_pages
from logicalrep.arrow.slices import sliced

_ENOUGH_ROWS, _ENOUGH_BYTES = 20_000, 8 << 20
_LARGE = 256 << 10
"""The bytes from which a batch is not joined: joining copies it, and it may lie in a file of gigabytes."""
_FIRST, _LAST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class TableChanges:
    """Changes of one table, whole transactions in the order of their commits."""

    relations: Sequence[SentRelation] = ()
    batches: Sequence[ChangeBatch] = ()

    @property
    def relation_id(self) -> int:
        return int(self.batches[0].relation.relation_id if self.batches else self.relations[0].relation_id)

    @property
    def num_rows(self) -> int:
        return sum(batch.num_rows for batch in self.batches)

    @property
    def nbytes(self) -> int:
        return sum(batch.nbytes for batch in self.batches)

    @property
    def lsns(self) -> NDArray[np.int64]:
        return np.concatenate([np.empty(0, np.int64), *(batch.lsns for batch in self.batches)])

    @property
    def ordinals(self) -> NDArray[np.int64]:
        return np.concatenate([np.empty(0, np.int64), *(batch.ordinals for batch in self.batches)])

    @property
    def first_lsn(self) -> int | None:
        """The LSN of the first commit with a change or a Relation message; None without any."""
        lsns = [int(batch.lsns[0]) for batch in self.batches[:1]]
        lsns += [relation.commit_lsn for relation in self.relations[:1]]
        return min(lsns, default=None)

    @property
    def xids(self) -> set[int]:
        ids = {relation.xid for relation in self.relations}
        return ids.union(*(batch.rows.column("xid").unique().to_pylist() for batch in self.batches))

    @property
    def commit_timestamp(self) -> datetime | None:
        """The time of the last commit with a change, in UTC; None without changes."""
        if not self.batches:
            return None
        return self.batches[-1].rows.column("commit_timestamp")[-1].as_py()  # type: ignore[no-any-return]

    def between(self, first: int = _FIRST, last: int = _LAST) -> TableChanges:
        """Return the changes and messages of the commits from LSN `first` to `last`, inclusive."""
        batches = []
        for batch in self.batches:
            start, stop = np.searchsorted(batch.lsns, first), np.searchsorted(batch.lsns, last, side="right")
            if start < stop:
                batches.append(batch.slice(int(start), int(stop - start)) if stop - start < batch.num_rows else batch)
        relations = [relation for relation in self.relations if first <= relation.commit_lsn <= last]
        return TableChanges(relations, batches)

    def readable(self) -> TableChanges:
        batches = [batch.chosen(batch.ops != UNREADABLE) for batch in self.batches]
        return TableChanges(self.relations, [batch for batch in batches if batch.num_rows])


def in_parts(batches: Iterable[ChangeBatch], most_bytes: int) -> Iterator[list[ChangeBatch]]:
    """Yield parts of at most `most_bytes`, with small batches joined. Requesting the next part frees one in a file."""
    part: list[ChangeBatch] = []
    size = 0
    for batch in with_small_joined(batches):
        for rows in sliced(batch.rows, most_bytes):
            if part and size + rows.nbytes > most_bytes:
                yield part
                forget_read_pages()
                part, size = [], 0
            part.append(ChangeBatch(batch.relation, rows))
            size += rows.nbytes
    if part:
        yield part


def together(parts: Sequence[TableChanges]) -> TableChanges:
    if len(parts) == 1:
        return parts[0]
    relations = in_order(relation for part in parts for relation in part.relations)
    return TableChanges(relations, [batch for part in parts for batch in part.batches])


def by_table(parts: Iterable[TableChanges]) -> dict[int, TableChanges]:
    """Return changes by their tables' OIDs; rows are not copied and may lie in a file."""
    parts_by_oid: dict[int, list[TableChanges]] = {}
    for part in parts:
        parts_by_oid.setdefault(part.relation_id, []).append(part)
    return {oid: together(table_parts) for oid, table_parts in parts_by_oid.items()}


def with_small_joined(batches: Iterable[ChangeBatch]) -> Iterator[ChangeBatch]:
    """Yield the changes with small batches joined, on demand: a batch costs milliseconds, rows may lie in a file."""
    small: list[ChangeBatch] = []
    rows = size = 0
    for batch in batches:
        nbytes = batch.nbytes
        is_large = nbytes >= _LARGE
        if small and (is_large or rows >= _ENOUGH_ROWS or size >= _ENOUGH_BYTES or not _is_same(small[0], batch)):
            yield joined(small)
            small, rows, size = [], 0, 0
        if is_large:
            yield batch
            continue
        small.append(batch)
        rows += batch.num_rows
        size += nbytes
    if small:
        yield joined(small)


def _is_same(first: ChangeBatch, second: ChangeBatch) -> bool:
    return first.relation is second.relation or first.relation == second.relation
