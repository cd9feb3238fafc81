"""The opening of tables: each resumes from the last checkpoint and its pending load, or is loaded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from logicalrep.observe.events import WarningIssued
from logicalrep.observe.figures import Standing
from logicalrep.pipeline.buffer.pending_loads import ASKED_FOR, HeldCommit, PartitionsLoad, PendingLoad, TableLoad
from logicalrep.pipeline.formats.since_checkpoint import SinceCheckpoint, compare
from logicalrep.pipeline.formats.stored_table import ForeignTableError, StoredTable
from logicalrep.pipeline.masks.guard import Guard
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.tables.buffers import TableBuffers
from logicalrep.pipeline.tables.load_coordinator import BEYOND_PROOF, NEW, OTHER_SETTINGS, LoadCoordinator
from logicalrep.pipeline.tables.phases import Copy, Following, Opening, Queued, Stopped
from logicalrep.pipeline.tables.table import Table
from logicalrep.pipeline.tables.writer import TableWriter


@dataclass(frozen=True, slots=True)
class Opened:
    stored: StoredTable
    since: SinceCheckpoint
    """The differences of the stored table from the last checkpoint."""


@dataclass(slots=True)
class Openings:
    context: RunContext
    last_state: State
    guard: Guard
    writer: TableWriter
    buffers: TableBuffers
    loads: LoadCoordinator
    pending_loads: dict[str, PendingLoad]

    def open(self, table: Table) -> Opened | None:
        """Return a table's stored table; None if there is none. Several threads may open tables at the same time."""
        (stored, unsupported), state = self.writer.open(table), self.last_state.tables.get(str(table.name))
        if stored is None:
            return None
        if unsupported is not None:
            return Opened(stored, SinceCheckpoint(foreign_change=unsupported))
        head = None if state is None else state.head()
        return Opened(stored, self.context.patience.run(lambda: compare(stored, head)))

    def remove_pending(self, folder: str) -> None:
        if self.pending_loads.pop(folder, None) is not None:
            self.buffers.remove(folder)

    def resume(self, table: Table, opened: Opened | None, *, was_unpublished: bool) -> None:
        """Resume an opened table from its last state, or load it; no changes were sent while it `was_unpublished`."""
        state = self.last_state.tables.get(str(table.name))
        # A table that is published again later has no pending load: these are from before this process.
        pending = self.pending_loads.pop(table.folder, None)
        copy = None if opened is None else self._own_copy(opened.stored, pending)
        if copy is not None and copy.applied is None and isinstance(pending, TableLoad):
            # No load of this server has replaced the rows, whichever load they began with.
            pending = replace(pending, replaces=copy.load)
        table.update(Opening("it is opened", copy, pending))
        if table.is_requested:
            self.loads.clear_reloads(table)
        since, has_companions = SinceCheckpoint(), False
        if copy is not None and opened is not None:
            copy, since, has_companions = self.writer.open_companions(copy, opened.since, state)
            table.update(Opening("it is opened", copy, pending))
        if pending is not None:
            self.buffers.open(table)
        if copy is None:
            self.loads.load(table, ASKED_FOR if table.is_requested else NEW)
            return
        was_stopped = (
            state is not None
            and state.state is Standing.STOPPED
            and state.oid in (None, table.oid)
            and not table.is_refused
            and table.is_whole
        )
        reason = None
        if table.is_whole:
            reason = self._reason_to_load(
                table,
                copy,
                since,
                was_stopped=was_stopped,
                was_unpublished=was_unpublished or state is None,
                has_companions=has_companions,
            )
        if reason is not None:
            self.loads.load(table, reason)
        elif state is not None and was_stopped:
            # Its changes since then are stored nowhere: only a requested reload lets it resume.
            table.move(Stopped(state.error or "", copy, pending))
            self.context.observer.on_event(WarningIssued(f"{table.name} is still stopped: {state.error}"))
        elif pending is None:
            table.move(Following("it is as the last checkpoint has it", copy))
        elif table.is_whole and not isinstance(pending, PartitionsLoad):
            apply = partial(self.buffers.apply, table, copy)
            self.loads.catch_up(table, "buffered changes are left", copy, pending, apply)
        else:
            if not table.is_whole and self.guard.has_other_masks(table.name):
                self.buffers.clear(table)
            self.loads.queue(table, Queued("its load was pending", copy, pending))

    def _own_copy(self, stored: StoredTable, pending: PendingLoad | None) -> Copy:
        """Return a stored table as a copy. Raises ForeignTableError for another server's, unless a load replaces it."""
        copy = self.writer.copy_of(stored)
        if copy.applied is None and not isinstance(pending, TableLoad):
            raise ForeignTableError(
                f"{stored.storage.uri_of(stored.folder)} has no commit of the server "
                f"{self.context.identity.system_identifier}: it belongs to another server; remove it, or replicate to "
                "another destination",
                code="OTHER_SERVER",
            )
        return copy

    def _reason_to_load(
        self,
        table: Table,
        copy: Copy,
        since: SinceCheckpoint,
        *,
        was_stopped: bool,
        was_unpublished: bool,
        has_companions: bool,
    ) -> str | None:
        """Return the reason to reload a table with a whole copy; None if it resumes as it is."""
        if copy.is_skipped_in_part:
            return "a commit was skipped in a companion table, but not in the table itself"
        stored_settings, settings = copy.stored.table.settings, self.context.settings.of(table.name)
        has_other_settings = (
            not stored_settings.has_same_rows(settings) or stored_settings.partition_by != settings.partition_by
        )
        if was_stopped:
            # With other settings, the load may succeed.
            return OTHER_SETTINGS if has_other_settings else None
        difference = since.restored or since.foreign_change or self._lost_changes(table, copy)
        if difference is not None:
            return difference
        if self._is_beyond_proof(table, copy):
            return BEYOND_PROOF
        has_own_reason = isinstance(table.pending, HeldCommit | PartitionsLoad)
        if table.pending is not None and not has_own_reason:
            # An unpublished table lacks the changes after its buffered ones. Otherwise the buffered changes are applied
            # first; then the table follows, and is compared with the server.
            return "published again" if was_unpublished else None
        if copy.stored.table.relation.relation_id != table.oid:
            return "another table has its name"
        if was_unpublished:
            return "published again"
        if has_other_settings and has_own_reason:
            return OTHER_SETTINGS
        if not has_companions and not table.is_refused:
            return "a companion table is missing, or belongs to another load"
        return None

    def _is_beyond_proof(self, table: Table, copy: Copy) -> bool:
        proven, applied = self.context.proven_before, copy.applied
        if proven is None or applied is None:
            return False
        return applied >= proven or (table.pending is not None and self.buffers.has_changes_after(table, proven))

    def _lost_changes(self, table: Table, copy: Copy) -> str | None:
        """Return the reason why changes buffered at the last checkpoint are missing; None if none are."""
        state = self.last_state.tables.get(str(table.name))
        if state is None or state.state is Standing.FOLLOWING:
            return None
        if table.pending is None:
            if state.oid not in (None, table.oid):
                return None
            return "it was loading at the last checkpoint, but its pending load is missing"
        buffered = state.buffered
        if buffered is None:
            return None
        if buffered.load is None and copy.load == state.load:
            return "its pending load was restored to an earlier state, so its buffered changes may differ"
        if not self.buffers.has_all(table, copy, buffered.end):
            return f"the buffered changes before {buffered.end} are missing"
        return None
