"""The writer of tables and their companion tables: changes, schema changes, loaded rows, upkeep and renames."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from logicalrep.arrow.changes.change_batch import ChangeBatch
from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.observe.events import SchemaChanged, WarningIssued
from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.apply.renaming import Copied, move
from logicalrep.pipeline.apply.reshaping import reshape
from logicalrep.pipeline.catalog.catalog import Catalog
from logicalrep.pipeline.catalog.definitions import CatalogTable
from logicalrep.pipeline.catalog.evolution import Evolution, evolution, evolution_with_text_columns
from logicalrep.pipeline.catalog.labels import proven_labels, unknown_labels
from logicalrep.pipeline.catalog.lost_partitions import LostPartitions, lost_oids, without_partitions
from logicalrep.pipeline.catalog.proof import (
    ATTACHED,
    DROPPED,
    first_messages,
    latest_description,
    proven_descriptions,
    reason_to_load,
    with_filled_partitions,
    with_partitions_of,
)
from logicalrep.pipeline.catalog.runs import is_same_shape, runs
from logicalrep.pipeline.engines.engine import Engine
from logicalrep.pipeline.errors import NeedsResync, NeedsTexts, NotProvenYetError, RefusedCommit
from logicalrep.pipeline.formats.since_checkpoint import SinceCheckpoint
from logicalrep.pipeline.formats.stored_table import (
    LogDamagedError,
    NewTable,
    Position,
    StoredTable,
    application_id,
    last_application,
)
from logicalrep.pipeline.history.companion import (
    Companion,
    add_marked_files,
    apply_companion,
    companions_of,
    compare_companion,
    damaged,
    opened_companions,
    replaced_companion,
)
from logicalrep.pipeline.history.partition_rows import replace_rows_by_key
from logicalrep.pipeline.index.key_indexes import RowFinder
from logicalrep.pipeline.index.recent_keys import RecentKeys
from logicalrep.pipeline.load.snapshot_copy import CopiedTable
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.schema.changed_columns import changed_columns
from logicalrep.pipeline.schema.forms import CompanionDamagedError
from logicalrep.pipeline.schema.names import companion_folder
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.state.table_state import TableState
from logicalrep.pipeline.storage.storage import DamagedError
from logicalrep.pipeline.table_errors import CHANGE_ERRORS
from logicalrep.pipeline.tables.phases import Copy
from logicalrep.pipeline.tables.table import Table
from logicalrep.pipeline.upkeep.background import BegunMerge
from logicalrep.pipeline.upkeep.merging import merge_next
from logicalrep.postgres.timelines import Timeline
from logicalrep_runtime.scalars import Lsn

_Result = TypeVar("_Result")


class TableWriter:
    """Writes each table in one thread at a time, and retries while the destination cannot be reached."""

    def __init__(self, context: RunContext, catalog: Catalog) -> None:
        self._storage, self._tables = context.storage, context.tables
        self._system = context.identity.system_identifier
        self._keep_hours = context.settings.keep
        self._engine = context.engine
        self._indexes, self._keys = context.indexes, RecentKeys(context.limits)
        self._catalog = catalog
        self._patience, self._observer = context.patience, context.observer
        self.timeline = 0
        """The server's timeline at the last catalog refresh, with which new commits are identified."""

    # Stored tables

    def open(self, table: Table) -> tuple[StoredTable | None, str | None]:
        """Return a table's stored table, and if replicate can only replace it, the reason."""
        return self._patience.run(lambda: self._tables.open_to_replace(table.folder))

    def copy_of(self, stored: StoredTable) -> Copy:
        """Return a stored table as a copy; its `applied` is None if the rows are of another server."""
        last = last_application(stored, self._system, self.timeline)
        return Copy(stored, last or application_id(self._system, self.timeline, stored.load))

    def open_companions(
        self, copy: Copy, since: SinceCheckpoint, state: TableState | None
    ) -> tuple[Copy, SinceCheckpoint, bool]:
        """Open the companion tables of a copy, and set the retention of all its stored tables.

        Return the copy with the companions, `since` with their differences from the checkpoint in `state`, and whether
        all companions exist with the copy's load. Raises CompanionDamagedError.
        """
        companions = self._patience.run(lambda: opened_companions(self._tables, copy.stored))
        for name, companion in (companions or {}).items():
            head = None if state is None else state.head(name)
            since = since.with_companion(self._patience.run(partial(compare_companion, companion, head)))
        whole = replace(copy, companions=companions or {})
        for stored in whole.stored_tables:
            self._patience.run(partial(stored.set_retention, self._keep_hours))
        return whole, since, companions is not None

    def adopt(self, table: Table, copy: Copy, head: Lsn) -> None:
        """Continue a copy under the server's current timeline; `head` is the end of the server's WAL.

        Raises NeedsResync if the table has commits that the server lacks. A check of the last checkpoint alone does not
        suffice: a killed process may have committed after it.
        """
        application, applied = application_id(self._system, self.timeline, copy.load), copy.applied
        if applied is None:
            # The rows are of another server, and a load will replace them.
            return
        if table.is_whole:
            # The timeline, as `application_id` writes it.
            copy_timeline, timeline = int(copy.application.split("/")[2]), Timeline(self._system, self.timeline)
            reason = self._catalog.divergence_reason(applied, Timeline(self._system, copy_timeline), timeline)
            if reason is not None or applied > head:
                raise NeedsResync(reason or f"its rows are at {applied}, but the server's WAL ends at {head}")
        if application != copy.application:
            for stored in copy.stored_tables:
                last = last_application(stored, self._system, self.timeline)
                stored.commit([], [], Position(application, _applied(stored, last or application)))
            copy.application = application

    def maintain(self, stored: StoredTable) -> None:
        self._run(stored, lambda: stored.maintain(self._keep_hours))

    def merge(self, stored: StoredTable) -> bool:
        """Do the next merge of a stored table's files at once; return False if none is due."""
        return self._run(stored, lambda: merge_next(stored, self._engine))

    def commit_merge(self, merge: BegunMerge) -> bool:
        """Commit a finished merge; return False if batches changed its files too much meanwhile."""
        return self._run(merge.stored, merge.commit)

    def update_index(self, stored: StoredTable) -> bool:
        """Add missing files to the index of a stored table's keys; return whether files were missing."""
        index = self._indexes.of(stored)
        if index is None or not index.is_behind(stored):
            return False
        index.follow(stored)
        return True

    def write_stopped(self, table: Table) -> None:
        """Store in the table, for readers, why it is stopped and since which LSN."""
        copy = table.copy
        if copy is not None and copy.applied is not None:
            since = f"since {copy.applied}: {table.stopped}"
            self._patience.run(partial(copy.stored.write_stopped, since))

    # Rows

    def apply(
        self,
        table: Table,
        copy: Copy,
        changes: TableChanges,
        end: Lsn,
        catalog_table: CatalogTable | None = None,
        *,
        has_all: bool = False,
        may_lack_rows: bool = False,
    ) -> bool:
        """Apply changes to the copy and its companion tables; return False if some must wait for a later catalog.

        Args:
            table: the table, whose unfit values are counted.
            copy: its copy. Commits that the copy has already are skipped.
            changes: changes of whole transactions.
            end: an LSN; afterwards the copy has every commit before it.
            catalog_table: the table in a catalog that has the transactions of the Relation messages in `changes`; None
                if `changes` has no such message.
            has_all: whether that catalog has the transactions of all changes, and so proves new enum labels.
            may_lack_rows: whether updated or deleted rows may be missing, because their partitions are loaded later.

        Raises:
            NeedsResync: the changes or the catalog do not prove the columns, or the rows do not fit.
            OldRowsError: the server may send incomplete old rows of the table.
            RefusedCommit: the table refused a commit; all earlier commits are applied.
            Exception: the errors of `StoredTable.commit`.
        """
        if catalog_table is not None:
            catalog_table.refuse_incomplete_old_rows()
        changes, stored = copy.new_changes(changes), copy.stored
        try:
            first = first_messages(stored.table, changes.relations)
            spec = with_filled_partitions(stored.table, first)
            described = [] if catalog_table is None else proven_descriptions(spec, catalog_table, changes.relations)
            parts = runs(spec, described, changes.batches)
            if catalog_table is not None and spec is not stored.table:
                self._catalog.prove_rows_stayed(catalog_table.table, first, parts)
                self._evolve(table, copy, spec, catalog_table)
            for number, (description, part) in enumerate(parts, 1):
                if catalog_table is not None and not is_same_shape(stored.table, description):
                    self._evolve(table, copy, description, catalog_table)
                if unknown := unknown_labels(stored.table, part):
                    if catalog_table is None or not has_all:
                        return False
                    parts_of_types = (*stored.table.type_parts, *proven_labels(stored.table, catalog_table, unknown))
                    self._evolve(table, copy, replace(stored.table, type_parts=parts_of_types), catalog_table)
                last = Lsn(end - 1) if number == len(parts) else Lsn(int(part[-1].lsns[-1]))
                try:
                    self._apply(table, copy, part, last, may_lack_rows)
                except CHANGE_ERRORS:
                    self._apply_in_turn(table, copy, part, may_lack_rows)
        except NotProvenYetError:
            return False
        return True

    def _apply(self, table: Table, copy: Copy, changes: Sequence[ChangeBatch], last: Lsn, may_lack_rows: bool) -> None:
        while True:
            try:
                return self._apply_as_described(table, copy, changes, last, may_lack_rows)
            except NeedsTexts as needed:
                # The loop ends: each round gives a text column to at least one more column.
                evolutions = [evolution_with_text_columns(stored.table, needed.names) for stored in copy.stored_tables]
                self._reshape(table, copy, evolutions)

    def _apply_as_described(
        self, table: Table, copy: Copy, changes: Sequence[ChangeBatch], last: Lsn, may_lack_rows: bool
    ) -> None:
        stored, position = copy.stored, Position(copy.application, last)
        for companion in copy.companions.values():
            apply_to_companion = partial(apply_companion, companion, changes, position, self._engine)
            index = self._finder_of(companion)
            self._run(companion, partial(apply_to_companion, may_lack_rows=may_lack_rows, index=index))
        unfit: Counter[str] = Counter()
        apply_to_table = partial(apply, stored, changes, position, self._engine, unfit=unfit)
        index = self._finder_of(stored)
        self._run(stored, partial(apply_to_table, may_lack_rows=may_lack_rows, index=index))
        self._count_unfit(table, copy, unfit)

    def _finder_of(self, stored: StoredTable) -> RowFinder | None:
        return self._indexes.of(stored) or self._keys.of(stored)

    def _count_unfit(self, table: Table, copy: Copy, unfit: Mapping[str, int]) -> None:
        for name, count in unfit.items():
            if not table.unfit[name]:
                text = copy.stored.table.unfit_warning(name)
                self._observer.on_event(WarningIssued(f"{table.name}: {count:,} values of {name} {text}"))
            table.unfit[name] += count

    def _apply_in_turn(self, table: Table, copy: Copy, changes: Sequence[ChangeBatch], may_lack_rows: bool) -> None:
        """Apply commits in groups, halved after each error, up to the commit that fails alone. Raises RefusedCommit."""
        whole = TableChanges(batches=changes)
        lsns = np.unique(whole.lsns)
        first, count = 0, (len(lsns) + 1) // 2
        while first < len(lsns):
            first_lsn, last_lsn = int(lsns[first]), int(lsns[min(first + count, len(lsns)) - 1])
            try:
                self._apply(table, copy, whole.between(first_lsn, last_lsn).batches, Lsn(last_lsn), may_lack_rows)
            except CHANGE_ERRORS as error:
                if count == 1:
                    raise RefusedCommit(Lsn(first_lsn), error) from error
                count //= 2
            else:
                first += count

    def _run(self, stored: StoredTable, action: Callable[[], _Result]) -> _Result:
        """Run an action with retries. A missing file is damage only in the last version of the table: in an earlier one
        another program's merge may have replaced it, and the action is retried."""

        def run_on_last_version() -> _Result:
            try:
                return action()
            except (DamagedError, CompanionDamagedError) as error:
                stored.refuse_unknown_commits()
                # A load does not restore the rows of a companion table.
                raise damaged(stored.folder, error) if stored.table.companion is not None else error from None

        return self._patience.run(run_on_last_version)

    # Schema changes

    def describe(self, table: Table, copy: Copy, catalog_table: CatalogTable) -> None:
        """Give a copy the catalog's description, once the copy has all rows that precede it. Raises NeedsResync."""
        self._evolve(table, copy, latest_description(copy.stored.table, catalog_table), catalog_table)

    def change_all(self, copy: Copy, change_one: Callable[[StoredTable, Engine], int]) -> int:
        """Change the stored tables of a copy; return the sum of the results, which are numbers of rewritten files."""
        # The table itself comes last: after a kill, the next run sees the old table, and repeats all changes.
        return sum(
            self._run(stored, partial(change_one, stored, self._engine)) for stored in reversed(copy.stored_tables)
        )

    def _evolve(self, table: Table, copy: Copy, after: TableSpec, catalog_table: CatalogTable) -> None:
        """Give a copy the columns and the key of `after`. Raises NeedsResync if its rows' values are not proven."""
        self._reshape(table, copy, [evolution(stored.table, after, catalog_table) for stored in copy.stored_tables])

    def _reshape(self, table: Table, copy: Copy, evolutions: Sequence[Evolution]) -> None:
        previous_spec = copy.stored.table
        # The table itself comes last: after a kill, the next run sees the old table, and repeats all changes.
        for stored, change in reversed([*zip(copy.stored_tables, evolutions, strict=True)]):
            self._run(stored, partial(reshape, stored, change, self._engine))
        self._report_schema_change(table, copy, previous_spec)

    def _report_schema_change(self, table: Table, copy: Copy, previous_spec: TableSpec) -> None:
        if changes := changed_columns(previous_spec, copy.stored.table):
            self._observer.on_event(SchemaChanged(table.name, changes))

    def move(self, table: Table, copied: Sequence[Copied], previous_application: str) -> Copy:
        """Copy the stored tables of a renamed table into its new folder; return the new copy.

        Args:
            table: the table, with its new name and folder.
            copied: its stored tables under the old name, the table itself first.
            previous_application: the application id of their commits.
        """
        load = secrets.token_hex(8)
        application = application_id(self._system, self.timeline, load)
        moved: dict[Companion | None, StoredTable] = {}
        # The table itself comes last, and completes the move.
        for copied_table in reversed(copied):
            lsn, companion = _applied(copied_table.stored, previous_application), copied_table.table.companion
            folder = table.folder if companion is None else companion_folder(table.folder, companion)
            new_table = copied_table.renamed(table.name, Position(application, lsn), load, self._keep_hours)
            moved[companion] = self._patience.run(partial(move, copied_table, self._tables, folder, new_table))
        companions = {name: stored for name, stored in moved.items() if name is not None}
        return Copy(moved[None], application, companions)

    # Loaded rows

    def replace(
        self,
        table: Table,
        loaded: CopiedTable,
        previous: Copy | None,
        buffered: Callable[[], Iterable[TableChanges]],
    ) -> Copy:
        """Replace all rows of a table by loaded rows, or create the table; return the new copy.

        Args:
            table: the table.
            loaded: the loaded rows, in files of the table's folder.
            previous: the copy to replace; None for a new table.
            buffered: reads the buffered changes, also from before the snapshot, for the companion tables.
        """
        position = Position(application_id(self._system, self.timeline, loaded.load), Lsn(loaded.position - 1))
        stored, previous_application = (None, None) if previous is None else (previous.stored, previous.application)
        companions: dict[Companion, StoredTable] = {}
        # Companion tables come first: after a kill, the next load replaces them again, at the position of its snapshot.
        for companion in companions_of(loaded.table.settings):
            described = replace(loaded.table, companion=companion)
            new = NewTable(described, loaded.files, position, loaded.load, self._keep_hours)
            replace_companion = partial(
                replaced_companion, self._tables, table.folder, loaded, new, self._engine, buffered=buffered
            )
            companions[companion] = self._patience.run(
                partial(replace_companion, before_application=previous_application)
            )
        previous_spec = None if stored is None else stored.table
        if previous_spec is not None:
            loaded = loaded.described(loaded.table.with_texts_like(previous_spec))
        loaded = self._patience.run(partial(add_marked_files, loaded, stored, self._engine))
        new_table = NewTable(loaded.table, loaded.files, position, loaded.load, self._keep_hours)
        replaced = self._patience.run(lambda: self._tables.replace(table.folder, new_table, stored))
        copy = Copy(replaced, position.application, companions)
        table.unfit.clear()
        self._count_unfit(table, copy, loaded.unfit)
        if previous_spec is not None:
            self._report_schema_change(table, copy, previous_spec)
        return copy

    def replace_rows_by_key(
        self, table: Table, copy: Copy, catalog_table: CatalogTable, loaded: CopiedTable, partitions: Sequence[int]
    ) -> None:
        """Write the loaded rows of new `partitions`, or of a part, in place of rows with these keys or lost bounds.

        Raises NeedsResync if the snapshot's catalog does not prove the columns of the other rows.
        """
        stored = copy.stored
        part, reason = loaded.part, reason_to_load(stored.table, catalog_table, partitions)
        if reason is None and part is None and lost_oids(stored.table, catalog_table.table):
            reason = DROPPED
        is_removal = isinstance(part, LostPartitions)
        if reason is not None or (catalog_table.table.key is None and not is_removal):
            raise NeedsResync(reason or ATTACHED)
        after = latest_description(stored.table, catalog_table).with_texts_of(loaded.unfit)
        if part is not None:
            removed = part.partitions if isinstance(part, LostPartitions) else ()
            after = with_partitions_of(after, without_partitions(stored.table, removed))
        if not is_same_shape(stored.table, after) or after.texts != stored.table.texts:
            self._evolve(table, copy, with_partitions_of(after, stored.table), catalog_table)
        # The table itself comes last: after a kill, the pending load repeats the replacement, which is idempotent.
        for stored_table in reversed(copy.stored_tables):
            described = evolution(stored_table.table, after, catalog_table).table
            rows = loaded.described(described)
            self._run(
                stored_table,
                partial(
                    replace_rows_by_key, stored_table, described, rows, stored.folder, copy.application, self._engine
                ),
            )
        self._count_unfit(table, copy, loaded.unfit)


def _applied(stored: StoredTable, application: str) -> Lsn:
    """Return the LSN of an application's last commit. Raises LogDamagedError if the table has none."""
    lsn = stored.applied(application)
    if lsn is None:
        raise LogDamagedError(f"{stored.storage.uri_of(stored.folder)} has no commit of {application}")
    return lsn
