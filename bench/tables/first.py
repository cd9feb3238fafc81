"""The first minute: small tables where no loop was compiled yet, then again, and a run with nothing to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.tables.setting import Ran, Setting

_TABLES, _ROWS = 3, 1_000


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure first loads with compiled loops of a folder that is empty at first, and a run after them."""
    for number in range(_TABLES):
        setting.make(f"first_{number}", _ROWS)
    loops = str(setting.folder / "loops")
    what = f"first load of {_TABLES} tables of {_ROWS:,} rows"
    yield _figure(f"{what}, no loop compiled yet", setting.once(setting.folder / "cold", NUMBA_CACHE_DIR=loops))
    yield _figure(f"{what}, loops compiled", setting.once(setting.folder / "warm", NUMBA_CACHE_DIR=loops))
    yield _figure("a run with nothing to do", setting.once(setting.folder / "warm", NUMBA_CACHE_DIR=loops))


def _figure(measured: str, ran: Ran) -> dict[str, Any]:
    return {
        "measured": measured,
        "seconds": round(ran.seconds, 1),
        "CPU-seconds": round(ran.used.seconds, 1),
        "most memory, MiB": ran.used.peak,
    }


__all__ = ["measure"]
