"""A replicated table: its stored table, its phase, and what is known of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime

from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.observe.figures import LoadProgress
from logicalrep.pipeline.buffer.change_buffer import ASKED_FOR, PendingLoad
from logicalrep.pipeline.catalog.definitions import CatalogTable
from logicalrep.pipeline.formats.since_checkpoint import SinceCheckpoint
from logicalrep.pipeline.formats.stored_table import Head, StoredTable
from logicalrep.pipeline.history.companion import Companion
from logicalrep.pipeline.schema.table_facts import Skipped
from logicalrep.pipeline.state.requests import RequestedPart
from logicalrep.pipeline.state.table_state import TABLE, Buffered, TableState
from logicalrep.pipeline.tables.lifecycle import Life, Phase
from logicalrep.pipeline.tables.load_counts import LoadedTooOftenError, pause_until
from logicalrep.pipeline.tables.tries import Tries
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn

_NONE = Lsn(0)


@dataclass(slots=True, eq=False)
class Table:
    """A table of the destination. Only the loop's thread moves it to another phase."""

    name: TableName
    folder: str
    oid: int
    """The table's OID on the server, by which its changes are known."""
    stored: StoredTable | None = None
    """The table at the destination; None before the first load."""
    since_checkpoint: SinceCheckpoint = field(default_factory=SinceCheckpoint)
    """The differences of the stored tables, when they were opened, from what the last checkpoint said."""
    companions: dict[Companion, StoredTable] = field(default_factory=dict)
    """The companion tables."""
    load: str | None = None
    """The load that the stored table's rows began with."""
    application: str | None = None
    """The application id of the stored table's transactions."""
    pending_load: PendingLoad | None = None
    """The pending load of a table whose changes are buffered; None for one whose changes are applied."""
    life: Life = field(default_factory=Life)
    """The phase; `move` changes it."""
    job: Future[None] | None = None
    """The work of another thread that has the table catch up; None in all other phases, and once its end is taken."""
    tries: Tries = field(default_factory=Tries)
    """The failures of its load."""
    part: RequestedPart | None = None
    """The part of it that is being loaded again."""
    later: tuple[CatalogTable, Lsn] | None = None
    """A later description, which holds once the copy has all changes up to the LSN."""
    unproven: TableChanges | None = None
    """Its changes that no state of the catalog proved yet."""
    has_new_labels: bool = False
    """True if these have unknown labels: only a state of the catalog with all of their transactions proves them."""
    committed: str | None = None
    """The time of the last commit with changes of it, ISO 8601 in UTC."""
    unfit: Counter[str] = field(default_factory=Counter)
    """The number of values since its load that their column's type cannot hold, by the names of columns."""
    columns: tuple[str, ...] = ()
    """The names of the server's columns at the last catalog refresh, in the order of their numbers.

    There are none if one that is masked or left out is not as before.
    """
    server_files: frozenset[int] = frozenset()
    """The OIDs of the tables that had its rows at the last catalog refresh: itself, or its partitions."""
    buffered: Lsn = field(default=_NONE)
    """The end of the last file of its change buffer; 0 if it never had one."""
    least: Lsn = field(default=_NONE)
    """The least LSN of a copy: some changes before it were not kept, so that the copy has to have them."""

    @property
    def files(self) -> frozenset[int]:
        """The OIDs of the tables that have its rows, at the last catalog refresh or by its copy, if that stays."""
        of_copy = () if self.stored is None or self.phase is not Phase.FOLLOWING else self.stored.table.files
        return self.server_files.union(oid for oid, _ in of_copy)

    @property
    def phase(self) -> Phase:
        """The phase of its life."""
        return self.life.phase

    def move(self, to: Phase, reason: str) -> None:
        """Change the phase, and end what the one before had begun. Raises LifecycleError if that must not follow."""
        self.life.move(to, reason)
        if self.job is not None:
            # It ends once it sees that the table does not catch up any more.
            self.job.exception()
        self.job = self.later = self.unproven = None
        self.has_new_labels = False

    @property
    def stopped(self) -> str | None:
        """The reason why the table is stopped; None if it is not."""
        return self.life.reason if self.phase.stored == "stopped" else None

    @property
    def load_begin(self) -> float | None:
        """The time before which the pending load does not begin, in seconds since 1970; None if it may begin now."""
        begin = None if self.pending_load is None else self.pending_load.begin
        return begin if pause_until(begin) else None

    @property
    def postponed(self) -> str | None:
        """The reason why its load waits, with the time at which it begins; None if no load waits for that time."""
        pending_load = self.pending_load if self.phase is Phase.QUEUED else None
        if pending_load is None or self.load_begin is None:
            return None
        begin = datetime.fromtimestamp(self.load_begin, UTC).isoformat(timespec="seconds")
        return str(
            LoadedTooOftenError(
                f"it was loaded again and again for the same reason ({pending_load.reason}): to spare the server, the "
                f"next load begins at {begin}, and its changes are buffered until then; logicalrep resync {self.name} "
                "loads it at once"
            )
        )

    @property
    def why_behind(self) -> str | None:
        """The reason why it is not brought up to date for now: it is stopped, or its load waits; None if it is."""
        return self.postponed if self.stopped is None else self.stopped

    @property
    def is_up_to_date(self) -> bool:
        """Whether it has all of its changes that were received, and is as the server describes it."""
        return self.phase is Phase.FOLLOWING and self.later is None and self.unproven is None

    @property
    def stored_tables(self) -> list[StoredTable]:
        """The table and its companion tables, at the destination."""
        return [] if self.stored is None else [self.stored, *self.companions.values()]

    @property
    def is_skipped_in_part(self) -> bool:
        """Whether the process ended after a commit was left out of a companion table, but not of the table."""
        applied = None if self.stored is None or self.application is None else self.stored.applied(self.application)
        return applied is not None and any(
            Lsn(each.lsn) > applied for stored in self.companions.values() for each in stored.table.skipped
        )

    @property
    def is_whole(self) -> bool:
        """Whether its rows are there, and changes apply to them; otherwise changes wait for a load."""
        return self.stored is not None and (self.pending_load is None or self.pending_load.replaces != self.load)

    @property
    def lacks_partitions(self) -> bool:
        """Whether rows of partitions are to be put in among its own, at a position between its buffered changes."""
        return self.pending_load is not None and bool(self.pending_load.partitions)

    @property
    def is_asked_for(self) -> bool:
        """Whether somebody asked for its load, and so takes its columns as they are."""
        return self.pending_load is not None and self.pending_load.reason == ASKED_FOR

    @property
    def is_refused(self) -> bool:
        """Whether it refused a commit, from which on its changes are buffered."""
        return self.pending_load is not None and self.pending_load.refused is not None

    @property
    def numbers(self) -> Mapping[str, int]:
        """The numbers that its masked and left-out columns have in its copy."""
        stored = self.stored
        if stored is None or stored.table.relation.relation_id != self.oid:
            return {}
        return {name: number for number, name in stored.table.protected}

    def state(self, lsn: Lsn, timeline: int, progress: LoadProgress | None) -> TableState:
        """Return how far the table is, given that those that follow have all commits up to an LSN."""
        if self.phase is not Phase.FOLLOWING:
            applied = None if self.stored is None or self.application is None else self.stored.applied(self.application)
            lsn = applied or Lsn(0)
        # Another thread may commit meanwhile: each version goes with its own commit.
        heads: dict[str, Head] = {name: stored.head for name, stored in self.companions.items()}
        if self.stored is not None:
            heads[TABLE] = self.stored.head
        return TableState(
            folder=self.folder,
            oid=self.oid,
            version=None if self.stored is None else heads[TABLE].version,
            lsn=lsn,
            load=self.load,
            timeline=timeline,
            state=self.phase.stored,
            error=self.why_behind,
            companions={name: heads[name].version for name in self.companions},
            rows=None if self.stored is None else sum(file.rows_there for file in list(self.stored.files.values())),
            commit_timestamp=self.committed,
            progress=progress,
            refused=self.pending_load.refused if self.phase is Phase.HELD and self.pending_load is not None else None,
            buffered=None if self.pending_load is None else self._buffered,
            commits={name: head.commit for name, head in heads.items()},
            skipped=self._skipped,
            unfit=dict(self.unfit),
            phase=self.phase,
        )

    @property
    def _buffered(self) -> Buffered:
        return Buffered(self.buffered, self.load if self.is_whole else None)

    @property
    def _skipped(self) -> list[dict[str, object]]:
        """The commits that some of its stored tables lack, with the folders of these."""
        folders: dict[Skipped, list[str]] = {}
        for stored in self.stored_tables:
            for each in stored.table.skipped:
                folders.setdefault(each, []).append(stored.folder)
        return [
            {"lsn": each.lsn, "changes": each.changes, "at": each.at, "folders": named}
            for each, named in sorted(folders.items())
        ]
