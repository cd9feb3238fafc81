"""The manager of tables: it passes catalog refreshes, batches, requests and results of threads to each table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from logicalrep.arrow.changes.table_changes import TableChanges, together
from logicalrep.observe.events import WarningIssued
from logicalrep.pipeline.apply.renaming import Copied
from logicalrep.pipeline.buffer.change_buffer import ChangeBuffer
from logicalrep.pipeline.buffer.pending_loads import HeldCommit
from logicalrep.pipeline.catalog.catalog import Catalog, ServerTable
from logicalrep.pipeline.errors import MissingRows, RefusedCommit
from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.load.load_queue import LoadQueue
from logicalrep.pipeline.masks.guard import Guard
from logicalrep.pipeline.masks.masked_rows import Masking, refuse_other_masks
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.schema.names import table_folder
from logicalrep.pipeline.state.requests import RequestedPart
from logicalrep.pipeline.state.state import States
from logicalrep.pipeline.state.table_state import TableState
from logicalrep.pipeline.tables.buffers import TableBuffers
from logicalrep.pipeline.tables.differences import Differences
from logicalrep.pipeline.tables.failures import TableFailures
from logicalrep.pipeline.tables.load_coordinator import LoadCoordinator
from logicalrep.pipeline.tables.openings import Opened, Openings
from logicalrep.pipeline.tables.phases import CatchingUp, Following, Held, Unproven, Unpublished
from logicalrep.pipeline.tables.registrations import Registrations
from logicalrep.pipeline.tables.reload_limiter import ReloadLimiter
from logicalrep.pipeline.tables.stops import TableStops
from logicalrep.pipeline.tables.table import Table
from logicalrep.pipeline.tables.unproven import Ready, UnprovenChanges, first_unproven, with_rerouted_relations
from logicalrep.pipeline.tables.upkeep import TableUpkeep
from logicalrep.pipeline.tables.writer import TableWriter
from logicalrep.transactions.table_names import TableName, table_name
from logicalrep_runtime.scalars import Lsn


class TableManager:
    """All tables of a destination, for the loop's thread; other threads call only `write`, one thread per table."""

    def __init__(
        self,
        context: RunContext,
        states: States,
        catalog: Catalog,
        loader: LoadQueue,
        guard: Guard,
        pool: ThreadPoolExecutor,
    ) -> None:
        self._last_state = states.last
        self._last_folders = {table_name(text): state.folder for text, state in states.last.tables.items()}
        self._settings = context.settings
        self._observer = context.observer
        self._catalog = catalog
        self._loader = loader
        self._writer = TableWriter(context, catalog)
        self.buffers = TableBuffers(context, catalog, self._writer, states.check)
        self._guard = guard
        self._patience, self._pool = context.patience, pool
        self._stops = TableStops(context, self._writer, self.buffers)
        limiter = ReloadLimiter(context.storage)
        self.loads = LoadCoordinator(context, loader, self.buffers, guard, self._stops, limiter, pool)
        self._failures = TableFailures(context, self.loads, self._stops, catalog)
        pending_loads = ChangeBuffer(context.storage).pending_loads()
        self._openings = Openings(
            context, self._last_state, guard, self._writer, self.buffers, self.loads, pending_loads
        )
        self._differences = Differences(context, catalog, self._writer, self.loads, self._failures)
        self._unproven = UnprovenChanges(context, catalog)
        self._upkeep = TableUpkeep(context, self._writer, self._failures, pool, self._stored_tables)
        self.registrations = Registrations(context)
        self._tables: dict[TableName, Table] = {}
        self._by_oid: dict[int, Table] = {}
        # The names that some refresh of this process did not have: the server did not send all changes of such tables.
        self._unpublished: set[TableName] = set()

    # States

    def states(self, lsn: Lsn) -> dict[str, TableState]:
        """Return each table's state for a checkpoint, by name; following tables have all commits up to `lsn`."""
        progress, timeline = self._loader.progress(), self._writer.timeline
        return {str(name): table.state(lsn, timeline, progress.get(name)) for name, table in self._tables.items()}

    @property
    def are_up_to_date(self) -> bool:
        """Whether each table is up to date, or cannot be without an operator or a later load, as `behind` lists."""
        return all(table.is_up_to_date or table.behind_reason is not None for table in self._tables.values())

    def is_description_due(self, lsn: Lsn) -> bool:
        """Return whether a table has a next description that is valid from an LSN on that is at or before `lsn`."""
        return any(
            phase.next_description is not None and phase.next_description[1] <= lsn for _, phase in self._following()
        )

    @property
    def behind(self) -> dict[TableName, str]:
        """The tables that are stopped or postponed, with the reason."""
        return {table.name: table.behind_reason for table in self._tables.values() if table.behind_reason is not None}

    def follow(self, server_tables: Mapping[TableName, ServerTable], timeline: int, position: Lsn) -> None:
        """Bring the tables in line with a catalog refresh: open new tables, move renamed tables, let go of
        unpublished tables, and compare each table with its copy.

        Args:
            server_tables: the published tables at the refresh.
            timeline: the server's timeline; 0 before the first session.
            position: an LSN; every commit before it is applied or buffered.
        """
        self._writer.timeline = timeline
        names = {server_table.oid: name for name, server_table in server_tables.items()}
        self._patience.run(lambda: self._guard.check_partitions(names, self._catalog.query_partitions))
        self._rename(names)
        for name, folder in self._last_folders.items():
            # A table that was unpublished before the start may be published again later.
            if name not in server_tables:
                self._unpublished.add(name)
                self._openings.remove_pending(folder)
        for name in self._tables.keys() - server_tables.keys():
            self._unpublish(self._tables.pop(name))
            self._warn(f"{name} is no longer published: its stored rows stay as they are")
        self._learn_numbers(server_tables)
        self._open(
            [
                self._add_table(name, server_table.oid)
                for name, server_table in server_tables.items()
                if name not in self._tables
            ]
        )
        # Built anew, as tables may have exchanged their names.
        self._by_oid = {server_table.oid: self._tables[name] for name, server_table in server_tables.items()}
        for name, server_table in server_tables.items():
            table = self._tables[name]
            is_another, table.oid = table.oid != server_table.oid, server_table.oid
            take = partial(self._differences.take, table, server_table, position, is_another=is_another)
            self._failures.run(table, take)

    def _warn(self, text: str) -> None:
        self._observer.on_event(WarningIssued(text))

    def _unpublish(self, table: Table) -> None:
        table.end_work()
        pending = table.pending
        table.move(Unpublished("it is no longer published"))
        self._unpublished.add(table.name)
        if pending is not None:
            self.buffers.remove(table.folder)

    def _learn_numbers(self, server_tables: Mapping[TableName, ServerTable]) -> None:
        """Store the attribute numbers of masked and omitted columns, as another column may get such a name later."""
        for name, server_table in server_tables.items():
            table = self._tables.get(name)
            if table is not None and table.is_requested:
                self._guard.forget_numbers(server_table.oid)
            settings = self._settings.of(name)
            numbers = {column: number for number, column in server_table.catalog_table.table.protected}
            self._patience.run(partial(self._guard.learn_numbers, server_table.oid, settings, numbers))

    def _rename(self, names: Mapping[int, TableName]) -> None:
        """Copy the stored tables of renamed tables, which keep their OID, to the folders of the new names."""
        if not self._tables:
            # A table that was renamed before the start is opened under its old name, and then moved.
            stored_oids = [(table_name(text), state.oid) for text, state in self._last_state.tables.items()]
            self._open(
                [
                    self._add_table(name, oid)
                    for name, oid in stored_oids
                    if oid is not None and names.get(oid, name) != name
                ]
            )
        tables = dict(self._tables)
        moved = [
            (table, phase, [Copied.of(stored) for stored in phase.copy.stored_tables])
            for table, phase in self._following()
            if names.get(table.oid, table.name) != table.name
        ]
        # Two tables may have exchanged their names: everything is read before anything is written.
        for table, _, _ in moved:
            del self._tables[table.name]
            self._unpublished.add(table.name)
        for table, phase, copied in moved:
            name = names[table.oid]
            displaced = tables.get(name)
            self._tables[name] = renamed = replace(table, name=name, folder=self._folder(name))
            if displaced is not None:
                renamed.folder = displaced.folder
                if all(displaced is not moved_table for moved_table, _, _ in moved):
                    self._unpublish(displaced)
            self._openings.remove_pending(renamed.folder)
            renamed.update(replace(phase, copy=self._writer.move(renamed, copied, phase.copy.application)))
            self._warn(
                f"{table.name} was renamed to {name}: replication continues in {renamed.folder}; {table.folder} is no "
                "longer updated"
            )

    def _folder(self, name: TableName) -> str:
        return table_folder(name, [table.folder for table in self._tables.values()])

    def _add_table(self, name: TableName, oid: int) -> Table:
        state = self._last_state.tables.get(str(name))
        table = Table(name, self._folder(name) if state is None else state.folder, oid)
        table.committed = None if state is None else state.commit_timestamp
        table.unfit = Counter() if state is None else Counter(state.unrepresentable)
        self._tables[name] = table
        return table

    def _open(self, tables: Sequence[Table]) -> None:
        """Open tables in parallel, as each needs several requests to the store; then resume or load each."""
        opened = [self._pool.submit(self._openings.open, table) for table in tables]
        for table, future in zip(tables, opened, strict=True):
            self._failures.run(table, partial(self._resume, table, future))

    def _resume(self, table: Table, opened: Future[Opened | None]) -> None:
        self._openings.resume(table, opened.result(), was_unpublished=table.name in self._unpublished)

    # Changes

    def take_ready(self, received: Mapping[int, TableChanges]) -> list[Ready]:
        """Return the changes, received or waiting, that can be written now; the others wait in their tables.

        A table's changes wait from a Relation message until the catalog has the transaction of the message, as only the
        catalog proves which columns the message lists. `received` has the changes by OID.
        """
        received = with_rerouted_relations(received, self._tables.values())
        ready: list[Ready] = []
        unproven: list[tuple[Table, Following, Unproven]] = []
        waiting = [table.oid for table in self._tables.values() if table.unproven is not None]
        for oid in dict.fromkeys([*waiting, *received]):
            table, changes = self._by_oid.get(oid), received.get(oid, TableChanges())
            if table is None:
                if changes.batches:
                    # A new table: its load begins after these commits, and includes their rows.
                    self._catalog.refresh_soon()
                continue
            phase = table.phase
            if isinstance(phase, Following) and phase.unproven is not None:
                changes = together([phase.unproven.changes, changes])
                unproven.append((table, phase, replace(phase.unproven, changes=changes)))
                table.update(replace(phase, unproven=None))
            elif isinstance(phase, Following) and changes.relations:
                unproven.append((table, phase, Unproven(changes, has_new_labels=False)))
            elif table.takes_changes:
                ready.append(Ready(table, changes, None))
        return [*ready, *self._unproven.take_proven(unproven)] if unproven else ready

    @property
    def waiting_bytes(self) -> int:
        """The memory of the changes that wait for the catalog, in bytes."""
        return sum(table.unproven.changes.nbytes for table in self._tables.values() if table.unproven is not None)

    def written_up_to(self, end: Lsn) -> Lsn:
        """Return the LSN of the first commit that waits, else `end`; all earlier commits are applied or buffered."""
        return first_unproven(self._tables.values(), end)

    def write(self, ready: Ready, end: Lsn) -> bool:
        """Apply changes of commits before `end` if the table follows, else buffer them; return False if they must wait.

        Called in a thread of the pool; `settle` takes the result. Raises the errors of `TableWriter.apply`.
        """
        table, phase = ready.table, ready.table.phase
        if not isinstance(phase, Following):
            self._buffer(ready, end)
            return True
        return self._writer.apply(
            table, phase.copy, self._masked(ready), end, ready.catalog_table, has_all=ready.has_all
        )

    def _buffer(self, ready: Ready, end: Lsn) -> None:
        self.buffers.append(ready.table, self._masked(ready), end)

    def _masked(self, ready: Ready) -> TableChanges:
        """Return a table's changes with its masks applied: replicate writes no others, not even to a change buffer."""
        table = ready.table
        settings, columns = self._settings.of(table.name), table.columns
        copy = table.copy
        if copy is not None and copy.is_whole_after(table.pending):
            # The copy may mask less than the operator's settings: changes that would follow it are refused.
            refuse_other_masks(copy.stored.table.settings, settings)
            settings, columns = copy.stored.table.settings, copy.stored.table.sent_names
        masking = Masking(settings, columns, self._settings.mask_key)
        return replace(ready.changes, batches=masking.masked(ready.changes.batches))

    def settle(self, ready: Ready, end: Lsn, future: Future[bool]) -> int:
        """Wait for `write`, and reload or stop the table after an error; return the number of changes that are written.

        No change is lost when the slot advances: it is written, it waits, or the table's next copy must contain it.
        """
        table = ready.table
        is_written = self._failures.run(table, partial(self._result, ready, end, future), end=end)
        phase = table.phase
        if is_written is False and isinstance(phase, Following):
            table.update(replace(phase, unproven=Unproven(ready.changes, has_new_labels=True)))
        return ready.changes.num_rows if is_written else 0

    def _result(self, ready: Ready, end: Lsn, future: Future[bool]) -> bool:
        """Return the result of `write`. Buffer changes that the stored table refused, or whose rows it lacks."""
        try:
            return future.result()
        except (MissingRows, RefusedCommit):
            self._buffer(ready, end)
            raise

    def tidy(self, *, is_busy: bool) -> bool:
        """Do a part of the tables' merges and upkeep; return whether more may be due at once."""
        return self._upkeep.tidy(is_busy=is_busy)

    def _stored_tables(self) -> list[tuple[Table, StoredTable]]:
        return [(table, stored) for table, phase in self._following() for stored in phase.copy.stored_tables]

    def _following(self) -> Iterator[tuple[Table, Following]]:
        return ((table, table.phase) for table in self._tables.values() if isinstance(table.phase, Following))

    def finish(self) -> None:
        """Do the merges and the upkeep that are due before a run with `once` ends."""
        self._upkeep.finish()

    # Loads

    def load_named(self, names: Sequence[TableName]) -> None:
        self.loads.load_named(self._tables, names)

    def load_part(self, part: RequestedPart) -> None:
        self.loads.load_part(self._tables.get(part.table), part)

    def skip(self, name: TableName, lsn: Lsn) -> bool:
        """Skip a table's refused commit; return whether the request is done. While the table retries, it is not."""
        table = self._tables.get(name)
        phase = None if table is None else table.phase
        held = None if phase is None else phase.pending
        if table is None or not isinstance(held, HeldCommit) or held.refused != str(lsn):
            self._warn(f"{name} is not stopped at the commit {lsn}: the request to skip it is ignored")
            return True
        if not isinstance(phase, Held):
            return False
        skipped = self._failures.run(table, partial(self.buffers.skip, table, phase.copy, lsn))
        if skipped is None and table.phase is phase:
            self._warn(
                f"the commit {lsn} of {name} was not skipped, because a companion table already has it: run logicalrep "
                f"resync {name} with the same --dsn and --to"
            )
        if skipped is None:
            return True
        self._warn(
            f"the commit {lsn} of {name} was skipped, as requested: the table lacks its {skipped.changes} changes"
        )
        pending, apply = self.buffers.release_hold(table), partial(self.buffers.apply, table, phase.copy)
        self.loads.catch_up(table, f"the commit {lsn} is skipped", phase.copy, pending, apply)
        return True

    @property
    def waits_for_changes(self) -> bool:
        """Whether a finished load waits until the loop has taken all changes before its snapshot."""
        return self._loader.waits_for_changes

    def step(self, taken: Lsn) -> None:
        """Take the results of other threads; every commit before `taken` is applied or buffered."""
        self.loads.step(self._tables, taken)
        for table in self._tables.values():
            if isinstance(table.phase, CatchingUp) and table.phase.work.is_done:
                self._failures.run(table, partial(self.loads.finish, table, table.phase.work))
        self._stops.expire(self._tables.values())
        self.registrations.request(stored for _, stored in self._stored_tables())
