"""The loads of tables: from the reason to load a table until the table follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

from logicalrep.observe.events import ErrorCounted, LoadsNeeded, WarningIssued
from logicalrep.pipeline.buffer.pending_loads import (
    ASKED_FOR,
    BufferedChanges,
    PartitionsLoad,
    PendingLoad,
    TableLoad,
)
from logicalrep.pipeline.catalog.lost_partitions import LostPartitions
from logicalrep.pipeline.catalog.proof import DROPPED
from logicalrep.pipeline.load.deleted_keys import WantedPart
from logicalrep.pipeline.load.load_queue import LoadQueue
from logicalrep.pipeline.load.snapshot_copy import CopiedTable, CopyFailed, LoadRequest
from logicalrep.pipeline.masks.guard import Guard
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.state.requests import RequestedPart, shortened
from logicalrep.pipeline.tables.buffers import TableBuffers
from logicalrep.pipeline.tables.phases import CatchingUp, CatchUp, Copy, Copying, Following, Queued
from logicalrep.pipeline.tables.reload_limiter import ReloadLimiter, pause_until
from logicalrep.pipeline.tables.stops import TableStops
from logicalrep.pipeline.tables.table import Table
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn

NEW, OTHER_SETTINGS = "new table", "its settings changed"
BEYOND_PROOF = "the server restarted, and may have lost the table's last commits, which no checkpoint covers"
"""Like `ASKED_FOR`, these three are reasons that ReloadLimiter does not count: no such load causes another load."""


@dataclass(slots=True)
class LoadCoordinator:
    """Moves tables through the phases of a load. Only the loop's thread calls it."""

    context: RunContext
    loader: LoadQueue
    buffers: TableBuffers
    guard: Guard
    stops: TableStops
    limiter: ReloadLimiter
    pool: ThreadPoolExecutor
    needed: dict[str, list[TableName]] = field(default_factory=dict)
    """The tables whose loads the next step will report, by reason."""
    requests: dict[TableName, LoadRequest] = field(default_factory=dict)
    """The loads that the next step will pass to the threads."""
    refused: list[str] = field(default_factory=list)
    """A text about each requested part of a table that this process refused to load."""

    def load(self, table: Table, reason: str, partitions: Sequence[int] = ()) -> None:
        """Queue a load of a table, or of `partitions` (OIDs) alone; readers have the old rows until the load ends.

        Repeated loads for one reason are postponed. The table is stopped instead if the load would write
        values in clear that must be masked.
        """
        begin = table.load_begin
        postponed = table.postponed
        # The pending load names the copy that it replaces: work that may commit another copy must end first.
        table.end_work()
        copy = table.copy
        if reason in (ASKED_FOR, OTHER_SETTINGS):
            begin = None
            self.clear_reloads(table)
        elif reason not in (NEW, BEYOND_PROOF) and begin is None:
            # A postponed load was counted already.
            begin = self.context.patience.run(partial(self.limiter.add, table.folder, reason, partitions))
        pending: PendingLoad
        if partitions:
            pending = PartitionsLoad(table.folder, reason, tuple(partitions), begin)
        else:
            pending = TableLoad(table.folder, reason, None if copy is None else copy.load, begin)
        # A requested part that was queued is queued again, from its stored request, once the table follows.
        queued = Queued(reason, copy, pending)
        table.move(queued)
        self.buffers.save_pending_load(pending)
        if not partitions:
            # The snapshot of this load will be later than the buffered changes, and so include them.
            self.buffers.clear(table)
        if table.postponed is None:
            self.needed.setdefault(reason, []).append(table.name)
        elif table.postponed != postponed:
            self.context.observer.on_event(WarningIssued(f"{table.name}: {table.postponed}"))
        self._begin(table, queued)

    def clear_reloads(self, table: Table) -> None:
        """Forget the counted loads of a table, so that its next load begins at once."""
        self.context.patience.run(partial(self.limiter.clear, table.folder))

    def load_named(self, tables: Mapping[TableName, Table], names: Sequence[TableName]) -> None:
        for name in names:
            if name in tables:
                self.load(tables[name], ASKED_FOR)
            else:
                self.context.observer.on_event(
                    WarningIssued(f"{name} is not replicated: the request to reload it is ignored")
                )

    def load_part(self, table: Table | None, part: RequestedPart) -> None:
        """Queue a requested part of a table that is up to date. Refuse it if the table is stopped or not replicated; in
        every other phase the stored request waits, and the next refresh takes it again."""
        if table is None:
            self.refuse_part(part, "it is not replicated")
        elif table.stopped is not None:
            self.refuse_part(part, f"it is stopped; run logicalrep resync {table.name} to reload the whole table")
        elif table.is_up_to_date:
            self._queue_part(table, f"{ASKED_FOR}: {part.shown}", part)

    def replace_lost(self, table: Table, copy: Copy, lost: LostPartitions) -> None:
        """Queue a load of the rows within the bounds of dropped or detached partitions; the table is up to date."""
        # Until the rows are replaced, the copy's description has the partitions: a later process compares them again.
        self._queue_part(table, f"{DROPPED}: the rows where {shortened(str(lost.condition(copy.stored.table)))}", lost)

    def _queue_part(self, table: Table, reason: str, part: RequestedPart | LostPartitions) -> None:
        self.needed.setdefault(reason, []).append(table.name)
        # The pending load has no part: a later process queues the part again once the table follows.
        pending = BufferedChanges(table.folder, reason)
        self.buffers.save_pending_load(pending)
        self.queue(table, Queued(reason, table.copy, pending, part))

    def refuse_part(self, part: RequestedPart, reason: str) -> None:
        """Report that a requested part is not loaded, and delete the request."""
        text = f"{part.shown} of {part.table} are not reloaded, and the table is unchanged: {reason}"
        self.refused.append(text)
        self.context.observer.on_event(WarningIssued(text))
        self.buffers.end_request(part)

    def queue(self, table: Table, queued: Queued) -> None:
        """Queue a load whose pending load is saved already."""
        table.move(queued)
        self._begin(table, queued)

    def catch_up(
        self,
        table: Table,
        reason: str,
        copy: Copy | None,
        pending: PendingLoad,
        action: Callable[[CatchUp], Copy | None],
    ) -> None:
        """Let a table catch up: run `action` in a thread of the pool; `finish` takes the copy that it returns."""
        work = CatchUp(copy, pending)
        table.move(CatchingUp(reason, work))
        work.begin(self.pool, action)

    def numbers(self, table: Table) -> Mapping[str, int]:
        """Return the attribute numbers that masked and omitted columns must have, by name.

        Empty for a load that an operator requested, and so for the columns as they are.
        """
        return {} if table.is_requested else {**self.guard.numbers(table.oid), **table.numbers}

    def _begin(self, table: Table, queued: Queued) -> None:
        """Request a load. Stop the table if the load would write values in clear that must be masked; wait if the load
        is postponed."""
        reason = self.guard.reason(table.oid, table.name)
        if reason is not None:
            self.stops.stop(table, reason)
        elif table.load_begin is not None:
            queued.tries.postpone(pause_until(table.load_begin))
        else:
            copy, part = queued.copy, queued.part
            copied_spec = None if copy is None else copy.stored.table
            part_to_load: WantedPart | LostPartitions | None
            if isinstance(part, RequestedPart):
                part_to_load = None if copy is None else WantedPart.of(part, copy.stored_tables)
            else:
                part_to_load = part
            replaces_some_rows = isinstance(queued.pending, PartitionsLoad) or part is not None
            request = LoadRequest(
                table.folder,
                table.oid,
                numbers=self.numbers(table),
                last_spec=copied_spec,
                proven_spec=copied_spec if replaces_some_rows else None,
                part=part_to_load,
            )
            self.requests[table.name] = request

    def step(self, tables: Mapping[TableName, Table], taken: Lsn) -> None:
        """Queue due tries, begin the requested loads, and take the results of load threads; every commit before `taken`
        is applied or buffered."""
        copying = self.loader.progress()
        for name, table in tables.items():
            phase = table.phase
            if isinstance(phase, Queued) and phase.tries.take_due():
                self.queue(table, replace(phase, reason="the next try is due"))
            elif isinstance(phase, Queued) and name in copying:
                reason = "its rows are being copied"
                table.move(Copying(reason, phase.copy, phase.pending, phase.part, phase.tries))
        # Before the results: a requested load discards the result of an earlier load.
        self._begin_requested()
        for result in self.loader.results(taken):
            loading = tables.get(result.name)
            if loading is None or not isinstance(loading.phase, Queued | Copying):
                continue
            if isinstance(result, CopiedTable):
                self._take_copied(loading, loading.phase, result)
            else:
                self._take_failed(loading, loading.phase, result)

    def _begin_requested(self) -> None:
        # Reported first: a thread may copy a small table within milliseconds.
        needed, self.needed = self.needed, {}
        for reason, names in needed.items():
            self.context.observer.on_event(LoadsNeeded(names, reason))
        if self.requests:
            self.loader.add(self.requests)
            self.requests = {}

    def _take_copied(self, table: Table, phase: Queued | Copying, result: CopiedTable) -> None:
        copy, catalog_table, pending = phase.copy, result.catalog_table, phase.pending
        if result.table.relation.relation_id != table.oid:
            # Another table got this name meanwhile; its own load is queued.
            return
        if result.position < table.least_position:
            reason = "the copy lacks changes that were not buffered"
            self.queue(table, Queued(reason, copy, pending, phase.part, phase.tries))
            return
        if copy is None:
            self._offer_marking(table, result)
        if copy is None or catalog_table is None:
            work: Callable[[CatchUp], Copy | None] = partial(self.buffers.take_table, table, result)
        else:
            work = partial(self.buffers.take_partitions, table, copy, catalog_table, result)
        self.catch_up(table, "its rows are copied", copy, pending, work)

    def _offer_marking(self, table: Table, result: CopiedTable) -> None:
        size = sum(file.size for file in result.files)
        if size > self.context.limits.large_table_bytes and not result.table.marks_rows:
            self.context.observer.on_event(
                WarningIssued(
                    f"{table.name} has {size / 1e9:.1f} GB, and each batch rewrites the files whose rows change. With "
                    "write_mode = merge-on-read, replicate marks these rows instead, for readers that support "
                    f"{result.table.settings.row_marks}: see docs/how-to/large-tables.md"
                )
            )

    def _take_failed(self, table: Table, phase: Queued | Copying, result: CopyFailed) -> None:
        copy, pending, part = phase.copy, phase.pending, phase.part
        max_tries = self.context.limits.load_tries
        if copy is not None and part is not None and result.is_behind:
            self.catch_up(table, result.reason, copy, pending, partial(self.buffers.apply, table, copy))
            return
        self.context.observer.on_event(ErrorCounted("load"))
        if result.may_retry and phase.tries.count_failure(result.reason, result.is_own, max_tries):
            table.move(Queued(result.reason, copy, pending, part, phase.tries))
            return
        tried = f", in {max_tries} consecutive tries" if result.may_retry else ""
        if copy is None or part is None:
            self.stops.stop(table, result.reason + tried)
            return
        if isinstance(part, LostPartitions):
            self.load(table, DROPPED)
            return
        self.refuse_part(part, result.reason + tried)
        reason = "a part of it is not reloaded"
        self.catch_up(table, reason, copy, pending, partial(self.buffers.apply, table, copy))

    def finish(self, table: Table, work: CatchUp) -> None:
        """Take the result of a table's work; then the table follows, or catches up further. Raises the work's error."""
        copy = work.take_result()
        if copy is None:
            # The work ended early, because the process exits.
            return
        # No change is buffered meanwhile, as this thread takes the batches.
        if self.buffers.apply_rest(table, copy):
            table.move(Following("all buffered changes are applied", copy))
        else:
            work.begin(self.pool, partial(self.buffers.apply, table, copy))
