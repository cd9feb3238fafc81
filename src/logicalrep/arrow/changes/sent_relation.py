"""The Relation messages that were sent between the changes of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from logicalrep.transactions.relations import TableDescription


@dataclass(frozen=True, slots=True)
class SentRelation:
    """A Relation message: the columns of the following changes of its table.

    It applies to the changes after its position, the commit's LSN and the ordinal.
    """

    relation_id: int
    replica_identity: str
    columns: tuple[tuple[str, int, int], ...]
    """The columns in the order of their numbers: name, type's OID and modifier."""
    key: tuple[str, ...]
    commit_lsn: int
    ordinal: int
    """The number of changes before it in this transaction."""
    xid: int
    partition: int | None = None
    """The OID of the partition whose own message comes directly after, before its first row of the session.

    The table's message occurs once more for each such partition.
    """
    sent_as: int | None = None
    """The OID of the table under which this table's rows are sent from here on; None for its own."""

    @classmethod
    def of(cls, relation: TableDescription, *, commit_lsn: int, ordinal: int, xid: int) -> Self:
        columns = tuple((column.name, int(column.type_id), column.type_modifier) for column in relation.columns)
        return cls(
            int(relation.relation_id), relation.replica_identity.value, columns, relation.key, commit_lsn, ordinal, xid
        )

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        columns = tuple((str(name), int(type_id), int(modifier)) for name, type_id, modifier in content["columns"])
        return cls(**{**content, "columns": columns, "key": tuple(content["key"])})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def index_in(self, lsns: NDArray[np.int64], ordinals: NDArray[np.int64]) -> int:
        first, end = (int(np.searchsorted(lsns, self.commit_lsn, side)) for side in ("left", "right"))
        return first + int(np.searchsorted(ordinals[first:end], self.ordinal))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, *_ in self.columns)


def in_order(relations: Iterable[SentRelation]) -> tuple[SentRelation, ...]:
    return tuple(sorted(relations, key=lambda relation: (relation.commit_lsn, relation.ordinal)))
