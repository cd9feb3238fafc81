"""Which Relation a row is bound to: the one that is current where the row arrives.

A streamed transaction has Relations of its own. What it says of a table that it altered holds for its own rows only,
until it commits; what it says in a subtransaction is taken back with it.
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
    """A table as a Relation message described it; equal to any that describes the same."""

    relation_id: Oid
    """The table's OID."""
    schema: str
    """The table's schema, pg_catalog spelled out."""
    name: str
    """The table's name."""
    replica_identity: ReplicaIdentity
    """What identifies a row in an Update or Delete."""
    columns: tuple[Column, ...]
    """The published columns, in the order of the tuples' values."""
    types: tuple[v1.Type | None, ...]
    """For each column the Type message that names its data type; None for those that are built in."""
    names: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """The columns' names."""
    key: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """The names of the columns flagged as part of the replica identity: all of them with FULL, none with NOTHING."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(column.name for column in self.columns))
        object.__setattr__(self, "key", tuple(column.name for column in self.columns if column.key))

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def table(self) -> TableName:
        """The table's schema and name."""
        return TableName(self.schema, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChange:
    """A table that from here on is described differently than in what was handed on before."""

    ordinal: int
    """The number, in the transaction, of the change that is the first of the new form."""
    old: TableDescription | None
    """The description that held before; None for a table that was not seen before."""
    new: TableDescription
    """The description of the changes that follow."""


def added_columns(old: TableDescription, new: TableDescription) -> list[str]:
    """Return a warning of the columns that a table has got, if any: the server does not send older rows again."""
    added = [name for name in new.names if name not in old.names]
    return [f"{new} has got {', '.join(added)}: {OLDER_ROWS}"] if added else []


OLDER_ROWS = "where it came with a DEFAULT, older rows have that on the server, which does not send it"
"""What is to be said of a new column."""


class DeliveredRelations:
    """The tables as they were last described in what was handed on."""

    def __init__(self, relations: Iterable[TableDescription]) -> None:
        self._relations = {relation.relation_id: relation for relation in relations}

    def all(self) -> tuple[TableDescription, ...]:
        """Each of them."""
        return tuple(self._relations.values())

    def deliver(self, uses: Iterable[tuple[int, TableDescription]]) -> tuple[SchemaChange, ...]:
        """Which of a transaction's Relations, each with the change from which on it holds, are news; they hold now."""
        schema_changes = []
        for ordinal, relation in uses:
            old = self._relations.get(relation.relation_id)
            if old != relation:
                schema_changes.append(SchemaChange(ordinal=ordinal, old=old, new=relation))
                self._relations[relation.relation_id] = relation
        return tuple(schema_changes)

    def take_back(self, schema_changes: tuple[SchemaChange, ...]) -> None:
        """Forget what a transaction that was rolled back had changed, where nothing has changed it since."""
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
    """Later descriptions have higher numbers."""


class StreamRelations:
    """The Relations that one streamed transaction was sent."""

    __slots__ = ("_undo", "current")

    def __init__(self) -> None:
        self.current: dict[Oid, _Described] = {}
        self._undo: list[tuple[Oid, _Described | None]] = []

    def __len__(self) -> int:
        """How many descriptions came that said something new, to be given to `truncate` again."""
        return len(self._undo)

    def put(self, relation: TableDescription, arrival: int) -> None:
        """Describe a table from here on."""
        described = self.current.get(relation.relation_id)
        if described is not None and described.relation is relation:
            described.arrival = arrival
            return
        self._undo.append((relation.relation_id, described))
        self.current[relation.relation_id] = _Described(relation, arrival)

    def truncate(self, length: int) -> None:
        """Take back all descriptions but the first `length`."""
        while len(self._undo) > length:
            relation_id, described = self._undo.pop()
            if described is None:
                del self.current[relation_id]
            else:
                self.current[relation_id] = described


class Relations:
    """The Relations of a session: those that hold for all, beside those that each streamed transaction has."""

    def __init__(self) -> None:
        self._current: dict[Oid, _Described] = {}
        self._latest: dict[Oid, TableDescription] = {}
        self._types: dict[Oid, v1.Type] = {}
        self._arrivals = 0

    def clear(self) -> None:
        """Forget all: a new connection describes everything anew."""
        self._current.clear()
        self._latest.clear()
        self._types.clear()

    def name_type(self, message: TypeMessage) -> None:
        """Keep the name of a data type. It comes right before the Relation that needs it, so the last one holds."""
        self._types[message.type_id] = v1.Type(type_id=message.type_id, namespace=message.namespace, name=message.name)

    def describe(self, message: RelationMessage, stream: StreamRelations | None) -> None:
        """Describe a table from here on, for one streamed transaction or (None) for all else."""
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
        # Servers describe tables again and again; one object for the same description keeps comparisons short.
        for known in (current and current.relation, self._latest.get(message.relation_id)):
            if known == relation:
                relation = known
                break
        self._latest[relation.relation_id] = relation
        if stream is None:
            self._current[relation.relation_id] = _Described(relation, self._arrivals)
        else:
            stream.put(relation, self._arrivals)

    def find(self, relation_id: Oid, stream: StreamRelations | None) -> TableDescription | None:
        """The description that holds for a row that arrives now; None if there never was any."""
        if stream is not None:
            described = stream.current.get(relation_id)
            if described is not None:
                return described.relation
        described = self._current.get(relation_id)
        if described is not None:
            return described.relation
        # A server describes a table again for each transaction to which it has not described it. Where somebody else
        # in between does not, the last description is the best there is.
        return self._latest.get(relation_id)

    def all(self) -> dict[Oid, TableDescription]:
        """What `find` finds for transactions that are not streamed, by OID."""
        return self._latest | {oid: described.relation for oid, described in self._current.items()}

    def adopt(self, stream: StreamRelations) -> None:
        """Let a streamed transaction's Relations hold for all, as it committed.

        The server does not send them again, unless a table was described to others in the meantime.
        """
        for relation_id, described in stream.current.items():
            current = self._current.get(relation_id)
            if current is None or current.arrival < described.arrival:
                self._current[relation_id] = described
