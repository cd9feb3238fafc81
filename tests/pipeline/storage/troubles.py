"""Failing, late and lost answers of an object store."""

from __future__ import annotations

import random

from tests.pipeline.storage.stores import Trouble


class Failures:
    """Trouble with a part of the requests."""

    def __init__(self, seed: int, kinds: list[Trouble], part: float) -> None:
        self._chance = random.Random(seed)
        self._kinds = kinds
        self._part = part
        self.seen: list[Trouble] = []

    def __call__(self, method: str, path: str) -> Trouble:
        if self._chance.random() > self._part:
            return None
        kind = self._chance.choice(self._kinds)
        self.seen.append(kind if method == "PUT" or kind != "lose" else "fail")
        return self.seen[-1]
