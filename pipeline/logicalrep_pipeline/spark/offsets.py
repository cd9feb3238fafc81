"""A position in the WAL as an offset that Spark keeps in the query's checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logicalrep import Lsn
from logicalrep_pipeline.spark.options import OptionError
from logicalrep_pipeline.timelines import Timeline, WalPosition

Offset = dict[str, str | int]


def offset_of(position: WalPosition) -> Offset:
    """A position as an offset: `lsn`, and `system_identifier` and `timeline` where they are known."""
    offset: Offset = {"lsn": str(position.lsn)}
    if position.timeline is not None:
        timeline = position.timeline
        offset |= {"system_identifier": str(timeline.system_identifier), "timeline": timeline.id}
    return offset


def position_of(offset: Mapping[str, Any]) -> WalPosition:
    """The position that an offset stands for; OptionError for one that is none of this source."""
    lsn, system, timeline = (offset.get(name) for name in ("lsn", "system_identifier", "timeline"))
    if not isinstance(lsn, str):
        raise OptionError(f"the checkpoint's offset {dict(offset)!r} is none of this source: start with a new one")
    return WalPosition(Lsn(lsn), None if system is None or timeline is None else Timeline(int(system), int(timeline)))
