"""The progress of one table, as a checkpoint has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self

from logicalrep.observe.figures import LoadProgress, Phase, Standing, TableFigures
from logicalrep.pipeline.formats.stored_table import Head
from logicalrep.pipeline.schema.stored_keys import StoredKeys, check_times, typed
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


@dataclass(frozen=True, slots=True)
class TableState:
    """The progress of a table."""

    folder: str
    version: int | None
    """The stored table's version; None before the first load."""
    lsn: Lsn
    """The table has all commits up to this LSN, and none after it."""
    load: str | None
    """The load that its rows began with."""
    timeline: int
    """The server's timeline at that LSN."""
    phase: Phase = Phase.FOLLOWING
    """The table's phase."""
    error: str | None = None
    """The reason why it is stopped, or why its load waits, with the time at which that begins; else None."""
    oid: int | None = None
    """The table's OID on the server, which renaming does not change."""
    companions: Mapping[str, int] = field(default_factory=dict)
    """The versions of the companion tables, `history` and `changes`, as far as there are any."""
    rows: int | None = None
    """The number of its rows, with those that are marked as deleted; None before the first load."""
    commit_timestamp: str | None = None
    """The time of the last commit with changes of it, ISO 8601 in UTC; None before the first one after its load."""
    progress: LoadProgress | None = None
    """The progress of the copying of its rows; None if they are not being copied."""
    refused: str | None = None
    """The LSN of the commit whose changes it does not take, while all changes from it on are buffered; else None."""
    skipped: Sequence[Mapping[str, object]] = ()
    """The commits that it lacks, as somebody asked for it: `lsn`, `changes`, `at`, and the `folders` that lack it."""
    unfit: Mapping[str, int] = field(default_factory=dict)
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
            unfit=sum(self.unfit.values()),
        )

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Return the state that `to_json` returned, also one of an earlier version."""
        progress, buffered = content.get("progress"), content.get("buffered")
        read = {
            "folder": below(content["folder"]),
            "lsn": Lsn(content["lsn"]),
            "phase": Phase(content["phase"]),
            "progress": None if progress is None else typed(LoadProgress(**_PROGRESS.arguments(progress))),
            "buffered": None if buffered is None else typed(Buffered(Lsn(buffered["end"]), buffered["load"])),
        }
        state = typed(cls(**_TABLE_STATE.arguments({**content, **read})))
        Lsn(state.refused or "0/0")
        check_times(state.commit_timestamp)
        if max(state.timeline, state.oid or 0) >= 1 << 32:
            raise ValueError("its timeline or its OID has more than 32 bits")
        if not all({"lsn", "changes", "at"} < each.keys() and type(each["folders"]) is list for each in state.skipped):
            raise ValueError("it lacks what tells of a skipped commit")
        return state

    def to_json(self) -> dict[str, Any]:
        """Return the state as plain values."""
        progress = None if self.progress is None else _PROGRESS.content(self.progress)
        buffered = self.buffered and {"end": str(self.buffered.end), "load": self.buffered.load}
        content = _TABLE_STATE.content(self) | {"lsn": str(self.lsn), "progress": progress, "buffered": buffered}
        if not self.unfit:
            # Earlier versions read it as long as there are none.
            del content[_UNFIT]
        return content


_PROGRESS = StoredKeys("rows estimate snapshot_since")
_UNFIT = "unrepresentable"
_TABLE_STATE = StoredKeys(
    "folder version lsn load timeline phase error oid companions commits buffered rows commit_timestamp "
    f"progress refused skipped {_UNFIT}=unfit"
)
