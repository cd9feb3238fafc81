"""The events of `logicalrep replicate`, each with its line for people and its record in the log."""

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
    """The base of the events of a run, which are plain data."""

    __slots__ = ()
    level: ClassVar[int] = logging.INFO
    """The level of `line` in the log."""

    def line(self) -> str | None:
        """Return the line for people; None if the event has none, or is summed up with others."""
        return None

    def record(self) -> tuple[str, Mapping[str, Value]] | None:
        """Return the name and figures that the log has in place of the line; None if it has the line."""
        return None


@dataclass(frozen=True, slots=True)
class _TextEvent(RunEvent):
    text: str

    def line(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class StepStarted(_TextEvent):
    """The run starts a step of its preparation; the step ends with the next one, or with work on tables."""


@dataclass(frozen=True, slots=True)
class WaitReported(_TextEvent):
    """The work waits for something, which is reported again once a minute at least."""

    level = logging.WARNING


@dataclass(frozen=True, slots=True)
class WarningIssued(_TextEvent):
    """A person should know something."""

    level = logging.WARNING


@dataclass(frozen=True, slots=True)
class WarningSolved(_TextEvent):
    """The reason of a warning, which had this text, has ended."""

    def line(self) -> str:
        return f"solved: {self.text}"


@dataclass(frozen=True, slots=True)
class PageServed(RunEvent):
    """The page and the metrics are served."""

    address: str
    """The page's URL."""

    def line(self) -> str:
        return f"the page is at {self.address}, the metrics are at {self.address}metrics"


@dataclass(frozen=True, slots=True)
class RunPrepared(RunEvent):
    """The destination and the server are ready."""

    slot: str
    """The slot's name."""


@dataclass(frozen=True, slots=True)
class RunResumed(RunEvent):
    """The run resumes with tables that have every commit before an LSN."""

    tables: int
    lsn: int

    def line(self) -> str:
        return f"going on with {self.tables:,} table{'' if self.tables == 1 else 's'} from {Lsn(self.lsn)}"

    def record(self) -> tuple[str, Mapping[str, Value]]:
        return "going on", {"tables": self.tables, "lsn": str(Lsn(self.lsn))}


@dataclass(frozen=True, slots=True)
class RunEnded(RunEvent):
    """An error ends the run. The command prints the error itself."""

    error: Exception
    is_requested: bool
    """Whether a person wanted the end, as with a pause."""


@dataclass(frozen=True, slots=True)
class LoadsNeeded(RunEvent):
    """Tables are to be loaded, for one reason."""

    tables: Sequence[TableName]
    reason: str
    """A few words, such as `new table`."""

    def line(self) -> str:
        return f"{listed(self.tables)}: to be loaded: {self.reason}"

    def record(self) -> tuple[str, Mapping[str, Value]]:
        return "load needed", {"table": listed(self.tables), "tables": len(self.tables), "reason": self.reason}


@dataclass(frozen=True, slots=True)
class CopyStarted(RunEvent):
    """The copying of a table's rows has started."""

    table: TableName
    estimate: int
    """The approximate number of rows; 0 if the server does not know it."""

    def line(self) -> str:
        return f"{self.table}: loading about {self.estimate:,} rows"

    def record(self) -> tuple[str, Mapping[str, Value]]:
        return "loading", {"table": str(self.table), "estimate": self.estimate}


@dataclass(frozen=True, slots=True)
class RowsCopied(RunEvent):
    """A part of a table's rows is copied."""

    table: TableName
    rows: int
    """The number of rows of this part."""


@dataclass(frozen=True, slots=True)
class CopyEnded(RunEvent):
    """All rows of a table are copied."""

    table: TableName
    rows: int
    seconds: float

    def line(self) -> str:
        return f"{self.table}: loaded {self.rows:,} rows in {self.seconds:.1f} s"

    def record(self) -> tuple[str, Mapping[str, Value]]:
        return "loaded", {"table": str(self.table), "rows": self.rows, "seconds": self.seconds}


@dataclass(frozen=True, slots=True)
class BatchApplied(RunEvent):
    """The tables have the changes of a batch."""

    changes: int
    """The number of changes."""
    tables: int
    """The number of tables."""
    seconds: float
    lag_bytes: int
    """The bytes of WAL that the server has sent beyond the batch."""
    committed: datetime | None
    """The time of the batch's last commit, in UTC."""

    @property
    def lag_seconds(self) -> float | None:
        """The seconds that the tables are behind now; None if that is unknown."""
        return lag.lag_seconds(self.lag_bytes, datetime.now(UTC), self.committed)

    def record(self) -> tuple[str, Mapping[str, Value]]:
        counts = {"changes": self.changes, "tables": self.tables, "seconds": self.seconds, "committed": self.committed}
        return "batch", {"mode": "walsender", **counts, "lag_bytes": self.lag_bytes, "lag_seconds": self.lag_seconds}


@dataclass(frozen=True, slots=True)
class CheckpointSaved(RunEvent):
    """A checkpoint is saved: the destination has every commit before an LSN."""

    lsn: int
    tables: Mapping[str, TableFigures]
    """The figures of all tables, by their names as in SQL."""

    def loading(self) -> set[str]:
        """Return the tables that load, or whose changes during their load are being applied."""
        return {name for name, table in self.tables.items() if table.state is Standing.LOADING}


@dataclass(frozen=True, slots=True)
class ErrorCounted(RunEvent):
    """An error happened that does not end the run."""

    kind: ErrorKind


@dataclass(frozen=True, slots=True)
class TableStopped(RunEvent):
    """A table is stopped from now on."""

    level = logging.ERROR
    table: TableName
    reason: str

    def line(self) -> str:
        return f"{self.table} is stopped: {self.reason}"


@dataclass(frozen=True, slots=True)
class SchemaChanged(RunEvent):
    """A table at the destination has other columns, or another key, from now on."""

    table: TableName
    changes: Sequence[str]
    """A few words for each change."""

    def line(self) -> str:
        return f"{self.table}: {'; '.join(self.changes)}"

    def record(self) -> tuple[str, Mapping[str, Value]]:
        return "schema changed", {"table": str(self.table), "changes": "; ".join(self.changes)}


def listed(tables: Sequence[TableName]) -> str:
    """Return the first few names of many tables.

    Example:
        >>> listed([TableName("public", f"t{number}") for number in range(300)])
        'public.t0, public.t1, public.t2, public.t3, public.t4 and 295 more'
    """
    more = len(tables) - _MOST_NAMES
    return ", ".join(map(str, tables[:_MOST_NAMES])) + (f" and {more:,} more" if more > 0 else "")
