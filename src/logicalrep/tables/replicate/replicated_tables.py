"""The replicated tables: which follow, which load, and how far each is."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from logicalrep.tables.apply.applying import NeedsResync, OtherShape, apply
from logicalrep.tables.delta.delta_log import DeltaLog, application_id
from logicalrep.tables.delta.maintenance import CHECKPOINT_EVERY, is_due, maintain, needs_checkpoint
from logicalrep.tables.delta.names import table_folder
from logicalrep.tables.delta.place import DamagedError, Place
from logicalrep.tables.errors import OF_ONE_TABLE
from logicalrep.tables.history.beside import (
    Beside,
    apply_beside,
    opened_beside,
    replaced_beside,
    wanted,
    with_marked,
)
from logicalrep.tables.load.definitions import Definition
from logicalrep.tables.load.loading import Loaded
from logicalrep.tables.replicate.followed import Followed
from logicalrep.tables.replicate.kept import Kept, Mark
from logicalrep.tables.replicate.loader import Loader
from logicalrep.tables.replicate.patience import Patience
from logicalrep.tables.replicate.state import State, StateError, TableState
from logicalrep.tables.replicate.watch import Found, Watch
from logicalrep.tables.report import Report
from logicalrep.tables.schema.renaming import Copied, move
from logicalrep.tables.schema.reshaping import reshape
from logicalrep.tables.schema.shapes import Shape, by_shape
from logicalrep.tables.settings import ReplicateSettings
from logicalrep.tables.table_settings import TableSettings
from logicalrep.tables.tasks import Tasks
from logicalrep.transactions.table_names import TableName, table_names
from logicalrep_runtime.scalars import Lsn

_Result = TypeVar("_Result")

_CANNOT_WAIT = 2
"""The multiple of `CHECKPOINT_EVERY` commits after which upkeep comes before batches."""
_LOAD_AGAIN = 2.0
"""The seconds before a load is tried again."""


class ReplicatedTables:
    """All tables of a place. Only `write` may be called from other threads, for one table by one thread at a time."""

    def __init__(
        self,
        place: Place,
        system_identifier: int,
        settings: ReplicateSettings,
        tasks: Tasks,
        report: Report,
        watch: Watch,
        loader: Loader,
        pool: ThreadPoolExecutor,
        patience: Patience,
    ) -> None:
        """Take the place, the server's system identifier, the settings, and what reads and writes the tables."""
        self._watch = watch
        self._place = place
        self._system = system_identifier
        self._settings = settings
        self._tasks = tasks
        self._report = report
        self._loader = loader
        self._pool = pool
        self._patience = patience
        self._kept = Kept(place)
        self._marks = self._kept.marks()
        self._before = State.read(place)
        self._timeline = 0
        self._tables: dict[TableName, Followed] = {}
        self._by_oid: dict[int, Followed] = {}
        # The tables whose copies are being committed, or whose kept changes are being applied.
        self._catching_up: list[tuple[Followed, Future[None]]] = []
        self._load_again: dict[TableName, float] = {}
        # The tables that have left the publication since the start, whose changes were not sent.
        self._left: set[TableName] = set()

    # What there is

    def of(self, oid: int) -> Followed | None:
        """Return the table with an OID; None for one that is not replicated, or not yet."""
        return self._by_oid.get(oid)

    def states(self, lsn: Lsn) -> dict[str, TableState]:
        """Return how far each table is, given that those that follow have all commits up to an LSN."""
        return {str(table.name): table.state(lsn, self._timeline) for table in self._tables.values()}

    @property
    def are_up_to_date(self) -> bool:
        """Whether no table loads, or may have to."""
        return all(
            (table.mark is None and table.pending is None) or table.stopped is not None
            for table in self._tables.values()
        )

    def wait_for(self, lsn: Lsn) -> bool:
        """Return whether a table waits for the stream up to an LSN to explain how it differs."""
        return any(table.pending is not None and table.pending[1] <= lsn for table in self._tables.values())

    @property
    def stopped(self) -> dict[TableName, str]:
        """The tables that stand still, with the reasons."""
        return {table.name: table.stopped for table in self._tables.values() if table.stopped is not None}

    def follow(self, found: Mapping[TableName, Found], timeline: int, position: Lsn) -> None:
        """Take the published tables, and the server's timeline: load what is new, or differs from its copy.

        Args:
            found: the tables by their names.
            timeline: the server's timeline.
            position: every commit before it has been applied.
        """
        self._timeline = timeline
        self._rename({now.oid: name for name, now in found.items()})
        for name in self._tables.keys() - found.keys():
            table = self._tables.pop(name)
            self._left.add(name)
            self._by_oid.pop(table.oid, None)
            self._report.warning(f"{name} is not published any more: its rows stay as they are")
        for name, now in found.items():
            known = self._tables.get(name)
            if known is None:
                known = self._tables[name] = self._opened(name, now.oid)
            elif known.oid != now.oid:
                self._by_oid.pop(known.oid, None)
                known.oid = now.oid
                self.load(known, "another table of this name")
            self._by_oid[now.oid] = known
            if known.application is not None:
                self._adopt(known)
            if known.mark is None and known.stopped is None:
                self._compare(known, now, position)

    def _rename(self, names: Mapping[int, TableName]) -> None:
        """Go on with renamed tables under the names that they have now, by OID, with the files that they have."""
        if not self._tables:
            # Those that were renamed before the start.
            for text, state in self._before.tables.items():
                (name,) = table_names(text)
                if state.oid is not None and names.get(state.oid, name) != name:
                    self._tables[name] = self._opened(name, state.oid)
        before = dict(self._tables)
        moved = [
            table for table in before.values() if names.get(table.oid, table.name) != table.name and table.can_move
        ]
        # Two tables may have changed names: all is read before anything is written.
        copies = [Copied.of(table.log) for table in moved if table.log is not None]
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
            self._move(later, copied)
            self._report.warning(f"{table.name} is {name} now: {later.folder} goes on, {table.folder} stays as it is")

    def _move(self, table: Followed, copied: Copied) -> None:
        assert table.application is not None
        lsn = copied.log.applied(table.application)
        assert lsn is not None
        table.load = load = secrets.token_hex(8)
        table.application = application = application_id(self._system, self._timeline, load)
        keep = self._settings.keep
        table.log = self._patience.run(lambda: move(copied, table.name, table.folder, application, lsn, load, keep))

    def _folder(self, name: TableName) -> str:
        return table_folder(name, [table.folder for table in self._tables.values()])

    def _compare(self, table: Followed, now: Found, position: Lsn) -> None:
        """Load a table again if it differs from its copy in a way that the stream does not explain."""
        assert table.log is not None
        if table.log.table.settings != self._settings.of(table.name):
            self.load(table, "its settings changed")
            return
        copied = Definition.of(table.log.table)
        if copied == now.definition:
            table.truncates.clear()
            table.pending = None
            return
        different = self._watch.difference(copied, now)
        if different is None:
            self._describe(table, now.definition)
        elif not different.is_rewritten and not different.is_reshaped:
            self.load(table, different.reason)
        elif table.pending is None or table.pending[0] != now.definition:
            # The stream may tell more until then: a truncate, or rows from before other columns.
            table.pending = now.definition, now.head
        elif position >= table.pending[1]:
            table.pending = None
            if different.is_reshaped:
                self._fit(table, lambda: self._evolve(table, None))
            elif self._watch.explains(copied, now.definition, table.truncates):
                self._describe(table, now.definition)
            else:
                self.load(table, different.reason)

    def _describe(self, table: Followed, now: Definition) -> None:
        """Note the files that a table has now."""
        log = table.log
        assert log is not None
        self._patience.run(lambda: log.describe(replace(log.table, files=now.files)))

    def _opened(self, name: TableName, oid: int) -> Followed:
        before = self._before.tables.get(str(name))
        table = Followed(name, self._folder(name) if before is None else before.folder, oid)
        table.log = self._patience.run(lambda: DeltaLog.open(self._place, table.folder))
        table.mark = self._marks.get(table.folder)
        if before is not None and before.state == "stopped" and table.mark is None:
            is_as_before = table.log is None or table.log.table.settings == self._settings.of(name)
            # Other settings may be what helps: `_compare` loads it again.
            table.stopped = before.error if is_as_before else None
        if table.log is None:
            self.load(table, "new table")
            return table
        table.load = table.log.load
        log = table.log
        beside = self._patience.run(lambda: opened_beside(self._place, log))
        table.beside = beside or {}
        table.application = self._application(table.log)
        if table.mark is not None:
            if table.mark.replaces != table.load:
                self._catch_up(table)
            else:
                self._loader.add({name: table.folder})
        elif table.log.table.relation.relation_id != oid:
            self.load(table, "another table of this name")
        elif before is None or name in self._left:
            self.load(table, "published again")
        elif beside is None:
            self.load(table, "its history or its changes are not there")
        return table

    def _application(self, log: DeltaLog) -> str:
        """Return the application id of the table's last commit, which may be of an earlier timeline."""
        for timeline in range(self._timeline, -1, -1):
            application = application_id(self._system, timeline, log.load)
            if log.applied(application) is not None:
                return application
        raise StateError(
            f"{self._place.uri_of(log.folder)} has no commit of the server {self._system}: it is the table of another "
            "server; remove it, or replicate to another place",
            code="OTHER_SERVER",
        )

    def _adopt(self, table: Followed) -> None:
        """Go on under the server's present timeline, which has all that the table has: the walsender checked it."""
        assert table.log is not None
        assert table.load is not None
        assert table.application is not None
        application = application_id(self._system, self._timeline, table.load)
        if application != table.application:
            for log in table.logs:
                lsn = log.applied(self._application(log))
                assert lsn is not None
                log.commit([], [], application, lsn)
            table.application = application

    # Changes

    def write(self, table: Followed, rows: pa.Table, end: Lsn) -> int:
        """Apply a table's rows, all those of commits before `end`, or keep them while it loads; return their number."""
        table.truncates.update(rows["xid"].filter(pc.equal(rows["op"], "truncate")).to_pylist())
        if table.mark is None:
            self._apply(table, rows, end)
        else:
            self._patience.run(lambda: self._kept.keep(table.folder, rows, end))
        return int(rows.num_rows)

    def settle(self, table: Followed, rows: pa.Table, end: Lsn, future: Future[int]) -> int:
        """Return the result of `write`; a table that does not fit its changes any more follows them, or is loaded."""

        def written() -> int:
            try:
                return future.result()
            except OtherShape:
                self._apply_by_shape(table, rows, end)
                return int(rows.num_rows)

        return self._fit(table, written) or 0

    def _fit(self, table: Followed, action: Callable[[], _Result]) -> _Result | None:
        """Return an action's result; load the table again if that shows that it does not fit its changes any more."""
        try:
            return action()
        except (NeedsResync, DamagedError) as error:
            self.load(table, error.description)
        except OF_ONE_TABLE as error:
            # The server may have changed the column's type since.
            assert table.log is not None
            now = self._watch.described(table.oid)
            if now is None or Definition.of(now).columns != Definition.of(table.log.table).columns:
                self.load(table, "its columns changed")
            else:
                self._stand_still(table, str(error))
        return None

    def _apply_by_shape(self, table: Followed, rows: pa.Table, end: Lsn) -> None:
        """Apply rows of which some have other columns, or another key, than the table; it gets them in between."""
        assert table.log is not None
        assert table.application is not None
        applied = table.log.applied(table.application)
        if applied is not None:
            rows = rows.filter(pc.greater(rows["commit_lsn"], pa.scalar(int(applied), pa.int64())))
        upto = -1
        for shape, part in by_shape(rows):
            lsns = part["commit_lsn"]
            if not shape.fits(table.log.table):
                if lsns[0].as_py() == upto:
                    raise NeedsResync(f"the columns of {table.name} changed within a transaction")
                self._evolve(table, shape)
            upto = lsns[-1].as_py()
            self._apply(table, part, Lsn(upto + 1))

    def _evolve(self, table: Followed, shape: Shape | None) -> None:
        """Give a table's copy the columns and the key of the rows that come; None for those of the server's table."""
        log, now = table.log, self._watch.described(table.oid)
        assert log is not None
        evolution = None
        if now is not None and log.table.settings == TableSettings():
            evolution = self._watch.evolution(log.table, now, shape)
        if evolution is None:
            raise NeedsResync(f"how the columns of {table.name} changed cannot be told from the catalog any more")
        self._patience.run(lambda: reshape(log, evolution, self._tasks))

    def _apply(self, table: Followed, rows: pa.Table, end: Lsn) -> None:
        assert table.log is not None
        assert table.application is not None
        log, application, upto = table.log, table.application, Lsn(end - 1)
        for beside in table.beside.values():
            self._patience.run(partial(apply_beside, beside, log.table, rows, upto, application, self._tasks))
        self._patience.run(lambda: apply(log, rows, upto, application, self._tasks))

    def _stand_still(self, table: Followed, reason: str) -> None:
        table.stopped = f"{reason}; run logicalrep resync {table.name} with the same --dsn and --to"
        self._report.warning(f"{table.name} stands still: {table.stopped}")
        if table.log is not None and table.application is not None:
            log, since = table.log, f"since {table.log.applied(table.application)}: {table.stopped}"
            self._patience.run(lambda: log.note_stopped(since))

    def tidy(self, *, is_busy: bool) -> None:
        """Do what is due for one table's upkeep; while there are changes to apply, only what cannot wait."""
        for table in self._tables.values():
            for log in table.logs if table.mark is None else []:
                waited = log.version - log.checkpoint
                if is_due(log, self._settings.keep) and (not is_busy or waited >= _CANNOT_WAIT * CHECKPOINT_EVERY):
                    self._maintain(table, log)
                    return

    def finish(self) -> None:
        """Do the upkeep that another run would find late: commands that end after each batch do it too."""
        for table in self._tables.values():
            for log in table.logs if table.mark is None else []:
                if needs_checkpoint(log):
                    self._maintain(table, log)

    def _maintain(self, table: Followed, log: DeltaLog) -> None:
        try:
            self._patience.run(lambda: maintain(log, self._settings.keep, self._tasks))
        except DamagedError as error:
            self.load(table, error.description)

    # Loads

    def load(self, table: Followed, reason: str) -> None:
        """Load a table, anew if it is there; until its rows are whole, readers have the old ones."""
        mark = Mark(table.folder, table.load, reason)
        self._patience.run(lambda: self._kept.mark(mark))
        table.mark, table.stopped, table.pending = mark, None, None
        table.truncates.clear()
        self._loader.add({table.name: table.folder})

    def load_named(self, names: Sequence[TableName]) -> None:
        """Load tables again, as somebody asked for it."""
        for name in names:
            table = self._tables.get(name)
            if table is not None:
                self.load(table, "asked for")

    def step(self) -> None:
        """Go on with what has ended in other threads: copies, and kept changes that are applied."""
        now = time.monotonic()
        for name in [name for name, moment in self._load_again.items() if moment <= now]:
            del self._load_again[name]
            if name in self._tables:
                self._loader.add({name: self._tables[name].folder})
        for result in self._loader.results():
            table = self._tables.get(result.name)
            if table is None or table.mark is None:
                continue
            if isinstance(result, Loaded):
                if result.table.relation.relation_id != table.oid:
                    # Another table has the name meanwhile, and loads.
                    continue
                self._catching_up.append((table, self._pool.submit(self._replace, table, result)))
            elif result.again:
                self._load_again[table.name] = now + _LOAD_AGAIN
            else:
                self._stand_still(table, result.reason)
        for table, future in [item for item in self._catching_up if item[1].done()]:
            self._catching_up.remove((table, future))
            self._caught_up(table, future)

    def _replace(self, table: Followed, loaded: Loaded) -> None:
        application = application_id(self._system, self._timeline, loaded.load)
        lsn = Lsn(loaded.position - 1)
        before = None if table.log is None else table.application
        beside: dict[Beside, DeltaLog] = {}
        # They come first: after a kill the load begins anew, and so do they, at its position.
        for each in wanted(loaded.table):
            beside[each] = self._patience.run(
                partial(
                    replaced_beside,
                    self._place,
                    table.folder,
                    each,
                    loaded,
                    application,
                    self._tasks,
                    self._settings.keep,
                    kept=(rows for _, rows in self._kept.changes(table.folder)),
                    before_application=before,
                )
            )
        loaded = self._patience.run(partial(with_marked, loaded, table.log, self._tasks))
        table.beside = beside
        table.log = self._patience.run(
            lambda: DeltaLog.replace(
                self._place,
                table.folder,
                loaded.table,
                loaded.files,
                application,
                lsn,
                load=loaded.load,
                keep_hours=self._settings.keep,
                before=table.log,
            )
        )
        table.load, table.application = loaded.load, application
        self._apply_kept(table, self._apply)

    def _catch_up(self, table: Followed) -> None:
        self._catching_up.append((table, self._pool.submit(self._apply_kept, table, self._apply)))

    def _apply_kept(self, table: Followed, apply: Callable[[Followed, pa.Table, Lsn], None]) -> None:
        """Apply what is kept of a table whose copy is whole; more may come meanwhile."""
        for end, rows in self._kept.changes(table.folder):
            apply(table, rows, end)
            self._kept.forget(table.folder, end)

    def _caught_up(self, table: Followed, future: Future[None]) -> None:
        def caught_up() -> None:
            with suppress(OtherShape):
                future.result()
            # Nothing is kept meanwhile, as this thread takes the batches.
            self._apply_kept(table, self._apply_by_shape)
            self._patience.run(lambda: self._kept.remove(table.folder))
            table.mark = None

        self._fit(table, caught_up)


__all__ = ["ReplicatedTables"]
