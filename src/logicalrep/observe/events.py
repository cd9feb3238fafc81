"""The events of `logicalrep replicate`, with their lines for people and their records in the log."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from logicalrep.observe import lag
from logicalrep.observe.figures import ErrorKind, Standing, TableFigures
from logicalrep.observe.log import Value
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn

_MOST_NAMES = 5


class RunEvent:
    __slots__ = ()
    level: ClassVar[int] = logging.INFO

    def line(self) -> str | None:
        """Return the line for people; None if the event has none, or a summary covers it."""
        return None

    def record(self) -> tuple[str, Mapping[str, Value]] | None:
        """Return the name and figures that the log writes in place of the line; None if the log writes the line."""
        return None


@dataclass(frozen=True, slots=True)
class _TextEvent(RunEvent):
    text: str

    def line(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class EngineChosen(RunEvent):
    """The first event of a run: the engine, `spark` or `local`, and the reason; a command's first line says both."""

    engine: str
    reason: str

    def record(self) -> tuple[str, Mapping[str, Value]]:
        return "engine", {"engine": self.engine, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class StepStarted(_TextEvent):
    """The run starts a step of its preparation; the next step, or work on tables, ends it."""


@dataclass(frozen=True, slots=True)
class WaitReported(_TextEvent):
    """The run waits; while it waits, it repeats the event at least once a minute."""

    level = logging.WARNING


@dataclass(frozen=True, slots=True)
class WaitEnded(_TextEvent):
    """The run no longer waits for the server or the destination, whose absence it had reported."""

    level = logging.WARNING


@dataclass(frozen=True, slots=True)
class DestinationFailing(_TextEvent):
    """The destination could not be written for a while, as on a full disk; the run retries, and repeats the event."""

    level = logging.ERROR
    is_first: bool
    """Whether it is the first event of these failures."""


@dataclass(frozen=True, slots=True)
class WarningIssued(_TextEvent):
    """The operator should know something."""

    level = logging.WARNING


@dataclass(frozen=True, slots=True)
class WarningSolved(_TextEvent):
    """The cause of the warning with this text no longer exists."""

    def line(self) -> str:
        return f"solved: {self.text}"


@dataclass(frozen=True, slots=True)
class PageServed(RunEvent):
    address: str

    def line(self) -> str:
        return served_text(self.address)


@dataclass(frozen=True, slots=True)
class RunPrepared(RunEvent):
    slot: str


@dataclass(frozen=True, slots=True)
class RunResumed(RunEvent):
    """The run resumes; the tables have every commit before `lsn`."""

    tables: int
    lsn: int

    def line(self) -> str:
        return f"resuming {self.tables:,} table{'' if self.tables == 1 else 's'} from {Lsn(self.lsn)}"

    def record(self) -> tuple[str, Mapping[str, Value]]:
        return "resuming", {"tables": self.tables, "lsn": str(Lsn(self.lsn))}


@dataclass(frozen=True, slots=True)
class RunEnded(RunEvent):
    """An error ends the run; the command prints the error."""

    error: Exception
    is_requested: bool
    """Whether the operator requested the end, for example by a pause."""


@dataclass(frozen=True, slots=True)
class LoadsNeeded(RunEvent):
    """Tables must be loaded, for one reason."""

    tables: Sequence[TableName]
    reason: str

    def line(self) -> str:
        return f"{listed(self.tables)}: load needed: {self.reason}; replicate loads the rows, no action needed"

    def record(self) -> tuple[str, Mapping[str, Value]]:
        return "load needed", {"table": listed(self.tables), "tables": len(self.tables), "reason": self.reason}


@dataclass(frozen=True, slots=True)
class CopyStarted(RunEvent):
    table: TableName
    estimate: int
    """The server's estimate of the number of rows; 0 if the server has none."""

    def line(self) -> str:
        return f"{self.table}: loading" + (f" about {self.estimate:,} rows" if self.estimate else "")

    def record(self) -> tuple[str, Mapping[str, Value]]:
        return "loading", {"table": str(self.table), "estimate": self.estimate}


@dataclass(frozen=True, slots=True)
class RowsCopied(RunEvent):
    table: TableName
    rows: int


@dataclass(frozen=True, slots=True)
class CopyEnded(RunEvent):
    table: TableName
    rows: int
    seconds: float

    def line(self) -> str:
        return f"{self.table}: loaded {self.rows:,} rows in {self.seconds:.1f} s"

    def record(self) -> tuple[str, Mapping[str, Value]]:
        return "loaded", {"table": str(self.table), "rows": self.rows, "seconds": self.seconds}


@dataclass(frozen=True, slots=True)
class BatchApplied(RunEvent):
    changes: int
    tables: int
    seconds: float
    lag_bytes: int
    """The bytes of WAL that the server has sent beyond the batch."""
    committed: datetime | None
    """The time of the batch's last commit, in UTC."""

    @property
    def lag_seconds(self) -> float | None:
        return lag.lag_seconds(self.lag_bytes, datetime.now(UTC), self.committed)

    def record(self) -> tuple[str, Mapping[str, Value]]:
        counts = {"changes": self.changes, "tables": self.tables, "seconds": self.seconds, "committed": self.committed}
        return "batch", {"mode": "walsender", **counts, "lag_bytes": self.lag_bytes, "lag_seconds": self.lag_seconds}


@dataclass(frozen=True, slots=True)
class CheckpointSaved(RunEvent):
    """A checkpoint is saved: the destination has every commit before `lsn`."""

    lsn: int
    tables: Mapping[str, TableFigures]

    def loading(self) -> set[str]:
        """Return the names of the tables that are being loaded or are catching up."""
        return {name for name, table in self.tables.items() if table.state is Standing.LOADING}


@dataclass(frozen=True, slots=True)
class ErrorCounted(RunEvent):
    """An error happened that does not end the run."""

    kind: ErrorKind


@dataclass(frozen=True, slots=True)
class TableStopped(RunEvent):
    """replicate no longer applies changes to a table."""

    level = logging.ERROR
    table: TableName
    reason: str

    def line(self) -> str:
        return f"{self.table} is stopped: {self.reason}"


@dataclass(frozen=True, slots=True)
class SchemaChanged(RunEvent):
    """The columns or the key of a stored table have changed."""

    table: TableName
    changes: Sequence[str]

    def line(self) -> str:
        return f"{self.table}: {'; '.join(self.changes)}: replication continues, no action needed"

    def record(self) -> tuple[str, Mapping[str, Value]]:
        return "schema changed", {"table": str(self.table), "changes": "; ".join(self.changes)}


def served_text(address: str) -> str:
    return f"status page: {address}, metrics: {address}metrics"


def listed(tables: Sequence[TableName]) -> str:
    """Return the first five names and the number of the other names."""
    more = len(tables) - _MOST_NAMES
    return ", ".join(map(str, tables[:_MOST_NAMES])) + (f" and {more:,} more" if more > 0 else "")
