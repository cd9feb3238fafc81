"""The first minute: a first load of small tables, and a run with nothing to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.tables.setting import Ran, Setting

_TABLES, _ROWS = 3, 1_000


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure a first load, and a run after it."""
    for number in range(_TABLES):
        setting.make(f"first_{number}", _ROWS)
    yield _figure(f"first load of {_TABLES} tables of {_ROWS:,} rows", setting.once(setting.folder / "lake"))
    yield _figure("a run with nothing to do", setting.once(setting.folder / "lake"))


def _figure(measured: str, ran: Ran) -> dict[str, Any]:
    return {
        "measured": measured,
        "seconds": round(ran.seconds, 1),
        "CPU-seconds": round(ran.used.seconds, 1),
        "most memory, MiB": ran.used.peak,
    }


__all__ = ["measure"]
