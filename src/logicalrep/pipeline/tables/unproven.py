"""The changes that wait for the catalog: only once it has their transactions, it tells which columns they have."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from logicalrep.arrow.changes.sent_relation import SentRelation
from logicalrep.arrow.changes.table_changes import TableChanges, together
from logicalrep.observe.events import WaitReported, WarningIssued
from logicalrep.pipeline.catalog.catalog import Catalog
from logicalrep.pipeline.catalog.definitions import CatalogTable
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.tables.phases import Following, Unproven
from logicalrep.pipeline.tables.table import Table
from logicalrep_runtime.scalars import Lsn

_BEHIND = 1.0
"""The seconds for which changes wait for the catalog until that is said."""
_SAY_AGAIN = 60.0
"""The seconds until it is said again."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A table's changes that can be written."""

    table: Table
    changes: TableChanges
    catalog_table: CatalogTable | None
    """The table as the catalog describes it, in a state that has the transactions of the messages; None without any."""
    has_all: bool = False
    """Whether that state has the transactions of all rows."""


@dataclass(slots=True)
class UnprovenChanges:
    """Asks the catalog whether it has the transactions of changes, which wait in their tables' phases until then."""

    context: RunContext
    catalog: Catalog
    behind_since: float | None = None
    """The moment since which changes wait, of the monotonic clock."""

    def take_proven(self, waiting: Sequence[tuple[Table, Following, Unproven]]) -> list[Ready]:
        """Return those tables' changes of whose transactions the catalog has all; the others wait."""
        refresh, ready, behind = self.catalog.refresh([table.oid for table, _, _ in waiting]), [], []
        for table, phase, unproven in waiting:
            changes = unproven.changes
            described = refresh.describe(table.oid, changes, needs_all=unproven.has_new_labels)
            if described is None:
                table.update(replace(phase, unproven=unproven))
                behind.append(str(table.name))
            elif described.catalog_table is not None:
                ready.append(Ready(table, changes, described.catalog_table, described.has_all))
            else:
                self.context.observer.on_event(
                    WarningIssued(
                        f"{table.name} was dropped before the columns of its last changes could be told: its rows stay "
                        "as they were before them"
                    )
                )
        self._say_behind(behind)
        return ready

    def _say_behind(self, behind: Sequence[str]) -> None:
        moment = time.monotonic()
        if not behind:
            self.behind_since = None
        elif self.behind_since is None:
            self.behind_since = moment
        elif moment - self.behind_since > _BEHIND:
            self.behind_since = moment + _SAY_AGAIN
            self.context.observer.on_event(
                WaitReported(
                    f"changes of {', '.join(behind)} wait: the server has sent them, but its catalog does not have "
                    "their transactions yet, as with synchronous replication whose standby is away"
                )
            )


def with_rerouted_relations(
    received: Mapping[int, TableChanges], tables: Collection[Table]
) -> Mapping[int, TableChanges]:
    """Return changes by the tables' OIDs, with a message for each table whose rows were sent as those of another one.

    So the server does with a table that is attached as a partition, and with the partitions of one that is attached.
    """
    messages: defaultdict[int, list[SentRelation]] = defaultdict(list)
    for relation in (relation for changes in received.values() for relation in changes.relations):
        if relation.partition is not None:
            messages[relation.partition].append(relation)
    changes_by_oid = dict(received)
    for table in tables if messages else ():
        sent = [
            replace(relation, relation_id=table.oid, partition=None, sent_as=relation.relation_id)
            for oid in table.files & messages.keys()
            for relation in messages[oid]
            if relation.relation_id != table.oid
        ]
        if sent:
            changes_by_oid[table.oid] = together([changes_by_oid.get(table.oid, TableChanges()), TableChanges(sent)])
    return changes_by_oid


def first_unproven(tables: Collection[Table], end: Lsn) -> Lsn:
    """Return the LSN of the first commit whose changes wait, of those before `end`; else `end`."""
    waiting = [table.unproven.changes.first_lsn for table in tables if table.unproven is not None]
    return Lsn(min([end, *(lsn for lsn in waiting if lsn is not None)]))
