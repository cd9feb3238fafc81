"""The phases of a replicated table, each with what a table has in it; `lifecycle` has the transitions between them."""

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
from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.history.companion import Companion
from logicalrep.pipeline.state.requests import RequestedPart
from logicalrep.pipeline.tables.tries import Tries
from logicalrep_runtime.scalars import Lsn


@dataclass(slots=True, eq=False)
class Copy:
    """A table at the destination, with all that belongs to it. Commits change its stored tables."""

    stored: StoredTable
    application: str
    """The application id of its transactions; another one follows with another timeline of the server."""
    companions: Mapping[Companion, StoredTable] = field(default_factory=dict)

    @property
    def load(self) -> str:
        """The load that its rows began with."""
        return self.stored.load

    @property
    def stored_tables(self) -> list[StoredTable]:
        """The stored table and its companion tables."""
        return [self.stored, *self.companions.values()]

    @property
    def applied(self) -> Lsn | None:
        """The LSN up to which it has all commits; None for the copy of another server's table."""
        return self.stored.applied(self.application)

    def new_changes(self, changes: TableChanges) -> TableChanges:
        """Return the changes of the commits that it does not have."""
        applied = self.applied
        return changes if applied is None else changes.between(first=int(applied) + 1)

    @property
    def is_skipped_in_part(self) -> bool:
        """Whether the process ended after a commit was left out of a companion table, but not of the table."""
        applied = self.applied
        return applied is not None and any(
            Lsn(skipped.lsn) > applied for companion in self.companions.values() for skipped in companion.table.skipped
        )

    def is_whole_after(self, pending: PendingLoad | None) -> bool:
        """Return whether changes apply to its rows, so that a pending load does not replace all of them."""
        return not isinstance(pending, TableLoad) or pending.replaces != self.load


class CatchUp:
    """The work of another thread that has a table catch up. It returns the table's copy, or None if it ended early."""

    def __init__(self, copy: Copy | None, pending: PendingLoad) -> None:
        """Take what the table has before the work, which replaces both while it runs."""
        self.copy, self.pending = copy, pending
        self._is_ending = threading.Event()
        self._job: Future[Copy | None] | None = None

    def begin(self, pool: ThreadPoolExecutor, action: Callable[[CatchUp], Copy | None]) -> None:
        """Have a thread of the pool do the work."""
        self._job = pool.submit(action, self)

    @property
    def is_ending(self) -> bool:
        """Whether the table does not catch up any more."""
        return self._is_ending.is_set()

    @property
    def is_done(self) -> bool:
        """Whether the work has ended, and its result is not taken yet."""
        return self._job is not None and self._job.done()

    def take_result(self) -> Copy | None:
        """Return what the work returned, or raise its error; None once that is taken."""
        job, self._job = self._job, None
        return None if job is None else job.result()

    def end(self) -> None:
        """End the work, and wait until it has."""
        self._is_ending.set()
        if self._job is not None:
            self._job.exception()


@dataclass(frozen=True, slots=True, eq=False)
class Unproven:
    """Changes that no state of the catalog proved yet."""

    changes: TableChanges
    has_new_labels: bool
    """True if they have unknown labels: only a state of the catalog with all of their transactions proves them."""


@dataclass(frozen=True, slots=True, eq=False)
class _PhaseData:
    reason: str
    """The reason for the transition to the phase, in words."""


@dataclass(frozen=True, slots=True, eq=False)
class Opening(_PhaseData):
    """What was found at the destination for a published table."""

    name: ClassVar[Phase] = Phase.OPENING
    copy: Copy | None = None
    pending: PendingLoad | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _LoadPhase(_PhaseData):
    copy: Copy | None
    """What readers have meanwhile; None for a new table."""
    pending: PendingLoad
    part: RequestedPart | None = None
    """The part whose rows alone are loaded, as somebody asked for it."""
    tries: Tries = field(default_factory=Tries)
    """The failures of the load."""


@dataclass(frozen=True, slots=True, eq=False)
class Queued(_LoadPhase):
    """A load that has not begun."""

    name: ClassVar[Phase] = Phase.QUEUED


@dataclass(frozen=True, slots=True, eq=False)
class Copying(_LoadPhase):
    """A load whose rows are being copied."""

    name: ClassVar[Phase] = Phase.COPYING


@dataclass(frozen=True, slots=True, eq=False)
class CatchingUp(_PhaseData):
    """The work that commits copied rows, and applies buffered changes."""

    name: ClassVar[Phase] = Phase.CATCHING_UP
    work: CatchUp

    @property
    def copy(self) -> Copy | None:
        """The copy; None until the first rows of a table are committed."""
        return self.work.copy

    @property
    def pending(self) -> PendingLoad:
        """The pending load."""
        return self.work.pending


@dataclass(frozen=True, slots=True, eq=False)
class Following(_PhaseData):
    """A copy that takes each change."""

    name: ClassVar[Phase] = Phase.FOLLOWING
    pending: ClassVar[None] = None
    copy: Copy
    next_description: tuple[CatalogTable, Lsn] | None = None
    """A later description, which holds once the copy has all changes up to the LSN."""
    unproven: Unproven | None = None
    """The changes that wait for the catalog."""


@dataclass(frozen=True, slots=True, eq=False)
class Held(_PhaseData):
    """A copy without a refused commit and what comes after it."""

    name: ClassVar[Phase] = Phase.HELD
    copy: Copy
    pending: HeldCommit


@dataclass(frozen=True, slots=True, eq=False)
class Stopped(_PhaseData):
    """A copy that takes no more changes."""

    name: ClassVar[Phase] = Phase.STOPPED
    copy: Copy | None
    """The copy; None if the first load was stopped."""
    pending: PendingLoad | None
    """The pending load that the table had: the next process goes on with that."""


@dataclass(frozen=True, slots=True, eq=False)
class Unpublished(_PhaseData):
    """Nothing: the table is not replicated."""

    name: ClassVar[Phase] = Phase.UNPUBLISHED
    copy: ClassVar[None] = None
    pending: ClassVar[None] = None


TablePhase = Opening | Queued | Copying | CatchingUp | Following | Held | Stopped | Unpublished
