"""Offsets: positions in the WAL in the form that Spark keeps in a query's checkpoint."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from logicalrep.postgres.timelines import Timeline, WalPosition
from logicalrep.spark.options import OptionError
from logicalrep_runtime.scalars import Lsn

Offset = dict[str, str | int]


def offset_of(position: WalPosition, **others: str | int | None) -> Offset:
    """Return a position as an offset: `lsn`, and `system_identifier`, `timeline` and `timeline_began` if known.

    `others` are added unless they are None: `slot`, the slot of the position; `relation_id`, the OID of the table that
    is read; and `first_xid`, the 64-bit id of the first transaction that the query receives whole (only with
    two_phase).
    """
    offset: Offset = {"lsn": str(position.lsn)}
    offset |= {name: value for name, value in others.items() if value is not None}
    if position.timeline is not None:
        timeline = position.timeline
        offset |= {"system_identifier": str(timeline.system_identifier), "timeline": timeline.id}
        if timeline.began is not None:
            offset["timeline_began"] = str(timeline.began)
    return offset


def position_of(offset: Mapping[str, Any]) -> WalPosition:
    """Return the position of an offset; raise OptionError for an offset of another source."""
    lsn, system, timeline = (offset.get(name) for name in ("lsn", "system_identifier", "timeline"))
    if not isinstance(lsn, str):
        raise OptionError(
            f"the checkpoint's offset {dict(offset)!r} is not of this source: start with a new checkpoint",
            code="CHECKPOINT_FOREIGN",
        )
    if system is None or timeline is None:
        return WalPosition(Lsn(lsn), None)
    # Offsets of earlier versions lack it.
    began = offset.get("timeline_began")
    return WalPosition(Lsn(lsn), Timeline(int(system), int(timeline), None if began is None else Lsn(began)))


def offset_in_progress(text: str | None) -> object:
    """Return an offset from Spark's progress report, which may be of another source; None without one."""
    if text is None:
        return None
    # With Spark Connect, Spark 4.0 and 4.1 send the text of a dict instead.
    for load in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError):
            return load(text)
    return text
