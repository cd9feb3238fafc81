"""The loads of the last hour, stored at the destination, so that no table is loaded again and again without end."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from typing import Any

from logicalrep.pipeline.state.state import FOLDER
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.errors import LogicalRepError

MOST_LOADS = 2
"""The most loads of a table for one reason within an hour: a load costs the server too."""
_HOUR = 3600.0


class LoadedTooOftenError(LogicalRepError, RuntimeError):
    """A table that would be loaded for the same reason again and again."""

    code = "LOADED_TOO_OFTEN"


class LoadCounts:
    """Counts the loads of tables by their reasons."""

    def __init__(self, storage: Storage) -> None:
        """Take the destination."""
        self._storage = storage

    def add(self, folder: str, reason: str, partitions: Sequence[int] = ()) -> None:
        """Count a load of the table in a folder, or of partitions of it, which count apart from others.

        Raises LoadedTooOftenError if it is one too many for this reason, whatever numbers that has.
        """
        now, kind = time.time(), re.sub(r"\d[\d,]*", "…", reason)
        if partitions:
            kind += f": {', '.join(map(str, sorted(partitions)))}"
        found = self._storage.parse(self._path(folder), _loads) or []
        loads = [load for load in found if now - _HOUR < load[0] <= now]
        if sum(other == kind for _, other in loads) >= MOST_LOADS:
            raise LoadedTooOftenError(
                f"it was loaded {MOST_LOADS} times within an hour for the same reason ({reason}); to spare the "
                "server it is not loaded again"
            )
        self._storage.write(self._path(folder), json.dumps({"loads": [*loads, (now, kind)]}).encode())

    def clear(self, folder: str) -> None:
        """Forget the loads of a table."""
        self._storage.delete(self._path(folder))

    @staticmethod
    def _path(folder: str) -> str:
        return f"{FOLDER}/loads/{folder}/counts.json"


def _loads(content: Any) -> list[tuple[float, str]]:
    return [(float(moment), str(reason)) for moment, reason in content["loads"]]
