"""The state of open transactions: arriving transactions, and prepared transactions that wait for their decision."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from logicalrep.transactions.relations import StreamRelations, TableDescription
from logicalrep.transactions.spill import ChangeLog, RawRows
from logicalrep_protocol.versions import Begin, BeginPrepare, Origin, Prepare, StreamPrepare
from logicalrep_runtime.scalars import Oid, TransactionId


class Subtransactions:
    """The subtransactions of a streamed transaction by id, a few bytes each: a transaction may have millions."""

    __slots__ = ("_in_order", "_last", "_xid", "changes", "offsets", "relations")

    def __init__(self, xid: TransactionId) -> None:
        self._xid = xid
        self._last = xid
        # Sorted by the offset of the subtransaction's id from the top-level transaction's, which precedes all of them.
        self.offsets = array("I")
        self.changes = array("Q")
        self.relations = array("I")
        # Whether they appeared in the order of their ids, as nearly always: then later subtransactions lie within.
        self._in_order = True

    def __len__(self) -> int:
        return len(self.offsets)

    def appear(self, subxid: TransactionId, changes: int, relations: int) -> None:
        if subxid == self._last:
            return
        self._last = subxid
        if subxid == self._xid:
            return
        offset = self._offset(subxid)
        index = bisect_left(self.offsets, offset)
        if index < len(self.offsets):
            if self.offsets[index] == offset:
                return
            self._in_order = False
        self.offsets.insert(index, offset)
        self.changes.insert(index, changes)
        self.relations.insert(index, relations)

    def abort(self, subxid: TransactionId) -> tuple[int, int] | None:
        """Forget a subtransaction and all later ones; return the number of changes and Relations before it, if any."""
        offset = self._offset(subxid)
        index = bisect_left(self.offsets, offset)
        if index == len(self.offsets) or self.offsets[index] != offset:
            return None
        start = self.changes[index], self.relations[index]
        self._last = self._xid
        if self._in_order:
            del self.offsets[index:], self.changes[index:], self.relations[index:]
            return start
        remaining = [at for at in range(len(self.offsets)) if (self.changes[at], self.relations[at]) < start]
        self.offsets = array("I", (self.offsets[at] for at in remaining))
        self.changes = array("Q", (self.changes[at] for at in remaining))
        self.relations = array("I", (self.relations[at] for at in remaining))
        return start

    def _offset(self, subxid: TransactionId) -> int:
        return (subxid - self._xid) & 0xFFFFFFFF


class OpenTransaction:
    __slots__ = (
        "_first",
        "_partitions",
        "_used",
        "begin",
        "is_new",
        "log",
        "origin",
        "relations",
        "subtransactions",
        "uses",
        "xid",
    )

    def __init__(self, xid: TransactionId, log: ChangeLog, begin: Begin | BeginPrepare | None) -> None:
        self.xid = xid
        self.log = log
        self.begin = begin
        """The message that opened it; None for a streamed transaction."""
        self.is_new = True
        """Whether to deliver its changes; false if it was delivered before a restart."""
        self.origin: Origin | None = None
        self.relations = None if begin is not None else StreamRelations()
        self.subtransactions = Subtransactions(xid)
        self.uses: list[tuple[int, TableDescription]] = []
        """The Relations of its changes, each with the ordinal of the first change that uses it."""
        self._used: dict[Oid, TableDescription] = {}
        # The number of changes before the last descriptions, and the table of their first.
        self._first: tuple[int, Oid] | None = None
        # The descriptions that came directly after that of another table, this one, and the number of changes before.
        self._partitions: list[tuple[int, Oid, TableDescription]] = []

    def describe(self, relation: TableDescription) -> None:
        changes, oid = len(self.log), relation.relation_id
        if self._first is None or self._first[0] != changes:
            self._first = changes, oid
        elif self._first[1] != oid:
            self._partitions.append((changes, self._first[1], relation))

    def note_truncate(self) -> None:
        while self._partitions and self._partitions[-1][0] == len(self.log):
            self._partitions.pop()

    @property
    def partitions(self) -> dict[Oid, list[TableDescription]]:
        by_table: dict[Oid, list[TableDescription]] = {}
        for _, oid, relation in self._partitions:
            by_table.setdefault(oid, []).append(relation)
        return by_table

    def use(self, relation: TableDescription, ordinal: int) -> None:
        if self._used.get(relation.relation_id) is not relation:
            self._used[relation.relation_id] = relation
            self.uses.append((ordinal, relation))

    def forget_uses(self, changes: int) -> None:
        self._first = None
        while self.uses and self.uses[-1][0] >= changes:
            self.uses.pop()
        self._used = {relation.relation_id: relation for _, relation in self.uses}


class HeldTransaction(NamedTuple):
    open: OpenTransaction
    prepare: Prepare | StreamPrepare


class UnboundRows(Protocol):
    """Consecutive row messages that are not bound to their Relations yet."""

    def bound(self, find: Callable[[Oid], TableDescription | None]) -> RawRows:
        """Return the rows bound to their Relations, up to the first row without one."""

    def subtransactions(self, count: int) -> Iterator[tuple[int, TransactionId]]:
        """Yield the number and xid of each row, among the first `count`, with another xid than the previous row."""
