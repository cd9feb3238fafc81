"""The opening of tables: each goes on from where the last checkpoint and its pending load have it, or is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from logicalrep.pipeline.buffer.change_buffer import ASKED_FOR, PendingLoad
from logicalrep.pipeline.formats.since_checkpoint import compare
from logicalrep.pipeline.masks.guard import Guard
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.tables.buffers import TableBuffers
from logicalrep.pipeline.tables.lifecycle import Phase
from logicalrep.pipeline.tables.loads import BEYOND_PROOF, NEW, OTHER_SETTINGS, TableLoads
from logicalrep.pipeline.tables.table import Table
from logicalrep.pipeline.tables.writer import TableWriter


@dataclass(slots=True)
class Openings:
    """Opens tables that are published, and decides how each goes on."""

    context: RunContext
    before: State
    """The progress of the tables at the start."""
    guard: Guard
    writer: TableWriter
    buffers: TableBuffers
    loads: TableLoads
    pending_loads: dict[str, PendingLoad]
    """The pending loads at the start, by the folders of their tables."""

    def open(self, table: Table) -> None:
        """Open a table at the destination. Threads may do this for several tables, as it is several requests."""
        self.writer.open(table)
        stored, before = table.stored, self.before.tables.get(str(table.name))
        if stored is not None:
            known = None if before is None else before.head()
            table.since_checkpoint = self.context.patience.run(lambda: compare(stored, known))

    def forget_pending(self, folder: str) -> None:
        """Remove a load that was pending at the start, and its buffered changes: its table does not go on."""
        if self.pending_loads.pop(folder, None) is not None:
            self.buffers.remove_from(folder)

    def go_on(self, table: Table, *, was_left: bool) -> None:
        """Go on with a table as it was, once it is opened, or load it.

        Args:
            table: the table.
            was_left: whether it was not published for a while, in which its changes were not sent.
        """
        before = self.before.tables.get(str(table.name))
        # A table that comes back later has none: what is pending now was before this process began.
        table.pending_load = pending_load = self.pending_loads.pop(table.folder, None)
        if table.is_asked_for:
            self.buffers.forget_loads(table)
        has_companions = table.stored is not None and self.writer.open_companions(table, before)
        if pending_load is not None:
            self.buffers.open(table)
        was_stopped = (
            before is not None
            and before.state == "stopped"
            and before.oid in (None, table.oid)
            and not table.is_refused
            and table.is_whole
        )
        reason = self._reason_to_load(
            table,
            was_stopped=was_stopped,
            was_left=was_left or before is None,
            has_companions=has_companions,
        )
        if reason is not None:
            self.loads.load(table, reason)
        elif before is not None and was_stopped:
            # Its changes since then are stored nowhere, so that it is loaded again, once somebody asks for it.
            table.move(Phase.STOPPED, before.error or "")
        elif pending_load is None:
            table.move(Phase.FOLLOWING, "it is as the last checkpoint has it")
        elif table.lacks_partitions:
            self.loads.queue(table, pending_load.reason)
        elif table.is_whole:
            self.loads.catch_up(table, partial(self.buffers.apply, table), "buffered changes are left")
        else:
            if self.guard.has_other_masks(table.name):
                self.buffers.clear(table)
            self.loads.queue(table, pending_load.reason)

    def _reason_to_load(self, table: Table, *, was_stopped: bool, was_left: bool, has_companions: bool) -> str | None:
        """Return why a table is loaded again; None if it goes on as it was, also with the load that is pending."""
        if table.stored is None:
            return ASKED_FOR if table.is_asked_for else NEW
        if not table.is_whole:
            return None
        if table.is_skipped_in_part:
            return "a commit was skipped in a companion table, but not in the table itself"
        before, settings = table.stored.table.settings, self.context.settings.of(table.name)
        has_other_settings = not before.has_same_rows(settings) or before.partition_by != settings.partition_by
        if was_stopped:
            # Other settings may let it load.
            return OTHER_SETTINGS if has_other_settings else None
        since = table.since_checkpoint
        difference = since.restored or since.changed_by_others or self._lost_changes(table)
        if difference is not None:
            return difference
        if self._is_beyond_proof(table):
            return BEYOND_PROOF
        has_own_reason = table.is_refused or table.lacks_partitions
        if table.pending_load is not None and not has_own_reason:
            # What came after its buffered changes was not taken if it was left out. Else they are applied first; then
            # it follows, and is compared with the server.
            return "published again" if was_left else None
        if table.stored.table.relation.relation_id != table.oid:
            return "another table of this name"
        if was_left:
            return "published again"
        if has_other_settings and has_own_reason:
            return OTHER_SETTINGS
        if not has_companions and not table.is_refused:
            return "its history or its changes are not there"
        return None

    def _is_beyond_proof(self, table: Table) -> bool:
        """Return whether a killed process has written or buffered changes that the server may not have any more."""
        proven, stored = self.context.proven_before, table.stored
        if proven is None or stored is None or table.application is None:
            return False
        applied = stored.applied(table.application)
        has_later = applied is not None and applied >= proven
        return has_later or (table.pending_load is not None and self.buffers.are_after(table, proven))

    def _lost_changes(self, table: Table) -> str | None:
        """Return why changes are missing that were buffered at the last checkpoint; None if none are."""
        before, pending_load = self.before.tables.get(str(table.name)), table.pending_load
        if before is None or before.state == "following":
            return None
        if pending_load is None:
            if before.oid not in (None, table.oid):
                return None
            return "it was loading at the last checkpoint, and its pending load is not there any more"
        buffered = before.buffered
        if buffered is None:
            return None
        if buffered.load is None and table.load == before.load:
            return "its pending load was restored to an earlier state, and its buffered changes may be others"
        if not self.buffers.has_all(table, buffered.end):
            return f"changes before {buffered.end} that were buffered are not there any more"
        return None
