"""Spark's admission control, which exists from 4.2 on: the limits of a batch, and Trigger.AvailableNow."""

from __future__ import annotations

from dataclasses import dataclass

from logicalrep.spark.options import SourceOptions
from logicalrep.spark.peek.pace import Pace

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxBytes,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )

    HAS_ADMISSION_CONTROL = True
except ImportError:
    HAS_ADMISSION_CONTROL = False

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """A stand-in: Spark 4.0 and 4.1 run Trigger.AvailableNow as one batch."""


AvailableNow = SupportsTriggerAvailableNow


_MAX_WAL = 256 << 20


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """The limits of a batch, which only its first transaction may exceed."""

    changes: int | None = None
    bytes: int | None = None
    wal: int | None = None
    """Bytes of WAL from the batch's start."""


def read_limit(options: SourceOptions) -> ReadMaxRows | ReadMaxBytes:
    if options.max_changes is not None:
        return ReadMaxRows(options.max_changes)
    return ReadMaxBytes(options.max_bytes or _max_wal(options) or 0)


def limits_of(limit: object | None, options: SourceOptions, pace: Pace) -> ReadLimits:
    """Return the limits of the next batch: none with Trigger.Once, else the options' limits and the sink's pace."""
    if HAS_ADMISSION_CONTROL and isinstance(limit, ReadAllAvailable):
        return ReadLimits()
    bounds = [wal for wal in (_max_wal(options), pace.bound) if wal is not None]
    return ReadLimits(options.max_changes, options.max_bytes, min(bounds, default=None))


def _max_wal(options: SourceOptions) -> int | None:
    """The default limits only runs that can have several batches, unlike Trigger.AvailableNow of Spark 4.0 and 4.1."""
    return options.max_wal or (_MAX_WAL if HAS_ADMISSION_CONTROL else None)
