"""Random histories of a table's changes, as change batches, and a naive replay of them."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from logicalrep.arrow.changes.change_batch import ChangeBatch
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.transactions.relations import TableDescription
from logicalrep.values import TypeCatalog
from logicalrep_protocol import v1
from logicalrep_protocol.v1 import ReplicaIdentity
from logicalrep_runtime.scalars import Oid
from tests.pipeline.changes import change_batch, relation
from tests.pipeline.evidence import evidence

OID = 4711
Row = tuple[str | None, ...]
"""The texts of id, b, v and big."""


def table(key: tuple[str, ...] | None, settings: TableSettings | None = None) -> TableSpec:
    """Return a table of two columns that may be its key, a small one and one whose values may not be sent."""
    types = {"id": 23, "b": 25, "v": 701, "big": 25}
    return TableSpec(
        relation=TableDescription(
            relation_id=Oid(OID),
            schema="public",
            name="t",
            replica_identity=ReplicaIdentity.DEFAULT if key else ReplicaIdentity.FULL,
            columns=tuple(v1.Column(flags=0, name=n, type_id=Oid(t), type_modifier=-1) for n, t in types.items()),
            types=(None,) * len(types),
        ),
        catalog=TypeCatalog(),
        key=key,
        attnums=(1, 2, 3, 4),
        files=((OID, 1),),
        evidence=evidence([(n, name, oid, -1) for n, (name, oid) in enumerate(types.items(), 1)]),
        settings=settings or TableSettings(),
    )


NAMES = ("id", "b", "v", "big")


@dataclass
class History:
    """A table that changes at random, and its changes."""

    key: tuple[str, ...] | None
    chance: random.Random
    rows: list[Row] = field(default_factory=list)
    """The rows that are there, with equal ones as often as they are."""
    changes: list[dict[str, Any]] = field(default_factory=list)
    lsn: int = 1000
    ordinal: int = 0
    ids: int = 30
    """The number of different ids."""

    def insert(self) -> None:
        row = self._row()
        if not self._has(row):
            self.rows.append(row)
            self.add_change("insert", None, row, ())

    def update(self) -> None:
        if not self.rows:
            return
        at = self.chance.randrange(len(self.rows))
        old = self.rows[at]
        new = self._row() if self.chance.random() < 0.4 else (*old[:2], *self._row()[2:])
        keeps_big = self.chance.random() < 0.5
        if keeps_big:
            new = (*new[:3], old[3])
        self.rows.pop(at)
        if self._has(new):
            self.rows.insert(at, old)
            return
        self.rows.append(new)
        old_row = None if self.key is not None and self._key(old) == self._key(new) else old
        self.add_change("update", old_row, new, ("big",) if keeps_big and self.key is not None else ())

    def move(self, times: int) -> None:
        """Move one row to new keys many times, without sending its large value."""
        for number in range(times):
            old = self.rows.pop()
            new = (str(1_000_000 + number), *old[1:])
            self.rows.append(new)
            self.add_change("update", old, new, ("big",))

    def delete(self) -> None:
        if self.rows:
            self.add_change("delete", self.rows.pop(self.chance.randrange(len(self.rows))), None, ())

    def truncate(self) -> None:
        self.rows.clear()
        self.add_change("truncate", None, None, ())

    def commit(self) -> None:
        self.lsn += self.chance.randrange(1, 50)
        self.ordinal = 0

    def step(self) -> None:
        kinds = [self.insert] * 5 + [self.update] * 6 + [self.delete] * 3
        self.chance.choice(kinds)()
        if self.chance.random() < 0.01:
            self.truncate()
        if self.chance.random() < 0.3:
            self.commit()

    def take(self) -> list[ChangeBatch]:
        """Return the changes since the last call, which end with a commit."""
        self.commit()
        batches, self.changes = self.pending(), []
        return batches

    def pending(self) -> list[ChangeBatch]:
        """Return the changes since the last call of `take`."""
        return [change_batch(relation(NAMES, self.key, oid=OID), self.changes)] if self.changes else []

    def truth(self) -> Counter[Row]:
        return Counter(self.rows)

    def _row(self) -> Row:
        chance = self.chance
        return (
            str(chance.randrange(self.ids)),
            chance.choice(["a", "b:1", "", "ä"]),
            chance.choice([None, "1.5", "NaN", "-0", "Infinity", "1e-300"]),
            chance.choice([None, "", "x" * 50, f"big {chance.randrange(100)}"]),
        )

    def _key(self, row: Row) -> Row:
        assert self.key is not None
        return tuple(row[NAMES.index(name)] for name in self.key)

    def _has(self, row: Row) -> bool:
        return self.key is not None and any(self._key(row) == self._key(other) for other in self.rows)

    def add_change(self, op: str, old: Row | None, new: Row | None, unchanged: tuple[str, ...]) -> None:
        after = None
        if new is not None:
            after = {name: value for name, value in zip(NAMES, new, strict=True) if name not in unchanged}
        kept = NAMES if self.key is None else self.key
        self.changes.append(
            {
                "op": op,
                "before": None if old is None else {name: old[NAMES.index(name)] for name in kept},
                "after": after,
                "unchanged": unchanged,
                "commit_lsn": self.lsn,
                "ordinal": self.ordinal,
            }
        )
        self.ordinal += 1


__all__ = ["NAMES", "OID", "History", "Row", "table"]
