"""The writing of followed tables: rows, schema changes and loads, each into the Delta table and those beside it."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logicalrep.arrow.feed.rare_rows import SentRelation, sent_relations
from logicalrep.arrow.slices import chosen
from logicalrep.postgres.timelines import Timeline
from logicalrep.tables.apply.applying import apply
from logicalrep.tables.delta.delta_log import DeltaLog, ForeignTableError, application_id
from logicalrep.tables.delta.maintenance import is_due, maintain
from logicalrep.tables.delta.names import folder_beside
from logicalrep.tables.delta.place import DamagedError, Storage
from logicalrep.tables.delta.replicated_table import ReplicatedTable, Skipped
from logicalrep.tables.errors import NeedsResync, RefusedCommit
from logicalrep.tables.follow.followed import Followed
from logicalrep.tables.follow.kept import Kept, Mark
from logicalrep.tables.follow.load_counts import LoadCounts
from logicalrep.tables.follow.patience import Patience
from logicalrep.tables.follow.watch import Watch
from logicalrep.tables.history.beside import (
    Beside,
    BesideDamagedError,
    add_marked_files,
    apply_beside,
    opened_beside,
    replaced_beside,
    wanted,
)
from logicalrep.tables.load.definitions import CatalogTable
from logicalrep.tables.load.loading import LoadedTable
from logicalrep.tables.schema.evolution import evolution
from logicalrep.tables.schema.labels import proven_labels, unknown_labels
from logicalrep.tables.schema.proof import latest, proven
from logicalrep.tables.schema.renaming import Copied, move
from logicalrep.tables.schema.reshaping import reshape
from logicalrep.tables.schema.runs import is_same_shape, runs
from logicalrep.tables.table_errors import OF_CHANGES
from logicalrep.tables.tasks import Tasks
from logicalrep_runtime.scalars import Lsn

_CATALOG_AGAIN = 0.1
"""The seconds until the catalog is asked again whether it has a transaction that was received."""
_SOON = 2.0
"""The seconds in which so little comes that batches may wait until it is applied."""


class NotProvenYetError(Exception):
    """Rows whose labels a later state of the catalog may prove."""


def has_labels(table: Followed) -> bool:
    """Return whether a table has columns with labels of enum types."""
    log = table.log
    return log is not None and log.table.evidence is not None and bool(log.table.evidence.labelled)


class TableWriter:
    """Writes tables, and repeats what the destination refuses; each table is written by one thread at a time."""

    def __init__(
        self,
        storage: Storage,
        system_identifier: int,
        keep_hours: float,
        tasks: Tasks,
        watch: Watch,
        patience: Patience,
        *,
        check: Callable[[], object],
    ) -> None:
        """Take the destination, the server's system identifier, and the hours for which old versions can be read.

        `check` raises an error if another process writes to the destination: kept changes are removed after it only.
        """
        self._storage = storage
        self._system = system_identifier
        self._keep_hours = keep_hours
        self._tasks = tasks
        self._watch = watch
        self._patience = patience
        self._kept = Kept(storage, check)
        self._load_counts = LoadCounts(storage)
        self.timeline = 0
        """The server's timeline."""

    # Tables that are there

    def marks(self) -> dict[str, Mark]:
        """Return the marked tables by their folders."""
        return self._kept.marks()

    def open(self, table: Followed, known: int) -> None:
        """Open a table's Delta table, if there is one; `known` is a version before which only we have written."""
        log = table.log = self._patience.run(lambda: DeltaLog.open(self._storage, table.folder))
        if log is not None:
            table.changed_by_others = self._patience.run(lambda: log.changed_by_others(known))

    def open_beside(self, table: Followed, known: Mapping[str, int]) -> bool:
        """Open the Delta tables beside a table; return whether all are there, and of the same load.

        `known` has for each a version before which only we have written. Raises BesideDamagedError if another program
        has changed one.
        """
        log = table.log
        assert log is not None
        table.load, table.application = log.load, self._last_application(log)
        if table.application is None and table.mark is None:
            raise ForeignTableError(
                f"{self._storage.uri_of(log.folder)} has no commit of the server {self._system}: it is the table of "
                "another server; remove it, or replicate to another destination",
                code="OTHER_SERVER",
            )
        beside = self._patience.run(lambda: opened_beside(self._storage, log, known))
        table.beside = beside or {}
        for each in table.logs:
            self._patience.run(partial(each.keep_for, self._keep_hours))
        return beside is not None

    def _last_application(self, log: DeltaLog) -> str | None:
        """Return the application id of the table's last commit, which may be of an earlier timeline.

        It is None for the table of another server, which a load replaces.
        """
        for timeline in range(self.timeline, -1, -1):
            application = application_id(self._system, timeline, log.load)
            if log.applied(application) is not None:
                return application
        return None

    def adopt(self, table: Followed, head: Lsn) -> None:
        """Go on under the server's present timeline, whose WAL ends at an LSN.

        Raises NeedsResync if the server has not all that the table has: a process that was killed may have committed
        to the table, and not have noted that in the state, which is all that was checked at the start.
        """
        assert table.load is not None
        assert table.log is not None
        assert table.application is not None
        application = application_id(self._system, self.timeline, table.load)
        if table.is_whole:
            then, lsn = int(table.application.split("/")[2]), table.log.applied(table.application)
            assert lsn is not None
            reason = self._watch.why_not_reached(
                lsn, Timeline(self._system, then), Timeline(self._system, self.timeline)
            )
            if reason is not None or lsn > head:
                raise NeedsResync(reason or f"its rows are at {lsn}, and the server's WAL ends at {head}")
        if application != table.application:
            for log in table.logs:
                before = self._last_application(log)
                assert before is not None
                lsn = log.applied(before)
                assert lsn is not None
                log.commit([], [], application, lsn)
            table.application = application

    def maintain(self, log: DeltaLog) -> None:
        """Do what is due for a Delta table's upkeep."""
        self._run(log, lambda: maintain(log, self._keep_hours, self._tasks))

    def note_stopped(self, table: Followed) -> None:
        """Note in a table's properties why it stands still."""
        if table.log is not None and table.application is not None:
            log, since = table.log, f"since {table.log.applied(table.application)}: {table.stopped}"
            self._patience.run(lambda: log.note_stopped(since))

    # Rows

    def apply(
        self, table: Followed, rows: pa.Table, end: Lsn, now: CatalogTable | None = None, *, has_all: bool = False
    ) -> None:
        """Apply a table's rows, all those of commits before `end`; it gets other columns and keys in between.

        Args:
            table: the table.
            rows: its rows of the change feed, also those of Relation messages.
            end: the end of the rows.
            now: the table as the catalog describes it; None if there are no Relation messages.
            has_all: whether the catalog had the transactions of all rows then.

        Raises:
            NotProvenYetError: rows have labels that are not known; they wait for a state of the catalog that has all.
            NeedsResync: a row's columns are not proven.
            RefusedCommit: the first commit with a value that the table does not take; those before it are applied.
            Exception: what `apply` of a Delta table raises.
        """
        assert table.log is not None
        relations, changes = self._new(table, rows)
        described = [] if now is None else proven(table.log.table, now, relations)
        parts = runs(table.log.table, described, changes)
        for number, (description, part) in enumerate(parts, 1):
            if now is not None and not is_same_shape(table.log.table, description):
                self._evolve(table, description, now)
            unknown = unknown_labels(table.log.table, part)
            if unknown:
                if now is None or not has_all:
                    raise NotProvenYetError
                parts_of_types = (*table.log.table.type_parts, *proven_labels(table.log.table, now, unknown))
                self._evolve(table, replace(table.log.table, type_parts=parts_of_types), now)
            upto = Lsn(end - 1) if number == len(parts) else Lsn(part["commit_lsn"][-1].as_py())
            try:
                self._apply(table, part, upto)
            except OF_CHANGES:
                self._apply_in_turn(table, part)

    def _new(self, table: Followed, rows: pa.Table) -> tuple[list[SentRelation], pa.Table]:
        """Return the Relation messages and the changes of the commits that a table does not have."""
        assert table.log is not None
        assert table.application is not None
        applied = table.log.applied(table.application)
        if applied is not None:
            rows = chosen(rows, pc.greater(rows["commit_lsn"], pa.scalar(int(applied), pa.int64())))
        return sent_relations(rows)

    def _apply(self, table: Followed, changes: pa.Table, upto: Lsn) -> None:
        assert table.log is not None
        assert table.application is not None
        log, application = table.log, table.application
        for beside in table.beside.values():
            self._run(beside, partial(apply_beside, beside, changes, upto, application, self._tasks))
        self._run(log, lambda: apply(log, changes, upto, application, self._tasks))

    def _apply_in_turn(self, table: Followed, changes: pa.Table) -> None:
        """Apply as many commits as can be, as one value fails all that goes with it. Raises RefusedCommit."""
        lsns = np.unique(changes["commit_lsn"].to_numpy())
        first, count = 0, (len(lsns) + 1) // 2
        while first < len(lsns):
            least, last = int(lsns[first]), int(lsns[min(first + count, len(lsns)) - 1])
            of = changes["commit_lsn"]
            part = changes.filter(pc.and_(pc.greater_equal(of, least), pc.less_equal(of, last)))
            try:
                self._apply(table, part, Lsn(last))
            except OF_CHANGES as error:
                if count == 1:
                    raise RefusedCommit(Lsn(least), error) from error
                count //= 2
            else:
                first += count

    def hold(self, table: Followed, lsn: Lsn) -> None:
        """Note that a table does not take a commit, and that all changes from it on are kept."""
        is_tried_again = table.mark is not None and table.mark.refused == str(lsn)
        if not is_tried_again:
            self.mark(table, Mark(table.folder, None, "a commit was refused", refused=str(lsn), since=time.time()))

    def hold_no_more(self, table: Followed) -> None:
        """Note that a table stands still at no commit: what is kept of it is being applied, or it has to be loaded."""
        self.mark(table, Mark(table.folder, None, "its changes are kept"))

    def skip(self, table: Followed, lsn: Lsn) -> Skipped | None:
        """Leave the refused commit out of all of a table's Delta tables, of which none has it; None if one has it."""
        assert table.application is not None
        if any((log.applied(table.application) or 0) >= lsn for log in table.logs):
            return None
        changes = sum(
            sent_relations(rows.filter(pc.equal(rows["commit_lsn"], int(lsn))))[1].num_rows
            for _, rows in self._kept.changes(table.folder)
        )
        skipped = Skipped(str(lsn), changes, datetime.now(UTC).isoformat(timespec="seconds"))
        # The table itself comes last: after a kill before that, those beside it tell that it is to be loaded.
        for log in reversed(table.logs):
            self._patience.run(partial(log.skip, skipped, table.application))
        return skipped

    def _run(self, log: DeltaLog, action: Callable[[], object]) -> None:
        """Do an action on a Delta table, again if another program has merged the files that it reads."""

        def on_last_version() -> None:
            try:
                action()
            except (DamagedError, BesideDamagedError):
                log.refuse_others()
                raise

        self._patience.run(on_last_version)

    def keep(self, table: Followed, rows: pa.Table, end: Lsn) -> None:
        """Keep the rows of a table that loads, all those of commits before `end`."""
        self._patience.run(lambda: self._kept.keep(table.folder, rows, end))

    def forget_kept(self, table: Followed) -> None:
        """Remove what is kept of a table whose load is to begin."""
        self._patience.run(lambda: self._kept.forget_all(table.folder))

    def apply_kept(self, table: Followed) -> None:
        """Apply what is kept of a table whose copy is whole, until little more comes meanwhile."""
        took = math.inf
        while True:
            before, began = took, time.monotonic()
            for end, rows in self._kept.changes(table.folder):
                while not self._apply_kept(table, rows, end):
                    time.sleep(_CATALOG_AGAIN)
                    if table.is_given_up or self._patience.is_over:
                        return
                if table.is_given_up or self._patience.is_over:
                    return
                for log in table.logs:
                    if is_due(log, self._keep_hours):
                        self.maintain(log)
            took = time.monotonic() - began
            # The batches wait for the rest where more comes than is applied.
            if took < _SOON or took >= before:
                return

    def apply_rest(self, table: Followed) -> bool:
        """Apply the last of what is kept, after which the table follows; return False if the catalog is behind it."""
        for end, rows in self._kept.changes(table.folder):
            if not self._apply_kept(table, rows, end):
                return False
        self._patience.run(lambda: self._kept.remove(table.folder))
        table.mark = None
        return True

    def _apply_kept(self, table: Followed, rows: pa.Table, end: Lsn) -> bool:
        """Apply some of what is kept; return False if the catalog does not have its transactions yet."""
        relations, now, has_all = self._new(table, rows)[0], None, False
        if relations or has_labels(table):
            refresh = self._watch.refresh([table.oid])
            has_all = all(map(refresh.visibility.sees, rows["xid"].unique().to_pylist()))
            if not all(refresh.visibility.sees(relation.xid) for relation in relations):
                return False
            now = refresh.tables.get(table.oid)
            if now is None:
                raise NeedsResync("it was dropped before its changes were proven")
        try:
            self.apply(table, rows, end, now, has_all=has_all)
        except NotProvenYetError:
            return False
        self._kept.forget(table.folder, end)
        return True

    # Schema changes

    def describe(self, table: Followed, now: CatalogTable) -> None:
        """Bring a table's copy, which has all rows from before it, to the description of now. Raises NeedsResync."""
        assert table.log is not None
        self._evolve(table, latest(table.log.table, now), now)

    def _evolve(self, table: Followed, after: ReplicatedTable, now: CatalogTable) -> None:
        """Give a table's copy the columns and the key of the rows that come.

        Raises NeedsResync if the values that old rows have in them are not known.
        """
        evolutions = [evolution(log.table, after, now) for log in table.logs]
        # The table itself comes last: a kill before that leaves it to the next run to go on with those beside it.
        for log, each in reversed([*zip(table.logs, evolutions, strict=True)]):
            self._run(log, partial(reshape, log, each, self._tasks))

    def move(self, table: Followed, copied: Sequence[Copied]) -> None:
        """Go on with the rows of other Delta tables, `Followed.logs` of another name, under a table's name."""
        assert table.application is not None
        earlier = table.application
        table.load, table.beside = secrets.token_hex(8), {}
        table.application = application_id(self._system, self.timeline, table.load)
        # The table itself comes last, and makes the move whole.
        for each in reversed(copied):
            lsn, beside = each.log.applied(earlier), each.table.beside
            assert lsn is not None
            folder = table.folder if beside is None else folder_beside(table.folder, beside)
            log = self._patience.run(
                partial(move, each, table.name, folder, table.application, lsn, table.load, self._keep_hours)
            )
            if beside is None:
                table.log = log
            else:
                table.beside[beside] = log

    # Loads

    def count_load(self, table: Followed, reason: str) -> None:
        """Count a load. Raises LoadedTooOftenError if it is one too many for this reason."""
        self._patience.run(lambda: self._load_counts.add(table.folder, reason))

    def forget_loads(self, table: Followed) -> None:
        """Count a table's loads anew."""
        self._patience.run(lambda: self._load_counts.clear(table.folder))

    def mark(self, table: Followed, mark: Mark) -> None:
        """Note that a table loads: from now on its changes have to be kept."""
        self._patience.run(lambda: self._kept.mark(mark))
        table.mark = mark

    def replace(self, table: Followed, loaded: LoadedTable) -> None:
        """Put loaded rows in the place of those that the table has, and apply what was kept meanwhile."""
        application = application_id(self._system, self.timeline, loaded.load)
        lsn = Lsn(loaded.position - 1)
        before = None if table.log is None else table.application
        beside: dict[Beside, DeltaLog] = {}
        # They come first: after a kill the load begins anew, and so do they, at its position.
        for each in wanted(loaded.table):
            beside[each] = self._patience.run(
                partial(
                    replaced_beside,
                    self._storage,
                    table.folder,
                    each,
                    loaded,
                    application,
                    self._tasks,
                    self._keep_hours,
                    kept=(rows for _, rows in self._kept.changes(table.folder)),
                    before_application=before,
                )
            )
        loaded = self._patience.run(partial(add_marked_files, loaded, table.log, self._tasks))
        table.beside = beside
        table.log = self._patience.run(
            lambda: DeltaLog.replace(
                self._storage,
                table.folder,
                loaded.table,
                loaded.files,
                application,
                lsn,
                load=loaded.load,
                keep_hours=self._keep_hours,
                before=table.log,
            )
        )
        table.load, table.application = loaded.load, application
        self.apply_kept(table)
