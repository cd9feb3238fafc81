"""The progress of one table, as a checkpoint has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypedDict

from logicalrep.observe.figures import LoadProgress, Phase, Standing, TableFigures
from logicalrep.pipeline.formats.stored_table import Head
from logicalrep.pipeline.schema.stored_json import Count, Number32, check_times
from logicalrep.pipeline.storage.storage import below
from logicalrep_runtime.scalars import Lsn

TABLE = "table"
"""The key of a table's own commit, beside the names of its companion tables."""


@dataclass(frozen=True, slots=True)
class Buffered:
    """The change buffer of a table."""

    end: Lsn
    """The end of its last file; 0 if it never had one."""
    load: str | None
    """The load whose rows the changes apply to; None while rows are to be copied."""


class SkippedCommit(TypedDict):
    """A commit that a table lacks."""

    lsn: str
    changes: int
    """The number of its changes of the table."""
    at: str
    """The time at which it was skipped, ISO 8601 in UTC."""
    folders: list[str]
    """The folders of the stored tables that lack it."""


@dataclass(frozen=True, slots=True)
class TableState:
    """The progress of a table."""

    folder: str
    version: Count | None
    """The stored table's version; None before the first load."""
    lsn: Lsn
    """The table has all commits up to this LSN, and none after it."""
    load: str | None
    """The load that its rows began with."""
    timeline: Number32
    """The server's timeline at that LSN."""
    phase: Phase = Phase.FOLLOWING
    """The table's phase."""
    error: str | None = None
    """The reason why it is stopped, or why its load waits, with the time at which that begins; else None."""
    oid: Number32 | None = None
    """The table's OID on the server, which renaming does not change."""
    companions: Mapping[str, Count] = field(default_factory=dict)
    """The versions of the companion tables, `history` and `changes`, as far as there are any."""
    rows: Count | None = None
    """The number of its rows, with those that are marked as deleted; None before the first load."""
    commit_timestamp: str | None = None
    """The time of the last commit with changes of it, ISO 8601 in UTC; None before the first one after its load."""
    progress: LoadProgress | None = None
    """The progress of the copying of its rows; None if they are not being copied."""
    refused: str | None = None
    """The LSN of the commit whose changes it does not take, while all changes from it on are buffered; else None."""
    skipped: Sequence[SkippedCommit] = ()
    """The commits that it lacks, as somebody asked for it."""
    unrepresentable: Mapping[str, Count] = field(default_factory=dict)
    """The number of values since its load that their column's type cannot hold, by the names of columns."""
    commits: Mapping[str, str | None] = field(default_factory=dict)
    """The commits of the versions, `Head.commit`, by `table` and the names of the companion tables."""
    buffered: Buffered | None = None
    """The change buffer of a table that loads or is held; None for one that follows."""

    @property
    def state(self) -> Standing:
        """What the phase means for readers."""
        return self.phase.standing

    @property
    def without_progress(self) -> TableState:
        """The state of a table whose rows nobody copies."""
        return replace(self, progress=None, phase=Phase.QUEUED if self.phase is Phase.COPYING else self.phase)

    def head(self, companion: str | None = None) -> Head | None:
        """Return the last commit of the table, or of a companion table; None before the first load."""
        version = self.version if companion is None else self.companions.get(companion)
        return None if version is None else Head(version, self.commits.get(companion or TABLE))

    @property
    def figures(self) -> TableFigures:
        """The figures that observers get."""
        committed = self.commit_timestamp
        return TableFigures(
            state=self.state,
            phase=self.phase,
            version=self.version,
            rows=self.rows,
            committed=None if committed is None else datetime.fromisoformat(committed),
            error=self.error,
            progress=self.progress,
            unfit=sum(self.unrepresentable.values()),
        )

    def check(self) -> None:
        """Raise ValueError for what was read and is no path, LSN or time."""
        below(self.folder)
        Lsn(self.refused or "0/0")
        check_times(self.commit_timestamp)
