"""Spark's checkpoint of a query: its offsets (positions in the WAL), and the positions it certainly contains."""

from __future__ import annotations

import ast
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from logicalrep.postgres.timelines import Timeline, WalPosition
from logicalrep.spark.options import OptionError
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn

Offset = dict[str, str | int]


def offset_of(
    position: WalPosition, *, slot: str | None = None, first_xid: int | None = None, relation_id: int | None = None
) -> Offset:
    """Return the offset of a position, without the arguments that are None.

    `first_xid` is the first transaction that was received whole; only streams with two_phase have it.
    """
    offset: Offset = {"lsn": str(position.lsn)}
    optional = {"slot": slot, "first_xid": first_xid, "relation_id": relation_id}
    offset |= {key: value for key, value in optional.items() if value is not None}
    if position.timeline is not None:
        timeline = position.timeline
        offset |= {"system_identifier": str(timeline.system_identifier), "timeline": timeline.id}
        if timeline.began is not None:
            offset["timeline_began"] = str(timeline.began)
    return offset


def position_of(offset: Mapping[str, Any]) -> WalPosition:
    """Return the position of an offset; raise OptionError for another source's offset."""
    lsn, system, timeline = (offset.get(name) for name in ("lsn", "system_identifier", "timeline"))
    if not isinstance(lsn, str):
        raise OptionError(
            f"the checkpoint's offset {dict(offset)!r} is not of this source: start with a new checkpoint",
            code="CHECKPOINT_FOREIGN",
        )
    if system is None or timeline is None:
        return WalPosition(Lsn(lsn), None)
    began = offset.get("timeline_began")
    return WalPosition(Lsn(lsn), Timeline(int(system), int(timeline), None if began is None else Lsn(began)))


def offset_in_progress(text: str | None) -> object:
    """Return an offset from Spark's progress report, which may be another source's; None without an offset."""
    if text is None:
        return None
    # With Spark Connect, Spark 4.0 and 4.1 send the text of a dict instead.
    for load in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError):
            return load(text)
    return text


_SETTLED = 10.0
"""Seconds after which an idle query's checkpoint contains its first batch, which Spark always begins to write."""


class AsyncProgressError(LogicalRepError, RuntimeError):
    """Spark begins a batch although its checkpoint may lack the previous batch."""

    code = "ASYNC_PROGRESS"


class Commits:
    """The positions that a query's checkpoint certainly contains, derived from Spark's calls of its reader.

    Spark calls `commit` with the committed offset before it plans the next batch. From 4.2 on Spark also passes the
    end of the last batch as the start of the next: earlier than `commit`, and the only call for an idle query. With
    the sink's option `asyncProgressTrackingEnabled` Spark writes its checkpoint later, and not for each batch: the
    checkpoint may lack that start.
    """

    def __init__(self) -> None:
        self._first: Lsn | None = None
        # The last batch, and whether Spark had committed all before it by then.
        self._start = self._end = Lsn(0)
        self._is_proven = False
        self._committed = Lsn(0)
        self._last_request: tuple[Lsn, float] | None = None

    def record_commit(self, end: Lsn) -> None:
        self._committed = max(self._committed, end)

    def record_batch(self, start: Lsn, end: Lsn) -> None:
        """Record that Spark begins a batch; raise AsyncProgressError if it has not committed the previous batch."""
        if start == end or (start, end) == (self._start, self._end):
            return
        self._is_proven = start <= self._committed
        if self._first is None:
            # The first batch of a process has no other before it, or is one that an earlier process has begun.
            self._first = start
        elif self._end and not self._is_proven:
            raise AsyncProgressError(
                f"Spark reads from {start}, but has committed only up to {self._committed}, as with the sink's option "
                "asyncProgressTrackingEnabled: remove that option, and the query resumes from its checkpoint"
            )
        self._start, self._end = start, end

    def has(self, start: Lsn) -> bool:
        """Return whether the checkpoint contains everything before `start`, the start of the next batch."""
        if self._first is None:
            self._first = start
        if start <= max(self._first, self._committed) or (start == self._end and self._is_proven):
            return True
        time_now = time.monotonic()
        if self._last_request is None or self._last_request[0] != start:
            self._last_request = start, time_now
        return time_now - self._last_request[1] >= _SETTLED
