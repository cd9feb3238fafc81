"""The stored counts of loads by table and reason: repeated loads for one reason are spaced out."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from typing import Any

from logicalrep.pipeline.state.state import FOLDER
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.errors import LogicalRepError

_LONGEST_PAUSE = 3600.0
"""The most seconds before a load; a stored time further away comes from a clock that was ahead."""


def pause_until(begin: float | None) -> float:
    """Return the seconds until `begin`, in seconds since 1970; 0 if a load may begin now."""
    pause = 0.0 if begin is None else begin - time.time()
    return pause if 0 < pause <= _LONGEST_PAUSE else 0.0


class LoadedTooOftenError(LogicalRepError, RuntimeError):
    """A table that was reloaded repeatedly for the same reason, so that its next load waits."""

    code = "LOADED_TOO_OFTEN"


class ReloadLimiter:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def add(self, folder: str, reason: str, partitions: Sequence[int] = ()) -> float | None:
        """Count a load of a table or some partitions (counted separately; numbers in reasons are ignored); return when
        it may begin, in seconds since 1970, or None for at once. A count expires two longest pauses after its last
        load."""
        current_time, limits = time.time(), self._storage.limits
        kind = re.sub(r"\d[\d,]*", "…", reason)
        if partitions:
            kind += f": {', '.join(map(str, sorted(partitions)))}"
        stored = self._storage.parse(self._path(folder), _loads) or {}
        earliest, latest = current_time - 2 * _LONGEST_PAUSE, current_time + _LONGEST_PAUSE
        loads = {other: load for other, load in stored.items() if earliest < load[0] <= latest}
        _, count = loads.get(kind, (current_time, 0))
        begin = None
        if count >= limits.loads_at_once:
            begin = current_time + min(
                limits.load_pause_seconds * 2 ** min(count - limits.loads_at_once, 16), _LONGEST_PAUSE
            )
        loads[kind] = begin or current_time, count + 1
        content = [(moment, other, number) for other, (moment, number) in loads.items()]
        self._storage.write(self._path(folder), json.dumps({"loads": content}).encode())
        return begin

    def clear(self, folder: str) -> None:
        self._storage.delete(self._path(folder))

    @staticmethod
    def _path(folder: str) -> str:
        return f"{FOLDER}/reloads/{folder}.json"


def _loads(content: Any) -> dict[str, tuple[float, int]]:
    return {str(reason): (float(moment), int(count)) for moment, reason, count in content["loads"]}
