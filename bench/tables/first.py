"""The first minute: a first load of small tables, a run with nothing to do, and an idle process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from bench.tables.setting import Ran, Setting

_TABLES, _ROWS = 3, 1_000
_IDLE = 10.0
"""The seconds of an idle process."""


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure a first load, a run after it, and a process that follows while nothing changes."""
    for number in range(_TABLES):
        setting.make(f"first_{number}", _ROWS)
    yield _figure(f"first load of {_TABLES} tables of {_ROWS:,} rows", setting.once(setting.folder / "lake"))
    yield _figure("a run with nothing to do", setting.once(setting.folder / "lake"))
    with setting.following(setting.folder / "lake", "--engine", "local") as usage:
        time.sleep(_IDLE)
    yield {
        "measured": "an idle process that follows, --engine local",
        "CPU-seconds a minute": round(usage.used.seconds * 60 / _IDLE, 1),
        "most memory, MiB": usage.used.peak,
    }


def _figure(measured: str, ran: Ran) -> dict[str, Any]:
    return {
        "measured": measured,
        "seconds": round(ran.seconds, 1),
        "CPU-seconds": round(ran.used.seconds, 2),
        "most memory, MiB": ran.used.peak,
    }


__all__ = ["measure"]
