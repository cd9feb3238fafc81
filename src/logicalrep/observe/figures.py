"""The figures of one reader of a slot: the input of the metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal, get_args

ErrorKind = Literal["server", "destination", "load", "changes"]
"""The source of an error that did not end the command."""
ERROR_KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind)


class Standing(StrEnum):
    """A table's state for its readers: `state` in `status --json` and in the metrics."""

    FOLLOWING = "following"
    LOADING = "loading"
    STOPPED = "stopped"


class Phase(StrEnum):
    """The phases of a table's life; see docs/explanation/lifecycle.md."""

    OPENING = "opening"
    QUEUED = "queued"
    COPYING = "copying"
    CATCHING_UP = "catching up"
    FOLLOWING = "following"
    HELD = "held"
    STOPPED = "stopped"
    UNPUBLISHED = "unpublished"

    @property
    def standing(self) -> Standing:
        if self in (Phase.HELD, Phase.STOPPED):
            return Standing.STOPPED
        return Standing.FOLLOWING if self is Phase.FOLLOWING else Standing.LOADING


@dataclass(frozen=True, slots=True)
class LoadProgress:
    rows: int
    """The number of copied rows; it grows with each part of the table."""
    estimate: int
    """The server's estimate of the table's rows; 0 if the server has none."""
    snapshot_since: str
    """The server's time when it exported the snapshot, ISO 8601 in UTC; the snapshot holds back VACUUM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFigures:
    """The figures of one table; None for an unknown figure."""

    state: Standing
    phase: Phase | None = None
    version: int | None = None
    rows: int | None = None
    rows_copied: int | None = None
    """The rows that loads have copied since the process started."""
    committed: datetime | None = None
    error: str | None = None
    progress: LoadProgress | None = None
    """None if no load is copying rows."""
    unfit: int | None = None
    """The number of values since the load that the type of their column cannot hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of one reader at one time; None for an unknown figure. Counts start with the process."""

    slot: str
    lag_bytes: int | None = None
    lag_seconds: float | None = None
    retained_bytes: int | None = None
    retained_limit: int | None = None
    """The retained bytes at which PostgreSQL invalidates the slot."""
    changes: int | None = None
    bytes: int | None = None
    batches: int | None = None
    restarts: int | None = None
    errors: Mapping[ErrorKind, int] = field(default_factory=dict)
    mode: str | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    """The seconds by stage: `server`, `decoding`, `applying`, `spark`."""
    committed: datetime | None = None
    checkpointed: float | None = None
    """When the reader last showed progress, in seconds since 1970."""
    load_snapshot: datetime | None = None
    """When the oldest snapshot of a current load was exported."""
    tables: Mapping[str, TableFigures] = field(default_factory=dict)
