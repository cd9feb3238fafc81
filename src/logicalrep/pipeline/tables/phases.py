"""The phases of a replicated table, each with its data; `lifecycle` defines the transitions between them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import ClassVar

from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.observe.figures import Phase
from logicalrep.pipeline.buffer.pending_loads import HeldCommit, PendingLoad, TableLoad
from logicalrep.pipeline.catalog.definitions import CatalogTable
from logicalrep.pipeline.catalog.lost_partitions import LostPartitions
from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.history.companion import Companion
from logicalrep.pipeline.state.requests import RequestedPart
from logicalrep.pipeline.tables.tries import Tries
from logicalrep_runtime.scalars import Lsn


@dataclass(slots=True, eq=False)
class Copy:
    """A table at the destination with its companion tables. Commits change its stored tables."""

    stored: StoredTable
    application: str
    """The application id of its transactions; it changes with the server's timeline."""
    companions: Mapping[Companion, StoredTable] = field(default_factory=dict)

    @property
    def load(self) -> str:
        return self.stored.load

    @property
    def stored_tables(self) -> list[StoredTable]:
        return [self.stored, *self.companions.values()]

    @property
    def applied(self) -> Lsn | None:
        """The LSN of the last commit that it contains; None for another server's table."""
        return self.stored.applied(self.application)

    def new_changes(self, changes: TableChanges) -> TableChanges:
        """Return the changes of commits after `applied`."""
        applied = self.applied
        return changes if applied is None else changes.between(first=int(applied) + 1)

    @property
    def is_skipped_in_part(self) -> bool:
        """Whether a companion table skipped a commit that the table itself has not skipped, as after a kill."""
        applied = self.applied
        return applied is not None and any(
            Lsn(skipped.lsn) > applied for companion in self.companions.values() for skipped in companion.table.skipped
        )

    def is_whole_after(self, pending: PendingLoad | None) -> bool:
        """Return whether changes apply to its rows: no pending load replaces all of them."""
        return not isinstance(pending, TableLoad) or pending.replaces != self.load


class CatchUp:
    """Another thread's work on a table that catches up. It returns the table's copy, or None if it ended early."""

    def __init__(self, copy: Copy | None, pending: PendingLoad) -> None:
        """Take the copy and the pending load from before the work, which replaces both while it runs."""
        self.copy, self.pending = copy, pending
        self._is_ending = threading.Event()
        self._job: Future[Copy | None] | None = None

    def begin(self, pool: ThreadPoolExecutor, action: Callable[[CatchUp], Copy | None]) -> None:
        self._job = pool.submit(action, self)

    @property
    def is_ending(self) -> bool:
        return self._is_ending.is_set()

    @property
    def is_done(self) -> bool:
        return self._job is not None and self._job.done()

    def take_result(self) -> Copy | None:
        """Return the copy, once the work is done; raise the work's error."""
        job, self._job = self._job, None
        return None if job is None else job.result()

    def end(self) -> None:
        """Request the end of the work, and wait for it; an error of the work is not raised."""
        self._is_ending.set()
        if self._job is not None:
            self._job.exception()


@dataclass(frozen=True, slots=True, eq=False)
class Unproven:
    """Changes whose columns no state of the catalog has proven yet."""

    changes: TableChanges
    has_new_labels: bool
    """Whether the changes have enum labels that the copy lacks: they wait for the transactions of all changes."""


@dataclass(frozen=True, slots=True, eq=False)
class _PhaseData:
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Opening(_PhaseData):
    name: ClassVar[Phase] = Phase.OPENING
    copy: Copy | None = None
    pending: PendingLoad | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _LoadPhase(_PhaseData):
    copy: Copy | None
    """The copy that readers have meanwhile; None for a new table."""
    pending: PendingLoad
    part: RequestedPart | LostPartitions | None = None
    """The only part that is loaded: by request, or for partitions that were dropped or detached."""
    tries: Tries = field(default_factory=Tries)


@dataclass(frozen=True, slots=True, eq=False)
class Queued(_LoadPhase):
    name: ClassVar[Phase] = Phase.QUEUED


@dataclass(frozen=True, slots=True, eq=False)
class Copying(_LoadPhase):
    name: ClassVar[Phase] = Phase.COPYING


@dataclass(frozen=True, slots=True, eq=False)
class CatchingUp(_PhaseData):
    name: ClassVar[Phase] = Phase.CATCHING_UP
    work: CatchUp

    @property
    def copy(self) -> Copy | None:
        """The copy; None until a table's first rows are committed."""
        return self.work.copy

    @property
    def pending(self) -> PendingLoad:
        return self.work.pending


@dataclass(frozen=True, slots=True, eq=False)
class Following(_PhaseData):
    name: ClassVar[Phase] = Phase.FOLLOWING
    pending: ClassVar[None] = None
    copy: Copy
    next_description: tuple[CatalogTable, Lsn] | None = None
    """The server's newer description, valid once the copy has all changes up to the LSN."""
    unproven: Unproven | None = None
    """Changes that wait for the catalog."""


@dataclass(frozen=True, slots=True, eq=False)
class Held(_PhaseData):
    """A copy that ends before a refused commit."""

    name: ClassVar[Phase] = Phase.HELD
    copy: Copy
    pending: HeldCommit


@dataclass(frozen=True, slots=True, eq=False)
class Stopped(_PhaseData):
    name: ClassVar[Phase] = Phase.STOPPED
    copy: Copy | None
    """The copy; None if the first load was stopped."""
    pending: PendingLoad | None


@dataclass(frozen=True, slots=True, eq=False)
class Unpublished(_PhaseData):
    name: ClassVar[Phase] = Phase.UNPUBLISHED
    copy: ClassVar[None] = None
    pending: ClassVar[None] = None


TablePhase = Opening | Queued | Copying | CatchingUp | Following | Held | Stopped | Unpublished
