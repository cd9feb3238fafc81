"""The times at which runs replaced a lost slot by themselves."""

from __future__ import annotations

import json
import time
from typing import Any

from logicalrep.pipeline.state.state import FOLDER
from logicalrep.pipeline.storage.storage import Storage

_PATH = f"{FOLDER}/lost_slots.json"
_MOST_SLOTS, _WITHIN = 3, 86400.0
"""The number of lost slots that runs replace, and the seconds within which the next one is an error."""


def may_replace_slot(storage: Storage) -> bool:
    """Count a lost slot; return False, without counting it, if too many were lost lately."""
    current_time = time.time()
    stored = storage.parse(_PATH, _times) or []
    times = [moment for moment in stored if current_time - _WITHIN < moment <= current_time]
    if len(times) >= _MOST_SLOTS:
        return False
    storage.write(_PATH, json.dumps({"times": [*times, current_time]}).encode())
    return True


def _times(content: Any) -> list[float]:
    return [float(moment) for moment in content["times"]]
