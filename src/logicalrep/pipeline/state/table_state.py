"""The state of one table in a checkpoint."""

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
"""The key of a table's own commit, among the names of its companion tables."""


@dataclass(frozen=True, slots=True)
class Buffered:
    end: Lsn
    """The end of its last file; 0 if it never had one."""
    load: str | None
    """The load to whose rows the changes apply; None while rows are to be copied."""


class SkippedCommit(TypedDict):
    lsn: str
    changes: int
    at: str
    """The time of the skip, ISO 8601 in UTC."""
    folders: list[str]


@dataclass(frozen=True, slots=True)
class TableState:
    folder: str
    version: Count | None
    """The stored table's version; None before the first load."""
    lsn: Lsn
    """The table has all commits up to this LSN, and none after it."""
    load: str | None
    timeline: Number32
    phase: Phase = Phase.FOLLOWING
    error: str | None = None
    """The reason why it is stopped, or why its load waits and until when; else None."""
    oid: Number32 | None = None
    """The table's OID on the server, which survives renaming."""
    companions: Mapping[str, Count] = field(default_factory=dict)
    rows: Count | None = None
    """The number of its rows, including rows marked as deleted; None before the first load."""
    commit_timestamp: str | None = None
    """The time of the last commit that changed it, ISO 8601 in UTC; None before the first one after its load."""
    progress: LoadProgress | None = None
    """The progress of copying its rows; None if no rows are being copied."""
    refused: str | None = None
    """The LSN of the refused commit, from which on changes are buffered; else None."""
    skipped: Sequence[SkippedCommit] = ()
    unrepresentable: Mapping[str, Count] = field(default_factory=dict)
    """The number of values since its load that their column's type cannot hold, by column name."""
    commits: Mapping[str, str | None] = field(default_factory=dict)
    """The commits of the versions, `Head.commit`, by `table` and companion name."""
    buffered: Buffered | None = None
    """The change buffer of a table that loads or is held; None for a following table."""

    @property
    def state(self) -> Standing:
        return self.phase.standing

    @property
    def without_progress(self) -> TableState:
        return replace(self, progress=None, phase=Phase.QUEUED if self.phase is Phase.COPYING else self.phase)

    def head(self, companion: str | None = None) -> Head | None:
        """Return the last commit of the table, or of a companion table; None before the first load."""
        version = self.version if companion is None else self.companions.get(companion)
        return None if version is None else Head(version, self.commits.get(companion or TABLE))

    @property
    def figures(self) -> TableFigures:
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
        below(self.folder)
        Lsn(self.refused or "0/0")
        check_times(self.commit_timestamp)
