"""The first minute: small tables where no loop is compiled, then where all are, and a run with nothing to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.tables.setting import Ran, Setting

_TABLES, _ROWS = 3, 1_000


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure first loads, the first of them with an empty folder for compiled loops, and a run after them."""
    for number in range(_TABLES):
        setting.make(f"first_{number}", _ROWS)
    # The first load of a table has the loops compiled.
    setting.make("large", 20_000)
    setting.once(setting.folder / "large")
    setting.connection.execute("DROP TABLE large")
    nowhere = str(setting.folder / "loops")
    what = f"first load of {_TABLES} tables of {_ROWS:,} rows"
    yield _figure(f"{what}, no loop compiled yet", setting.once(setting.folder / "cold", NUMBA_CACHE_DIR=nowhere))
    yield _figure(f"{what}, loops compiled", setting.once(setting.folder / "warm"))
    yield _figure("a run with nothing to do", setting.once(setting.folder / "warm"))


def _figure(measured: str, ran: Ran) -> dict[str, Any]:
    return {
        "measured": measured,
        "seconds": round(ran.seconds, 1),
        "CPU-seconds": round(ran.used.seconds, 1),
        "most memory, MiB": ran.used.peak,
    }


__all__ = ["measure"]
