"""The replicated tables: which follow, which load, which are stopped, and how far each is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from logicalrep.arrow.feed.rare_rows import sent_relations
from logicalrep.arrow.row_form import FEED_SCHEMA
from logicalrep.pipeline.apply.renaming import Copied
from logicalrep.pipeline.catalog.catalog import Catalog, ServerTable
from logicalrep.pipeline.catalog.definitions import CatalogTable
from logicalrep.pipeline.catalog.proof import latest, reason_to_load
from logicalrep.pipeline.errors import NeedsResync, RefusedCommit
from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.load.change_buffer import ASKED_FOR, PendingLoad
from logicalrep.pipeline.load.load_counts import LoadedTooOftenError
from logicalrep.pipeline.load.loader import Loader
from logicalrep.pipeline.load.loading import LoadedTable, WantedLoad
from logicalrep.pipeline.load.tries import MOST_TRIES, Tries
from logicalrep.pipeline.masks.guard import Guard
from logicalrep.pipeline.masks.masked_rows import Masking
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.spec.names import table_folder
from logicalrep.pipeline.state.state import State, TableState
from logicalrep.pipeline.storage.storage import DamagedError
from logicalrep.pipeline.table import Table
from logicalrep.pipeline.table_errors import is_of_one_table, log_unforeseen, reason_of
from logicalrep.pipeline.table_writer import NotProvenYetError, TableWriter
from logicalrep.transactions.table_names import TableName, table_names
from logicalrep_runtime.scalars import Lsn

_Result = TypeVar("_Result")

_NEW, _OTHER_SETTINGS = "new table", "its settings changed"
"""The reasons of loads that are not counted, besides `ASKED_FOR`."""
_BEHIND = 1.0
"""The seconds for which changes wait for the catalog until that is said."""
_SAY_AGAIN = 60.0
"""The seconds until it is said again."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A table's rows that can be written."""

    table: Table
    rows: pa.Table
    """Rows of the change feed, also those of Relation messages."""
    now: CatalogTable | None
    """The table as the catalog describes it, in a state that has the transactions of the messages; None without any."""
    has_all: bool = False
    """Whether that state has the transactions of all rows."""


class TableManager:
    """All tables of a destination. Other threads may call only `write`, for one table by one thread at a time."""

    def __init__(
        self,
        context: RunContext,
        before: State,
        catalog: Catalog,
        loader: Loader,
        writer: TableWriter,
        guard: Guard,
        pool: ThreadPoolExecutor,
    ) -> None:
        """Take the parts of the run, how far the tables were at the start, and what reads and writes the tables."""
        self._before = before
        self._settings = context.settings
        self._observer = context.observer
        self._catalog = catalog
        self._loader = loader
        self._writer = writer
        self._guard = guard
        self._patience = context.patience
        self._pool = pool
        self._pending_loads = writer.pending_loads()
        self._tables: dict[TableName, Table] = {}
        self._by_oid: dict[int, Table] = {}
        # The tables whose copies are being committed, or whose buffered changes are being applied.
        self._catching_up: list[tuple[Table, Future[None]]] = []
        self._tries: dict[TableName, Tries] = {}
        # The tables that have left the publication since the start, whose changes were not sent.
        self._left: set[TableName] = set()
        # The columns of each table's last Relation message, which a session of the slot sends once.
        self._sent: dict[int, tuple[str, ...]] = {}
        self._behind_since: float | None = None
        self._needed: dict[str, list[TableName]] = {}

    # The tables that there are

    def of(self, oid: int) -> Table | None:
        """Return the table with an OID; None for one that is not replicated, or not yet."""
        return self._by_oid.get(oid)

    def states(self, lsn: Lsn) -> dict[str, TableState]:
        """Return how far each table is, given that those that follow have all commits up to an LSN."""
        progress, timeline = self._loader.progress(), self._writer.timeline
        return {str(name): table.state(lsn, timeline, progress.get(name)) for name, table in self._tables.items()}

    @property
    def are_up_to_date(self) -> bool:
        """Whether no table loads, or may have to."""
        return all(
            (table.pending_load is None and table.pending is None and table.unproven is None)
            or table.stopped is not None
            for table in self._tables.values()
        )

    def wait_for(self, lsn: Lsn) -> bool:
        """Return whether a table waits for the stream up to an LSN to explain how it differs."""
        return any(table.pending is not None and table.pending[1] <= lsn for table in self._tables.values())

    @property
    def stopped(self) -> dict[TableName, str]:
        """The tables that are stopped, with the reasons."""
        return {table.name: table.stopped for table in self._tables.values() if table.stopped is not None}

    def follow(self, found: Mapping[TableName, ServerTable], timeline: int, position: Lsn) -> None:
        """Take the published tables, and the server's timeline: load what is new, or differs from its copy.

        Args:
            found: the tables by their names.
            timeline: the server's timeline.
            position: every commit before it has been applied.
        """
        self._writer.timeline = timeline
        names = {now.oid: name for name, now in found.items()}
        self._patience.run(lambda: self._guard.check_partitions(names, self._catalog.query_partitions))
        self._rename(names)
        # Tables that left the publication before the start, and come back later, are among them.
        self._left |= {name for text in self._before.tables for name in table_names(text)} - found.keys()
        for name in self._tables.keys() - found.keys():
            table = self._tables.pop(name)
            self._left.add(name)
            self._by_oid.pop(table.oid, None)
            self._observer.on_warning(f"{name} is not published any more: its rows stay as they are")
        self._learn_numbers(found)
        self._open([self._add_table(name, now.oid) for name, now in found.items() if name not in self._tables])
        for name, now in found.items():
            known = self._tables[name]
            is_another = known.oid != now.oid
            if is_another:
                self._by_oid.pop(known.oid, None)
                known.oid = now.oid
            self._by_oid[now.oid] = known
            self._fit(known, partial(self._refresh, known, now, position, is_another=is_another))

    def _refresh(self, table: Table, now: ServerTable, position: Lsn, *, is_another: bool) -> None:
        """Take what a table is on the server now."""
        if is_another:
            self.load(table, "another table of this name")
        if table.application is not None:
            self._writer.adopt(table, now.head)
        if table.pending_load is None and table.stopped is None:
            self._compare(table, now, position)
        described = now.now.table
        is_as_before = described.has_protected(self._settings.of(table.name), self._numbers(table))
        table.columns = described.sent_names if is_as_before else ()
        table.has_whole_old = described.has_whole_old

    def _learn_numbers(self, found: Mapping[TableName, ServerTable]) -> None:
        """Store which columns are the masked and left-out ones: another one may have such a name later."""
        for name, now in found.items():
            known = self._tables.get(name)
            if known is not None and known.is_asked_for:
                self._guard.forget_numbers(now.oid)
            settings = self._settings.of(name)
            numbers = {column: number for number, column in now.now.table.protected}
            self._patience.run(partial(self._guard.learn_numbers, now.oid, settings, numbers))

    def _numbers(self, table: Table) -> Mapping[str, int]:
        """Return the numbers that a table's masked and left-out columns have to have, as far as they are known."""
        return {} if table.is_asked_for else {**self._guard.numbers(table.oid), **table.numbers}

    def _rename(self, names: Mapping[int, TableName]) -> None:
        """Go on with renamed tables under the names that they have now, by OID, with the files that they have."""
        if not self._tables:
            # Tables that were renamed before the start.
            known = [(name, state.oid) for text, state in self._before.tables.items() for name in table_names(text)]
            self._open(
                [self._add_table(name, oid) for name, oid in known if oid is not None and names.get(oid, name) != name]
            )
        before = dict(self._tables)
        moved = [
            table for table in before.values() if names.get(table.oid, table.name) != table.name and table.can_move
        ]
        # Two tables may have exchanged their names: everything is read before anything is written.
        copies = [[Copied.of(log) for log in table.logs] for table in moved]
        for table in moved:
            del self._tables[table.name]
            self._left.add(table.name)
        for table, copied in zip(moved, copies, strict=True):
            name = names[table.oid]
            there = before.get(name)
            self._tables[name] = later = replace(table, name=name, folder=self._folder(name))
            if there is not None:
                later.folder = there.folder
                self._by_oid.pop(there.oid, None)
            self._writer.move(later, copied)
            self._observer.on_warning(
                f"{table.name} is {name} now: {later.folder} goes on, {table.folder} stays as it is"
            )

    def _folder(self, name: TableName) -> str:
        return table_folder(name, [table.folder for table in self._tables.values()])

    def _compare(self, table: Table, found: ServerTable, position: Lsn) -> None:
        """Load a table again if the catalog demands it; else its copy is brought to the description of now in time."""
        assert table.log is not None
        before = table.log.table
        if before.settings != self._settings.of(table.name):
            self.load(table, _OTHER_SETTINGS)
            return
        reason = reason_to_load(before, found.now)
        if reason is None:
            has_unsent = self._catalog.has_unsent_rows(before, found.now.table)
            if has_unsent is None:
                return
            reason = "a partition with rows was attached" if has_unsent else None
        if reason is not None:
            self.load(table, reason)
        elif latest(before, found.now) == before:
            table.pending = None
        elif table.pending is None or table.pending[0] != found.now:
            # Rows from before the change may still come.
            table.pending = found.now, found.head
        elif position >= table.pending[1]:
            table.pending = None
            self._fit(table, lambda: self._writer.describe(table, found.now))

    def _add_table(self, name: TableName, oid: int) -> Table:
        before = self._before.tables.get(str(name))
        table = Table(name, self._folder(name) if before is None else before.folder, oid)
        table.committed = None if before is None else before.commit_timestamp
        self._tables[name] = table
        return table

    def _open(self, tables: Sequence[Table]) -> None:
        """Open tables side by side, as each is several requests to a store, and load those that are not there."""
        opened = [self._pool.submit(self._writer.open, table, self._known_version(table)) for table in tables]
        for table, future in zip(tables, opened, strict=True):
            self._fit(table, partial(self._go_on, table, future))

    def _known_version(self, table: Table) -> int:
        before = self._before.tables.get(str(table.name))
        return -1 if before is None or before.version is None else before.version

    def _go_on(self, table: Table, opened: Future[None]) -> None:
        """Go on with a table as it was left, once it is opened, or load it."""
        opened.result()
        before = self._before.tables.get(str(table.name))
        table.pending_load = self._pending_loads.get(table.folder)
        if table.is_asked_for:
            self._writer.forget_loads(table)
        known_companions = {} if before is None else before.companions
        has_companions = table.log is not None and self._writer.open_companions(table, known_companions)
        is_held = table.pending_load is not None and table.pending_load.refused is not None
        is_stopped = before is not None and before.state == "stopped" and not is_held
        if table.log is None:
            self.load(table, ASKED_FOR if table.is_asked_for else _NEW)
        elif table.is_whole and table.is_skipped_in_part:
            self.load(table, "a commit was skipped in a part of its tables only")
        elif is_held and (before is None or before.oid != table.oid or table.name in self._left):
            self.load(table, "another table of this name, or published again")
        elif is_held and table.changed_by_others is not None:
            self.load(table, table.changed_by_others)
        elif is_held and table.log.table.settings != self._settings.of(table.name):
            self.load(table, _OTHER_SETTINGS)
        elif before is not None and is_stopped and (table.pending_load is None or table.is_whole):
            # Its changes since then are stored nowhere, so that it is loaded again; other settings may let it load.
            table.stopped = before.error
            if table.log.table.settings != self._settings.of(table.name):
                self.load(table, _OTHER_SETTINGS)
        elif table.pending_load is not None and table.is_whole:
            if before is None or table.name in self._left:
                # What came after its buffered changes was not taken.
                self.load(table, "published again")
            else:
                self._catching_up.append((table, self._pool.submit(self._writer.apply_buffer, table)))
        elif table.pending_load is not None:
            if self._guard.has_other_masks(table.name):
                self._writer.clear_buffer(table)
            self._begin(table)
        elif table.changed_by_others is not None:
            self.load(table, table.changed_by_others)
        elif table.log.table.relation.relation_id != table.oid:
            self.load(table, "another table of this name")
        elif before is None or table.name in self._left:
            self.load(table, "published again")
        elif not has_companions:
            self.load(table, "its history or its changes are not there")

    # Changes

    def take_ready(self, batches: Mapping[int, Sequence[pa.RecordBatch]]) -> list[Ready]:
        """Return the rows that can be written: these, and those that waited.

        Rows behind a Relation message wait until the catalog has the transactions of the table's messages: only then it
        tells which columns they have. Other tables do not wait for them.

        Args:
            batches: rows of the change feed by the tables' OIDs, whole transactions.
        """
        found: list[Ready] = []
        asked: list[tuple[Table, pa.Table]] = []
        waiting = [table.oid for table in self._tables.values() if table.unproven is not None]
        for oid in dict.fromkeys([*waiting, *batches]):
            table, rows = self._by_oid.get(oid), pa.Table.from_batches(batches.get(oid, ()), FEED_SCHEMA)
            are_relations = pc.equal(rows["op"], "relation")
            if table is None or table.stopped is not None:
                self._sent |= {relation.relation_id: relation.names for relation in sent_relations(rows)[0]}
            if table is None:
                if not pc.all(are_relations).as_py():
                    # A new table: its load begins after these commits, and so has their rows.
                    self._catalog.refresh_soon()
                continue
            before, table.unproven = table.unproven, None
            if not table.takes_changes:
                continue
            if before is not None:
                rows = pa.concat_tables([before, rows])
            if table.pending_load is None and (before is not None or pc.any(are_relations).as_py()):
                asked.append((table, rows))
            else:
                found.append(Ready(table, rows, None))
        return [*found, *self._take_proven(asked)] if asked else found

    def _take_proven(self, asked: Sequence[tuple[Table, pa.Table]]) -> list[Ready]:
        """Return those tables' rows of whose transactions the catalog has all; the others wait."""
        refresh, found, behind = self._catalog.refresh([table.oid for table, _ in asked]), [], []
        for table, rows in asked:
            relations, _ = sent_relations(rows)
            now = refresh.tables.get(table.oid)
            has_all = all(map(refresh.visibility.sees, rows["xid"].unique().to_pylist()))
            has_messages = all(refresh.visibility.sees(relation.xid) for relation in relations)
            if not has_all and (table.has_new_labels or not has_messages):
                table.unproven = rows
                behind.append(str(table.name))
            elif now is not None:
                table.has_new_labels = False
                found.append(Ready(table, rows, now, has_all))
            else:
                self._observer.on_warning(
                    f"{table.name} was dropped before the columns of its last changes could be told: its rows stay as "
                    "they were before them"
                )
        moment = time.monotonic()
        if not behind:
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = moment
        elif moment - self._behind_since > _BEHIND:
            self._behind_since = moment + _SAY_AGAIN
            self._observer.on_waiting(
                f"changes of {', '.join(behind)} wait: the server has sent them, but its catalog does not have their "
                "transactions yet, as with synchronous replication whose standby is away"
            )
        return found

    @property
    def waiting_bytes(self) -> int:
        """The bytes of changes that wait for the catalog."""
        return sum(table.unproven.nbytes for table in self._tables.values() if table.unproven is not None)

    def written_up_to(self, end: Lsn) -> Lsn:
        """Return the LSN before which all commits are written: that of the first that waits, else `end`."""
        waiting = [table.unproven for table in self._tables.values() if table.unproven is not None]
        firsts = [pc.min(rows["commit_lsn"]).as_py() for rows in waiting]
        return Lsn(min([end, *firsts]))

    def write(self, ready: Ready, end: Lsn) -> int:
        """Apply a table's rows, all those of commits before `end`, or keep them while it loads; return their number."""
        table = ready.table
        relations, changes = sent_relations(ready.rows)
        before = self._sent.get(table.oid)
        sent = [*([] if before is None else [before]), *(relation.names for relation in relations)]
        if relations:
            self._sent[table.oid] = sent[-1]
        try:
            changes = self._masked(table, changes, sent)
        except NeedsResync:
            table.least = end
            raise
        rows = changes
        if relations:
            messages = ready.rows.filter(pc.equal(ready.rows["op"], "relation"))
            rows = pa.concat_tables([messages, changes])
        if table.pending_load is None:
            try:
                self._writer.apply(table, rows, end, ready.now, has_all=ready.has_all)
            except RefusedCommit:
                # They are buffered before the slot moves on.
                self._writer.keep(table, rows, end)
                raise
        else:
            self._writer.keep(table, rows, end)
        return int(changes.num_rows)

    def _masked(self, table: Table, rows: pa.Table, sent: Sequence[tuple[str, ...]]) -> pa.Table:
        """Return rows without what is masked or left out: nothing else may be written. Raises NeedsResync.

        `sent` are the columns of the Relation messages that the rows follow, in the order of their numbers.
        """
        settings, columns, has_whole_old = self._settings.of(table.name), table.columns, table.has_whole_old
        if table.is_whole:
            assert table.log is not None
            copied = table.log.table
            settings, columns, has_whole_old = copied.settings, copied.sent_names, copied.has_whole_old
        return Masking(settings, columns, has_whole_old, self._settings.mask_key).rows(rows, sent)

    def settle(self, ready: Ready, future: Future[int]) -> int:
        """Return the result of `write`; a table whose rows are not proven to fit it is loaded again."""

        def written() -> int:
            try:
                return future.result()
            except NotProvenYetError:
                ready.table.unproven, ready.table.has_new_labels = ready.rows, True
                return 0

        return self._fit(ready.table, written) or 0

    def _fit(self, table: Table, action: Callable[[], _Result]) -> _Result | None:
        """Return an action's result; load the table again if that shows that it does not fit its changes any more."""
        try:
            return action()
        except NeedsResync as error:
            self.load(table, error.description)
        except DamagedError as error:
            self._observer.on_error("destination")
            self.load(table, error.description)
        except Exception as error:
            if not is_of_one_table(error):
                raise
            self._stop_after(table, error)
        return None

    def _stop_after(self, table: Table, error: Exception) -> None:
        """Stop a table for an error of its own, unless another definition explains that: it is loaded."""
        reason = None
        if table.log is not None and table.stopped is None:
            reason = self._query_change(table, table.log)
        if reason is not None:
            self.load(table, reason)
        else:
            log_unforeseen(table.name, error)
            self._observer.on_error("changes")
            if isinstance(error, RefusedCommit):
                self._writer.hold(table, error.lsn)
            elif table.pending_load is not None and table.pending_load.refused is not None:
                # Another error keeps it from its buffered changes now.
                self._writer.hold_no_more(table)
            self._stop(table, reason_of(error))

    def _query_change(self, table: Table, log: StoredTable) -> str | None:
        """Return what the server has changed of a table since its copy; None for nothing, or if that cannot be told."""
        try:
            now = self._catalog.refresh([table.oid]).tables.get(table.oid)
        except Exception as error:
            if not is_of_one_table(error):
                raise
            return None
        if now is None or now.table.sent_columns != log.table.sent_columns:
            return "its columns changed"
        is_same = (now.table.key, now.table.has_whole_old) == (log.table.key, log.table.has_whole_old)
        return None if is_same else "its replica identity changed"

    def _stop(self, table: Table, reason: str) -> None:
        """Stop a table alone. Its changes are buffered from a refused commit on, else going on means a load."""
        said, pending_load = table.stopped, table.pending_load
        resync = f"once that is mended, run logicalrep resync {table.name} with the same --dsn and --to"
        if pending_load is not None and pending_load.refused is not None:
            table.stopped = (
                f"{reason}; its changes from that commit on are buffered, for {self._settings.keep:g} hours: {resync}, "
                f"which loads it again, or logicalrep skip {table.name} {pending_load.refused}, which leaves out what "
                "that "
                "commit changes of it"
            )
        else:
            table.stopped = f"{reason}; its changes are not buffered: {resync}, which loads it again"
        if table.stopped == said:
            return
        self._observer.on_table_stopped(table.name, table.stopped)
        self._writer.write_stopped(table)

    def tidy(self, *, is_busy: bool) -> None:
        """Do what is due for one table's upkeep; while there are changes to apply, only what cannot wait."""
        for table in self._tables.values():
            for log in table.logs if table.has_upkeep else []:
                if (log.is_upkeep_urgent if is_busy else log.is_upkeep_due)(self._settings.keep):
                    self._maintain(table, log)
                    return

    def finish(self) -> None:
        """Do the upkeep that another run would find late: commands that end after each batch do it too."""
        for table in self._tables.values():
            for log in table.logs if table.has_upkeep else []:
                if log.opens_slowly:
                    self._maintain(table, log)

    def _maintain(self, table: Table, log: StoredTable) -> None:
        table.has_failed_upkeep = True
        self._fit(table, partial(self._writer.maintain, log))
        # A table that is stopped would fail again and again.
        table.has_failed_upkeep = table.stopped is not None

    # Loads

    def load(self, table: Table, reason: str) -> None:
        """Load a table, anew if it is there; until its rows are whole, readers have the old ones."""
        for item in [each for each in self._catching_up if each[0] is table]:
            # The pending load has to name the copy that is being committed.
            table.is_given_up = True
            item[1].exception()
            table.is_given_up = False
            self._catching_up.remove(item)
        table.pending = table.unproven = None
        table.has_new_labels = False
        if reason in (ASKED_FOR, _OTHER_SETTINGS):
            self._writer.forget_loads(table)
        elif reason != _NEW:
            try:
                self._writer.count_load(table, reason)
            except LoadedTooOftenError as error:
                self._stop(table, str(error))
                return
        has_held = table.pending_load is None or table.pending_load.refused is not None or table.stopped is not None
        table.stopped = None
        self._needed.setdefault(reason, []).append(table.name)
        self._writer.save_pending_load(table, PendingLoad(table.folder, table.load, reason))
        if has_held:
            # What was buffered while it was stopped, or before: the load has it.
            self._writer.clear_buffer(table)
        table.has_failed_upkeep = False
        self._tries.pop(table.name, None)
        self._begin(table)

    def say_loads(self) -> None:
        """Say which loads are needed since the last call: one line for all tables of one reason."""
        needed, self._needed = self._needed, {}
        for reason, names in needed.items():
            self._observer.on_loads_needed(names, reason)

    def _begin(self, table: Table) -> None:
        """Have a table loaded whose load is pending, if that writes nothing in clear that must not be."""
        reason = self._guard.reason(table.oid, table.name)
        if reason is not None:
            self._stop(table, reason)
        else:
            self._loader.add({table.name: WantedLoad(table.folder, table.oid, numbers=self._numbers(table))})

    def load_named(self, names: Sequence[TableName]) -> None:
        """Load tables again, as somebody asked for it."""
        for name in names:
            table = self._tables.get(name)
            if table is not None:
                self.load(table, ASKED_FOR)

    def skip(self, name: TableName, lsn: Lsn) -> bool:
        """Leave a commit out of a table that is stopped at it, and go on with the changes after it.

        Returns False if it cannot be told yet whether it is stopped at it, as it tries its buffered changes again.
        """
        table = self._tables.get(name)
        pending_load = None if table is None else table.pending_load
        if table is None or pending_load is None or pending_load.refused != str(lsn):
            self._observer.on_warning(f"{name} is not stopped at the commit {lsn}, which is not skipped")
            return True
        if table.stopped is None:
            return False
        skipped = self._fit(table, partial(self._writer.skip, table, lsn))
        if skipped is None and table.pending_load is pending_load:
            self._observer.on_warning(
                f"the commit {lsn} of {name} is not skipped, as a companion table of it has it already: run logicalrep "
                f"resync {name} with the same --dsn and --to"
            )
        if skipped is None:
            return True
        self._observer.on_warning(
            f"{name} lacks the {skipped.changes} changes of the commit {lsn} from now on, which was skipped, as "
            "somebody asked for it"
        )
        self._writer.hold_no_more(table)
        table.stopped = None
        self._catching_up.append((table, self._pool.submit(self._writer.apply_buffer, table)))
        return True

    def _give_up(self) -> None:
        """Keep the changes of tables that have been stopped for too long no more."""
        least = time.time() - self._settings.keep * 3600
        for table in self._tables.values():
            pending_load = table.pending_load
            if (
                table.stopped is not None
                and pending_load is not None
                and pending_load.since is not None
                and pending_load.since < least
            ):
                self._writer.hold_no_more(table)
                self._stop(table, f"the commit {pending_load.refused} was refused {self._settings.keep:g} hours ago")

    def step(self) -> None:
        """Go on with what has ended in other threads: copies, and buffered changes that are applied."""
        for name in [name for name, tries in self._tries.items() if tries.take_due()]:
            if name in self._tables:
                self._begin(self._tables[name])
        for result in self._loader.results():
            table = self._tables.get(result.name)
            if table is None or table.pending_load is None or table.stopped is not None:
                continue
            if isinstance(result, LoadedTable):
                if result.table.relation.relation_id != table.oid:
                    # Another table has this name by now, and is loading.
                    continue
                if result.position < table.least:
                    self._begin(table)
                    continue
                self._tries.pop(table.name, None)
                self._catching_up.append((table, self._pool.submit(self._writer.replace, table, result)))
                continue
            self._observer.on_error("load")
            if result.again and self._tries.setdefault(table.name, Tries()).count_failure(result.reason, result.is_own):
                continue
            tried = f", in {MOST_TRIES} tries one after another" if result.again else ""
            self._stop(table, result.reason + tried)
        for table, future in [item for item in self._catching_up if item[1].done()]:
            self._catching_up.remove((table, future))
            self._finish_catching_up(table, future)
        self._give_up()

    def _finish_catching_up(self, table: Table, future: Future[None]) -> None:
        def caught_up() -> None:
            future.result()
            # No change is buffered while this runs, as this thread takes the batches.
            if not self._writer.apply_rest(table):
                self._catching_up.append((table, self._pool.submit(self._writer.apply_buffer, table)))

        self._fit(table, caught_up)
