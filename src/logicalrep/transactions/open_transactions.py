"""What is known of transactions that have not ended: those that arrive, and those that are prepared and wait."""

from __future__ import annotations

from logicalrep.transactions.relations import StreamRelations, TableDescription
from logicalrep.transactions.spill import ChangeLog
from logicalrep.transactions.subtransactions import Subtransactions
from logicalrep_protocol.versions import Begin, BeginPrepare, Origin, Prepare, StreamPrepare
from logicalrep_runtime.scalars import Oid, TransactionId


class OpenTransaction:
    """What has arrived of a transaction that has not ended."""

    __slots__ = ("_used", "begin", "kept", "log", "origin", "relations", "subtransactions", "uses", "xid")

    def __init__(self, xid: TransactionId, log: ChangeLog, begin: Begin | BeginPrepare | None) -> None:
        self.xid = xid
        self.log = log
        self.begin = begin
        """What opened it; None for a streamed transaction."""
        self.kept = True
        """Whether its changes are; not if it was handed on before a restart."""
        self.origin: Origin | None = None
        self.relations = None if begin is not None else StreamRelations()
        self.subtransactions = Subtransactions(xid)
        self.uses: list[tuple[int, TableDescription]] = []
        """The Relations of its changes, each with the first change that is bound to it after those of another."""
        self._used: dict[Oid, TableDescription] = {}

    def use(self, relation: TableDescription, ordinal: int) -> None:
        """The change that is to have this number is bound to this Relation."""
        if self._used.get(relation.relation_id) is not relation:
            self._used[relation.relation_id] = relation
            self.uses.append((ordinal, relation))

    def forget_uses(self, changes: int) -> None:
        """There are only so many changes left."""
        while self.uses and self.uses[-1][0] >= changes:
            self.uses.pop()
        self._used = {relation.relation_id: relation for _, relation in self.uses}


class HeldTransaction:
    """A prepared transaction that waits here for its decision."""

    __slots__ = ("open", "prepare")

    def __init__(self, open_: OpenTransaction, prepare: Prepare | StreamPrepare) -> None:
        self.open = open_
        self.prepare = prepare
