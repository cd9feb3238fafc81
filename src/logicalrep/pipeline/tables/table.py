"""A replicated table: its phase with its data, and facts from the server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from logicalrep.observe.figures import LoadProgress
from logicalrep.pipeline.buffer.pending_loads import ASKED_FOR, HeldCommit, PartitionsLoad, PendingLoad, TableLoad
from logicalrep.pipeline.catalog.definitions import CatalogTable
from logicalrep.pipeline.formats.stored_table import Head
from logicalrep.pipeline.schema.table_facts import Skipped
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.state.table_state import TABLE, Buffered, SkippedCommit, TableState
from logicalrep.pipeline.tables.lifecycle import LifecycleError, check_transition
from logicalrep.pipeline.tables.phases import (
    CatchingUp,
    Copy,
    Following,
    Held,
    Opening,
    Queued,
    Stopped,
    TablePhase,
    Unproven,
    Unpublished,
)
from logicalrep.pipeline.tables.reload_limiter import LoadedTooOftenError, pause_until
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn

_NONE = Lsn(0)


@dataclass(slots=True, eq=False)
class Table:
    """A table of the destination. Only the loop's thread moves it to another phase."""

    name: TableName
    folder: str
    oid: int
    committed: str | None = None
    """The time of the last commit that changed it, ISO 8601 in UTC."""
    unfit: Counter[str] = field(default_factory=Counter)
    """The number of values since its load that their column's type cannot hold, by column name."""
    columns: tuple[str, ...] = ()
    """The server's column names at the last catalog refresh, by number; empty if a masked or omitted column changed."""
    server_files: frozenset[int] = frozenset()
    """The OIDs of the relations with its rows at the last catalog refresh: itself, or its partitions."""
    buffered: Lsn = field(default=_NONE)
    """The end of its change buffer's last file; 0 if it never had one."""
    without_difference: tuple[TableSpec, CatalogTable] | None = None
    """The copy's description, and the server's table that a refresh found to be no different; None before."""
    least_position: Lsn = field(default=_NONE)
    """The least LSN of its next copy, which must contain all changes before it: some were not buffered."""
    _phase: TablePhase = field(default_factory=lambda: Opening("it is published"))

    # The phase

    @property
    def phase(self) -> TablePhase:
        return self._phase

    def move(self, phase: TablePhase) -> None:
        """End the work of the phase, and change to another one. Raises LifecycleError for an undefined transition."""
        previous = self._phase
        text = f"a table that is {previous.name} ({previous.reason}) cannot be {phase.name} next ({phase.reason})"
        check_transition(previous.name, phase.name, text)
        self.end_work()
        self._phase = phase

    def update(self, phase: TablePhase) -> None:
        """Replace the data of the current phase. Raises LifecycleError for another phase."""
        if phase.name is not self._phase.name:
            raise LifecycleError(f"a table that is {self._phase.name} cannot take the data of {phase.name}")
        self._phase = phase

    def end_work(self) -> None:
        """End another thread's work on the table: its copy does not change after this call."""
        if isinstance(self._phase, CatchingUp):
            self._phase.work.end()

    @property
    def copy(self) -> Copy | None:
        return self._phase.copy

    @property
    def pending(self) -> PendingLoad | None:
        """The pending load; while there is one, changes are buffered."""
        return self._phase.pending

    @property
    def unproven(self) -> Unproven | None:
        return self._phase.unproven if isinstance(self._phase, Following) else None

    @property
    def takes_changes(self) -> bool:
        """Whether new changes are applied or buffered; otherwise they are dropped."""
        return not isinstance(self._phase, Opening | Stopped | Unpublished)

    @property
    def is_whole(self) -> bool:
        """Whether changes apply to its rows; otherwise they wait for a load."""
        copy = self.copy
        return copy is not None and copy.is_whole_after(self.pending)

    @property
    def is_up_to_date(self) -> bool:
        """Whether it has all received changes and the server's description."""
        phase = self._phase
        return isinstance(phase, Following) and phase.next_description is None and phase.unproven is None

    @property
    def is_requested(self) -> bool:
        """Whether an operator requested its load, and so accepts its columns as they are."""
        return isinstance(self.pending, TableLoad) and self.pending.reason == ASKED_FOR

    @property
    def is_refused(self) -> bool:
        """Whether it refused a commit: changes from that commit on are buffered."""
        return isinstance(self.pending, HeldCommit)

    @property
    def stopped(self) -> str | None:
        """The reason why the table is stopped, with the remedy; None if it is not."""
        return self._phase.reason if isinstance(self._phase, Held | Stopped) else None

    @property
    def load_begin(self) -> float | None:
        """The earliest start of the pending load, in seconds since 1970; None if it may begin now."""
        begin = self.pending.begin if isinstance(self.pending, TableLoad | PartitionsLoad) else None
        return begin if pause_until(begin) else None

    @property
    def postponed(self) -> str | None:
        """The reason why the pending load waits after frequent reloads, with its time; None if it does not."""
        begin = self.load_begin
        pending = self._phase.pending if isinstance(self._phase, Queued) else None
        if begin is None or not isinstance(pending, TableLoad | PartitionsLoad):
            return None
        return str(
            LoadedTooOftenError(
                f"it was reloaded repeatedly for the same reason ({pending.reason}): to spare the server, the next "
                f"load begins at {datetime.fromtimestamp(begin, UTC).isoformat(timespec='seconds')}, and its changes "
                f"are buffered until then; run logicalrep resync {self.name} to reload it at once"
            )
        )

    @property
    def behind_reason(self) -> str | None:
        """The reason why the table is stopped or postponed; None if it is neither."""
        return self.postponed if self.stopped is None else self.stopped

    # The table

    @property
    def files(self) -> frozenset[int]:
        """The OIDs of the relations with its rows, from the last catalog refresh and, while it follows, its copy."""
        of_copy = self._phase.copy.stored.table.files if isinstance(self._phase, Following) else ()
        return self.server_files.union(oid for oid, _ in of_copy)

    @property
    def numbers(self) -> Mapping[str, int]:
        """The numbers of its masked and omitted columns in its copy, by name."""
        if self.copy is None or self.copy.stored.table.relation.relation_id != self.oid:
            return {}
        return {name: number for number, name in self.copy.stored.table.protected}

    def state(self, lsn: Lsn, timeline: int, progress: LoadProgress | None) -> TableState:
        """Return the state for a checkpoint; a table that follows has all commits up to `lsn`."""
        phase, copy = self._phase, self.copy
        is_whole = copy is not None and copy.is_whole_after(phase.pending)
        if not isinstance(phase, Following):
            lsn = (None if copy is None else copy.applied) or Lsn(0)
        # Another thread may commit meanwhile: each head has a version and its commit.
        companions: dict[str, Head] = {}
        if copy is not None:
            companions = {name: stored.head for name, stored in copy.companions.items()}
        head = None if copy is None else copy.stored.head
        load = None if copy is None else copy.load
        return TableState(
            folder=self.folder,
            oid=self.oid,
            version=None if head is None else head.version,
            lsn=lsn,
            load=load,
            timeline=timeline,
            phase=phase.name,
            error=self.behind_reason,
            companions={name: companion_head.version for name, companion_head in companions.items()},
            rows=None if copy is None else sum(file.live_rows for file in list(copy.stored.files.values())),
            commit_timestamp=self.committed,
            progress=progress,
            refused=phase.pending.refused if isinstance(phase, Held) else None,
            buffered=None if phase.pending is None else Buffered(self.buffered, load if is_whole else None),
            commits={
                name: companion_head.commit
                for name, companion_head in [*companions.items(), *([(TABLE, head)] if head else [])]
            },
            skipped=[] if copy is None else _skipped(copy),
            unrepresentable=dict(self.unfit),
        )


def _skipped(copy: Copy) -> list[SkippedCommit]:
    folders: dict[Skipped, list[str]] = {}
    for stored in copy.stored_tables:
        for skipped in stored.table.skipped:
            folders.setdefault(skipped, []).append(stored.folder)
    return [
        {"lsn": skipped.lsn, "changes": skipped.changes, "at": skipped.at, "folders": named}
        for skipped, named in sorted(folders.items())
    ]
