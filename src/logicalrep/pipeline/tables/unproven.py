"""Changes that wait for the catalog: only a catalog with their transactions proves which columns they have."""

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

_REPORT_AFTER = 1.0
"""The seconds that changes wait for the catalog before replicate reports the wait."""
_REPEAT_INTERVAL = 60.0
"""The seconds between two reports of one wait."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The changes of a table that can be written now."""

    table: Table
    changes: TableChanges
    catalog_table: CatalogTable | None
    """The table in a catalog that has the transactions of the Relation messages; None without such messages."""
    has_all: bool = False
    """Whether that catalog has the transactions of all changes, and so proves new enum labels."""


@dataclass(slots=True)
class UnprovenChanges:
    """Proves the columns of waiting changes by the catalog, and reports a long wait."""

    context: RunContext
    catalog: Catalog
    behind_since: float | None = None
    """The monotonic time, in seconds, since which changes wait; None if none wait."""

    def take_proven(self, waiting: Sequence[tuple[Table, Following, Unproven]]) -> list[Ready]:
        """Return the tables whose changes the catalog proves; the other tables' changes wait."""
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
                        f"{table.name} was dropped before its last changes could be applied: its stored rows stay as "
                        "they were before these changes"
                    )
                )
        self._report_wait(behind)
        return ready

    def _report_wait(self, behind: Sequence[str]) -> None:
        moment = time.monotonic()
        if not behind:
            self.behind_since = None
        elif self.behind_since is None:
            self.behind_since = moment
        elif moment - self.behind_since > _REPORT_AFTER:
            self.behind_since = moment + _REPEAT_INTERVAL
            self.context.observer.on_event(
                WaitReported(
                    f"changes of {', '.join(behind)} wait: the server has sent them, but its catalog does not have "
                    "their transactions yet, as with synchronous replication while the standby is away"
                )
            )


def with_rerouted_relations(
    received: Mapping[int, TableChanges], tables: Collection[Table]
) -> Mapping[int, TableChanges]:
    """Return changes by OID, with a Relation message for each table whose rows the server sent under another table, as
    for attached partitions."""
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
    """Return the LSN of the first commit before `end` whose changes wait; else `end`."""
    waiting = [table.unproven.changes.first_lsn for table in tables if table.unproven is not None]
    return Lsn(min([end, *(lsn for lsn in waiting if lsn is not None)]))
