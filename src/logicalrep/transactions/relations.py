"""The Relation of each row: the current Relation when the row arrives.

A streamed transaction has its own Relations. A description of a table that it altered applies only to its own rows
until it commits; the rollback of a subtransaction removes the descriptions within.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from logicalrep.transactions.table_names import TableName
from logicalrep_protocol import v1
from logicalrep_protocol.v1 import Column, ReplicaIdentity
from logicalrep_protocol.versions import Relation as RelationMessage
from logicalrep_protocol.versions import Type as TypeMessage
from logicalrep_runtime.scalars import Oid


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDescription:
    relation_id: Oid
    schema: str
    name: str
    replica_identity: ReplicaIdentity
    """The setting that decides which columns identify a row in an Update or Delete."""
    columns: tuple[Column, ...]
    """The published columns, in the order of a row's values."""
    types: tuple[v1.Type | None, ...]
    """The Type message of each column's data type; None for a built-in type."""
    names: tuple[str, ...] = field(init=False, compare=False, repr=False)
    key: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """The names of the columns flagged as part of the replica identity: all of them with FULL, none with NOTHING."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(column.name for column in self.columns))
        object.__setattr__(self, "key", tuple(column.name for column in self.columns if column.key))

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def table(self) -> TableName:
        return TableName(self.schema, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChange:
    """A change of a table's description in the delivered transactions."""

    ordinal: int
    """The ordinal of the transaction's first change with the new description."""
    old: TableDescription | None
    """The previous description; None for a new table."""
    new: TableDescription


def added_columns(old: TableDescription, new: TableDescription) -> list[str]:
    """Return a warning about a table's new columns, if any: the server does not send older rows again."""
    added = [name for name in new.names if name not in old.names]
    return [f"{new} has the new column {', '.join(added)}: {OLDER_ROWS}"] if added else []


OLDER_ROWS = "if it was added with a DEFAULT, older rows have its value on the server, which does not send it"


class DeliveredRelations:
    def __init__(self, relations: Iterable[TableDescription]) -> None:
        self._relations = {relation.relation_id: relation for relation in relations}

    def all(self) -> tuple[TableDescription, ...]:
        return tuple(self._relations.values())

    def deliver(self, uses: Iterable[tuple[int, TableDescription]]) -> tuple[SchemaChange, ...]:
        schema_changes = []
        for ordinal, relation in uses:
            old = self._relations.get(relation.relation_id)
            if old != relation:
                schema_changes.append(SchemaChange(ordinal=ordinal, old=old, new=relation))
                self._relations[relation.relation_id] = relation
        return tuple(schema_changes)

    def take_back(self, schema_changes: tuple[SchemaChange, ...]) -> None:
        """Undo the schema changes of a transaction that was rolled back, unless later changes replaced them."""
        for schema_change in reversed(schema_changes):
            relation_id = schema_change.new.relation_id
            if self._relations.get(relation_id) is schema_change.new:
                if schema_change.old is None:
                    del self._relations[relation_id]
                else:
                    self._relations[relation_id] = schema_change.old


@dataclass(slots=True)
class _Described:
    relation: TableDescription
    arrival: int


class StreamRelations:
    __slots__ = ("_undo", "current")

    def __init__(self) -> None:
        self.current: dict[Oid, _Described] = {}
        self._undo: list[tuple[Oid, _Described | None]] = []

    def __len__(self) -> int:
        """Return the number of descriptions that differed from their predecessors; `truncate` takes such a number."""
        return len(self._undo)

    def put(self, relation: TableDescription, arrival: int) -> None:
        described = self.current.get(relation.relation_id)
        if described is not None and described.relation is relation:
            described.arrival = arrival
            return
        self._undo.append((relation.relation_id, described))
        self.current[relation.relation_id] = _Described(relation, arrival)

    def truncate(self, length: int) -> None:
        while len(self._undo) > length:
            relation_id, described = self._undo.pop()
            if described is None:
                del self.current[relation_id]
            else:
                self.current[relation_id] = described


class Relations:
    """The Relations of a session: shared Relations, which each streamed transaction may override."""

    def __init__(self) -> None:
        self._current: dict[Oid, _Described] = {}
        self._latest: dict[Oid, TableDescription] = {}
        self._types: dict[Oid, v1.Type] = {}
        self._arrivals = 0

    def clear(self) -> None:
        self._current.clear()
        self._latest.clear()
        self._types.clear()

    def name_type(self, message: TypeMessage) -> None:
        """Store the name of a data type. Its message precedes the Relation that needs it, so the last name applies."""
        self._types[message.type_id] = v1.Type(type_id=message.type_id, namespace=message.namespace, name=message.name)

    def describe(self, message: RelationMessage, stream: StreamRelations | None) -> TableDescription:
        """Set a table's description for the rows that follow, of a streamed transaction or (None) of all others."""
        self._arrivals += 1
        described = self._current if stream is None else stream.current
        current = described.get(message.relation_id)
        relation = TableDescription(
            relation_id=message.relation_id,
            schema=message.namespace or "pg_catalog",
            name=message.name,
            replica_identity=ReplicaIdentity(message.replica_identity),
            columns=message.columns,
            types=tuple(self._types.get(column.type_id) for column in message.columns),
        )
        # Servers repeat descriptions; reusing the object of an equal one makes comparisons fast.
        for candidate in (current and current.relation, self._latest.get(message.relation_id)):
            if candidate == relation:
                relation = candidate
                break
        self._latest[relation.relation_id] = relation
        if stream is None:
            self._current[relation.relation_id] = _Described(relation, self._arrivals)
        else:
            stream.put(relation, self._arrivals)
        return relation

    def find(self, relation_id: Oid, stream: StreamRelations | None) -> TableDescription | None:
        if stream is not None:
            described = stream.current.get(relation_id)
            if described is not None:
                return described.relation
        described = self._current.get(relation_id)
        if described is not None:
            return described.relation
        # A server describes a table again for each transaction to which it has not described it. If a proxy in between
        # does not, the last description is the best available.
        return self._latest.get(relation_id)

    def all(self) -> dict[Oid, TableDescription]:
        return self._latest | {oid: described.relation for oid, described in self._current.items()}

    def adopt(self, stream: StreamRelations) -> None:
        """Take over the descriptions of a committed streamed transaction: the server does not send them again.

        A description that arrived later for other transactions stays.
        """
        for relation_id, described in stream.current.items():
            current = self._current.get(relation_id)
            if current is None or current.arrival < described.arrival:
                self._current[relation_id] = described
