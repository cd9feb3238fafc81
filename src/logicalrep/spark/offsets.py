"""A position in the WAL as an offset that Spark keeps in the query's checkpoint."""

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
    """A position as an offset: `lsn`; `system_identifier`, `timeline` and `timeline_began` where they are known.

    `others` are in it where they are not None: `slot`, of which it is a position; `relation_id`, the OID of the table
    that is read; and `first_xid`, the first transaction, by its 64-bit id, of which all comes to the query (only with
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


def offset_in_progress(text: str | None) -> Any:
    """An offset as Spark's progress report has it, which may be one of another source; None where there is none."""
    if text is None:
        return None
    # With Spark Connect, Spark 4.0 and 4.1 have made a dict of it, and a text of that.
    for load in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError):
            return load(text)
    return text
