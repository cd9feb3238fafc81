"""Spark's admission control, which exists from 4.2 on: how much a batch may have, and Trigger.AvailableNow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from logicalrep_pipeline.spark.options import SourceOptions

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


@dataclass(frozen=True, slots=True)
class Limits:
    """What a batch may have at most, unless its first transaction alone has more."""

    changes: int | None
    bytes: int | None

    def __bool__(self) -> bool:
        return self.changes is not None or self.bytes is not None


def read_limit(options: SourceOptions) -> Any:
    """The limit of the options as Spark's object for it."""
    if options.max_changes is not None:
        return ReadMaxRows(options.max_changes)
    if options.max_bytes is not None:
        return ReadMaxBytes(options.max_bytes)
    return ReadAllAvailable()


def limits_of(limit: object | None, options: SourceOptions) -> Limits:
    """What Spark allows for the next batch; before 4.2 it does not say, and the options hold."""
    if HAS_ADMISSION_CONTROL:
        if isinstance(limit, ReadAllAvailable):
            # So it is with Trigger.Once; and with no limits at all.
            return Limits(None, None)
        if isinstance(limit, ReadMaxRows):
            return Limits(limit.max_rows, options.max_bytes)
        if isinstance(limit, ReadMaxBytes):
            return Limits(options.max_changes, limit.max_bytes)
    return Limits(options.max_changes, options.max_bytes)
