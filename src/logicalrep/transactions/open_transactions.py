"""The state of open transactions: those that are arriving, and prepared ones that wait for their decision."""

from __future__ import annotations

from typing import NamedTuple

from logicalrep.transactions.relations import StreamRelations, TableDescription
from logicalrep.transactions.spill import ChangeLog
from logicalrep.transactions.subtransactions import Subtransactions
from logicalrep_protocol.versions import Begin, BeginPrepare, Origin, Prepare, StreamPrepare
from logicalrep_runtime.scalars import Oid, TransactionId


class OpenTransaction:
    """The received part of an open transaction."""

    __slots__ = ("_used", "begin", "is_new", "log", "origin", "relations", "subtransactions", "uses", "xid")

    def __init__(self, xid: TransactionId, log: ChangeLog, begin: Begin | BeginPrepare | None) -> None:
        self.xid = xid
        self.log = log
        self.begin = begin
        """The message that opened it; None for a streamed transaction."""
        self.is_new = True
        """Whether its changes are to be delivered; false if it was delivered before a restart."""
        self.origin: Origin | None = None
        self.relations = None if begin is not None else StreamRelations()
        self.subtransactions = Subtransactions(xid)
        self.uses: list[tuple[int, TableDescription]] = []
        """The Relations of its changes, each with the ordinal of the first change that uses it."""
        self._used: dict[Oid, TableDescription] = {}

    def use(self, relation: TableDescription, ordinal: int) -> None:
        """Note that the change with this ordinal uses a Relation."""
        if self._used.get(relation.relation_id) is not relation:
            self._used[relation.relation_id] = relation
            self.uses.append((ordinal, relation))

    def forget_uses(self, changes: int) -> None:
        """Forget the uses by all changes but the first `changes`."""
        while self.uses and self.uses[-1][0] >= changes:
            self.uses.pop()
        self._used = {relation.relation_id: relation for _, relation in self.uses}


class HeldTransaction(NamedTuple):
    """A prepared transaction that waits for its decision."""

    open: OpenTransaction
    prepare: Prepare | StreamPrepare
