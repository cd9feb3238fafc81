"""Spark's admission control, which exists from 4.2 on: how much a batch may have, and Trigger.AvailableNow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from logicalrep.spark.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxBytes,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )

    AvailableNow = SupportsTriggerAvailableNow
    HAS_ADMISSION_CONTROL = True
else:
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadMaxBytes,
            ReadMaxRows,
            SupportsTriggerAvailableNow,
        )

        AvailableNow = SupportsTriggerAvailableNow
        HAS_ADMISSION_CONTROL = True
    except ImportError:
        HAS_ADMISSION_CONTROL = False

        class AvailableNow:
            """Spark 4.0 and 4.1 run Trigger.AvailableNow as one batch."""


_MAX_WAL = 256 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """What a batch may have at most, unless its first transaction alone has more."""

    changes: int | None = None
    bytes: int | None = None
    wal: int | None = None
    """So much WAL from its start on, in bytes."""


def read_limit(options: SourceOptions) -> Any:
    """The limit of the options as Spark's object for it."""
    if options.max_changes is not None:
        return ReadMaxRows(options.max_changes)
    return ReadMaxBytes(options.max_bytes or _max_wal(options) or 0)


def limits_of(limit: object | None, options: SourceOptions) -> Limits:
    """What Spark allows for the next batch: all with Trigger.Once, else what the options do."""
    if HAS_ADMISSION_CONTROL and isinstance(limit, ReadAllAvailable):
        return Limits()
    return Limits(options.max_changes, options.max_bytes, _max_wal(options))


def _max_wal(options: SourceOptions) -> int | None:
    """By default there is a bound only where a run can have several batches, so that it ends with all that there was.

    Spark 4.0 and 4.1 make one batch with Trigger.AvailableNow, and do not say that it is that trigger.
    """
    return options.max_wal or (_MAX_WAL if HAS_ADMISSION_CONTROL else None)
