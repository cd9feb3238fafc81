"""Pending loads and change buffers of tables: filled while a table loads or is held, and applied afterwards."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.pipeline.buffer.change_buffer import ChangeBuffer
from logicalrep.pipeline.buffer.pending_loads import BufferedChanges, HeldCommit, PartitionsLoad, PendingLoad
from logicalrep.pipeline.catalog.catalog import Catalog
from logicalrep.pipeline.catalog.definitions import CatalogTable
from logicalrep.pipeline.errors import NeedsResync
from logicalrep.pipeline.formats.stored_table import Position
from logicalrep.pipeline.load.snapshot_copy import CopiedTable
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.schema.table_facts import Skipped
from logicalrep.pipeline.state.requests import RequestedPart
from logicalrep.pipeline.tables.phases import CatchUp, Copy
from logicalrep.pipeline.tables.table import Table
from logicalrep.pipeline.tables.writer import TableWriter
from logicalrep_runtime.scalars import Lsn

_CATALOG_INTERVAL = 0.1
"""The seconds between two queries whether the catalog has a received transaction."""
_SOON = 2.0
"""Batches may wait for the rest of a buffer if the last pass over it took fewer seconds."""


class TableBuffers:
    """Buffers and applies the changes of tables, each table by one thread at a time."""

    def __init__(self, context: RunContext, catalog: Catalog, writer: TableWriter, check: Callable[[], object]) -> None:
        self._keep_hours = context.settings.keep
        self._patience = context.patience
        self._catalog = catalog
        self._writer = writer
        self._storage = context.storage
        self._buffer = ChangeBuffer(context.storage, check)
        # The folders of the tables that began to follow after the last checkpoint.
        self._finished: set[str] = set()

    # Pending loads

    def save_pending_load(self, pending: PendingLoad) -> None:
        """Save a pending load: the table's changes are buffered from now on."""
        self._patience.run(lambda: self._buffer.save_pending_load(pending))
        self._finished.discard(pending.folder)

    def delete_finished(self) -> None:
        """Delete the pending loads of tables that follow; call it after the checkpoint that stores that. So a table
        that loads at the last checkpoint has a pending load, or its files were restored."""
        while self._finished:
            folder = next(iter(self._finished))
            self._patience.run(partial(self._buffer.delete_pending_load, folder))
            self._finished.discard(folder)

    # Buffers

    def has_changes_after(self, table: Table, lsn: Lsn) -> bool:
        return self._patience.run(lambda: self._buffer.has_after(table.folder, lsn))

    def append(self, table: Table, changes: TableChanges, end: Lsn) -> None:
        """Append all changes of commits before `end` to a table's change buffer."""
        table.buffered = self._patience.run(lambda: self._buffer.append(table.folder, changes, end, table.buffered))

    def open(self, table: Table) -> None:
        """Read where a table's stored change buffer ends."""
        files = self._patience.run(lambda: self._buffer.files(table.folder))
        table.buffered = files[-1].end if files else Lsn(0)

    def has_all(self, table: Table, copy: Copy, end: Lsn) -> bool:
        """Return whether a copy and its change buffer together have all changes before `end`."""
        applied = copy.applied
        covered = 0 if applied is None else int(applied) + 1
        for file in self._patience.run(lambda: self._buffer.files(table.folder)):
            if file.previous > covered:
                return False
            covered = max(covered, int(file.end))
        return covered >= end

    def clear(self, table: Table) -> None:
        """Remove the change buffer of a table before its load begins."""
        self._patience.run(lambda: self._buffer.forget(table.folder))
        table.buffered = Lsn(0)

    def remove(self, folder: str) -> None:
        self._patience.run(lambda: self._buffer.remove(folder))

    def apply(self, table: Table, copy: Copy, work: CatchUp) -> Copy:
        """Apply the change buffer to a whole copy, until a pass takes little time."""
        seconds = math.inf
        while True:
            last_seconds, began = seconds, time.monotonic()
            for end, changes in self._buffer.changes(table.folder):
                if not self._apply_in_time(table, copy, work, changes, end) or self._is_ending(work):
                    return copy
                for stored in copy.stored_tables:
                    self._writer.merge(stored)
                    if stored.is_upkeep_due(self._keep_hours):
                        self._writer.maintain(stored)
            seconds = time.monotonic() - began
            # If changes arrive faster than they are applied, the batches wait for the rest.
            if seconds < _SOON or seconds >= last_seconds:
                return copy

    def apply_rest(self, table: Table, copy: Copy) -> bool:
        """Apply the rest of the change buffer, after which the table follows; return False if the catalog is behind."""
        for end, changes in self._buffer.changes(table.folder):
            if not self._apply(table, copy, changes, end):
                return False
        self.clear(table)
        self._finished.add(table.folder)
        return True

    def _apply_in_time(
        self,
        table: Table,
        copy: Copy,
        work: CatchUp,
        changes: TableChanges,
        end: Lsn,
        *,
        may_lack_rows: bool = False,
    ) -> bool:
        while not self._apply(table, copy, changes, end, may_lack_rows=may_lack_rows):
            time.sleep(_CATALOG_INTERVAL)
            if self._is_ending(work):
                return False
        return True

    def _is_ending(self, work: CatchUp) -> bool:
        return work.is_ending or self._patience.is_over

    def _apply(self, table: Table, copy: Copy, changes: TableChanges, end: Lsn, *, may_lack_rows: bool = False) -> bool:
        """Apply changes of the buffer; return False if the catalog does not have their transactions yet."""
        new, catalog_table, has_all = copy.new_changes(changes), None, False
        if new.relations or _has_enum_labels(copy):
            described = self._catalog.refresh([table.oid]).describe(table.oid, new)
            if described is None:
                return False
            catalog_table, has_all = described.catalog_table, described.has_all
            if catalog_table is None:
                raise NeedsResync("it was dropped before its changes could be applied")
        if not self._writer.apply(
            table, copy, changes, end, catalog_table, has_all=has_all, may_lack_rows=may_lack_rows
        ):
            return False
        self._patience.run(partial(_store_end, copy, end))
        self._buffer.forget(table.folder, end)
        return True

    # Copied rows

    def take_table(self, table: Table, loaded: CopiedTable, work: CatchUp) -> Copy:
        """Replace a table's rows with loaded rows, and apply the changes that were buffered meanwhile."""
        work.copy = copy = self._writer.replace(
            table, loaded, work.copy, lambda: (changes for _, changes in self._buffer.changes(table.folder))
        )
        return self.apply(table, copy, work)

    def end_request(self, part: RequestedPart) -> None:
        """Delete the stored request for a part, which is loaded or refused."""
        self._patience.run(lambda: self._storage.delete(part.path))

    def take_partitions(
        self, table: Table, copy: Copy, catalog_table: CatalogTable, loaded: CopiedTable, work: CatchUp
    ) -> Copy | None:
        """Replace rows of partitions, or of a part, by key, and apply the buffered changes; return None if the work
        ends early. Changes before the snapshot are applied first; they may lack rows of the new partitions. Raises
        NeedsResync if the columns of the other rows are not proven."""
        for end, changes in self._buffer.changes(table.folder):
            earlier_changes, upto = changes.between(last=int(loaded.position) - 1), min(end, loaded.position)
            if not self._apply_in_time(table, copy, work, earlier_changes, upto, may_lack_rows=loaded.part is None):
                return None
            if end >= loaded.position:
                break
        pending = work.pending
        if isinstance(pending, PartitionsLoad):
            self._writer.replace_rows_by_key(table, copy, catalog_table, loaded, pending.partitions)
            work.pending = BufferedChanges(table.folder, pending.reason)
            self.save_pending_load(work.pending)
        else:
            self._writer.replace_rows_by_key(table, copy, catalog_table, loaded, ())
        if isinstance(loaded.part, RequestedPart):
            self.end_request(loaded.part)
        return self.apply(table, copy, work)

    # Refused commits

    def hold(self, table: Table, lsn: Lsn) -> HeldCommit:
        """Save that a table refused a commit: all changes from that commit on are buffered."""
        pending = table.pending
        if isinstance(pending, HeldCommit) and pending.refused == str(lsn):
            # The commit was retried.
            return pending
        held = HeldCommit(table.folder, str(lsn), time.time())
        self.save_pending_load(held)
        return held

    def release_hold(self, table: Table) -> BufferedChanges:
        """Save that a table no longer waits at a refused commit: its buffer is applied, or it must be loaded."""
        pending = BufferedChanges(table.folder, "its changes are buffered")
        self.save_pending_load(pending)
        return pending

    def skip(self, table: Table, copy: Copy, lsn: Lsn) -> Skipped | None:
        """Skip a refused commit in all stored tables of a table; return None if one of them already has it."""
        if any((stored.applied(copy.application) or 0) >= lsn for stored in copy.stored_tables):
            return None
        changes = sum(changes.between(int(lsn), int(lsn)).num_rows for _, changes in self._buffer.changes(table.folder))
        skipped = Skipped(str(lsn), changes, datetime.now(UTC).isoformat(timespec="seconds"))
        # The table itself comes last: after a kill before that, its companion tables show that it needs a load.
        for stored in reversed(copy.stored_tables):
            self._patience.run(partial(stored.skip, skipped, copy.application))
        return skipped


def _store_end(copy: Copy, end: Lsn) -> None:
    """Store that a copy has all changes before `end`, so that the next start can tell applied files from lost files."""
    if (copy.applied or 0) < end - 1:
        copy.stored.commit([], [], Position(copy.application, Lsn(end - 1)))


def _has_enum_labels(copy: Copy) -> bool:
    return bool(copy.stored.table.evidence.labelled)
