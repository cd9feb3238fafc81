"""A position in the WAL as an offset that Spark keeps in the query's checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logicalrep import Lsn
from logicalrep_pipeline.spark.options import OptionError
from logicalrep_pipeline.timelines import Timeline, WalPosition

Offset = dict[str, str | int]


def offset_of(position: WalPosition, first_xid: int | None = None) -> Offset:
    """A position as an offset: `lsn`; `system_identifier`, `timeline` and `timeline_began` where they are known.

    `first_xid`: the first transaction, by its 64-bit id, of which all comes to the query; only with two_phase.
    """
    offset: Offset = {"lsn": str(position.lsn)}
    if first_xid is not None:
        offset["first_xid"] = first_xid
    if position.timeline is not None:
        timeline = position.timeline
        offset |= {"system_identifier": str(timeline.system_identifier), "timeline": timeline.id}
        if timeline.began is not None:
            offset["timeline_began"] = str(timeline.began)
    return offset


def first_xid_of(offset: Mapping[str, Any]) -> int | None:
    """The `first_xid` that an offset has."""
    found = offset.get("first_xid")
    return None if found is None else int(found)


def position_of(offset: Mapping[str, Any]) -> WalPosition:
    """The position that an offset stands for; OptionError for one that is none of this source."""
    lsn, system, timeline = (offset.get(name) for name in ("lsn", "system_identifier", "timeline"))
    if not isinstance(lsn, str):
        raise OptionError(
            f"the checkpoint's offset {dict(offset)!r} is none of this source: start with a new one",
            code="CHECKPOINT_FOREIGN",
        )
    if system is None or timeline is None:
        return WalPosition(Lsn(lsn), None)
    # Offsets of earlier versions do not have it.
    began = offset.get("timeline_began")
    return WalPosition(Lsn(lsn), Timeline(int(system), int(timeline), None if began is None else Lsn(began)))
