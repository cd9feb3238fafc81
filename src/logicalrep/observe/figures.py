"""The figures of one reader of a slot, which the metrics are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal, get_args

ErrorKind = Literal["server", "destination", "load", "changes"]
"""The part of the work in which an error happened that did not end the command."""
ERROR_KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind)


class Standing(StrEnum):
    """What a table's phase means for readers: the value of `state` in `status --json` and in the metrics."""

    FOLLOWING = "following"
    LOADING = "loading"
    STOPPED = "stopped"


class Phase(StrEnum):
    """The phases of a table's life, as docs/explanation/lifecycle.md has them."""

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
        """What the phase means for readers."""
        if self in (Phase.HELD, Phase.STOPPED):
            return Standing.STOPPED
        return Standing.FOLLOWING if self is Phase.FOLLOWING else Standing.LOADING


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """The copying of a table's rows under a snapshot."""

    rows: int
    """The number of rows that are copied; it grows with each part of the table."""
    estimate: int
    """About how many there are, as the server estimates; 0 if it does not know."""
    snapshot_since: str
    """The server's time since when the snapshot is held, ISO 8601 in UTC: until the copying ends, it holds back VACUUM.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFigures:
    """The figures of one table."""

    state: Standing
    phase: Phase | None = None
    """The phase of its life; None if that is unknown."""
    version: int | None = None
    """The stored table's version."""
    rows: int | None = None
    """The number of the stored table's rows."""
    rows_copied: int | None = None
    """The rows that loads have copied since the start."""
    committed: datetime | None = None
    """The time of the last commit with changes of the table."""
    error: str | None = None
    """The reason why it is stopped."""
    progress: LoadProgress | None = None
    """The progress of the copying of its rows; None if they are not being copied."""
    unfit: int | None = None
    """The values since its load that their columns' types cannot hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of one reader at one moment; None for one that it does not know. Counts begin with the process."""

    slot: str
    lag_bytes: int | None = None
    lag_seconds: float | None = None
    retained_bytes: int | None = None
    retained_limit: int | None = None
    """The retained bytes at which the slot is lost."""
    changes: int | None = None
    bytes: int | None = None
    """The bytes of the server's messages."""
    batches: int | None = None
    restarts: int | None = None
    """The number of times that a broken connection was made anew."""
    errors: Mapping[ErrorKind, int] = field(default_factory=dict)
    """The number of errors by their kinds."""
    mode: str | None = None
    """`peek` or `walsender`."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """The seconds, by what they were spent on: `server`, `decoding`, `applying`, `spark`."""
    committed: datetime | None = None
    """The time of the last commit that was read."""
    checkpointed: float | None = None
    """The time in seconds since 1970 at which the reader last showed that it goes on."""
    load_snapshot: datetime | None = None
    """The time since when the oldest snapshot of a load is held."""
    tables: Mapping[str, TableFigures] = field(default_factory=dict)
    """The tables by their names, as in SQL."""
