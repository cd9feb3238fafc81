"""A search: every file of a destination restored to an earlier state, or deleted, before the next start.

`RESTORES` is the number of cases of each seed, and `SEED` the first of the seeds.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.state.restoring import SETUP, Destination, cases
from tests.postgres.servers import Database

FORMATS = {"delta": {"format": "delta"}, "iceberg": {"format": "iceberg"}, "catalog": {"format": "iceberg"}}
LAST = ["rows", "kill", "resync", "refuse"]
SEED, RESTORES = int(os.environ.get("SEED", "1")), int(os.environ.get("RESTORES", "30"))


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(SEED, SEED + int(os.environ.get("SEEDS", "3"))))
@pytest.mark.parametrize("kind", FORMATS)
def test_no_table_is_silently_wrong_after_files_were_restored(
    db18: Database, tmp_path: Path, kind: str, seed: int
) -> None:
    options: dict[str, Any] = dict(FORMATS[kind])
    if kind == "catalog":
        options["catalog"] = f"sqlite:///{tmp_path}/catalog.db"
    db18.execute(*SETUP)
    destination = Destination(db18, tmp_path, random.Random(seed), options)
    destination.change_rows()
    destination.replicate()
    for name in ("before", "later"):
        for _ in range(destination.chance.randrange(1, 5)):
            destination.step()
        # Half of the destinations have buffered changes.
        destination.step(LAST[seed % len(LAST)])
        destination.copy(name)
    destination.save_slot()
    happened = list(destination.log)
    for restored in cases(destination, RESTORES):
        destination.log = [*happened, "; then"]
        destination.put_back("later")
        for path, is_deleted in restored:
            destination.restore(path, is_deleted=is_deleted)
        if destination.chance.random() < 0.5:
            destination.change_rows()
        destination.check()
