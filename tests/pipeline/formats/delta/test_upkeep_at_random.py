"""delta-rs at work on a table between the runs of `replicate`, and within them, in partitions with odd characters.

`UPKEEP_SEEDS` is the number of seeds, and `SEED` the first one.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.delta import delta_log
from logicalrep.pipeline.run import replicate_with
from logicalrep.pipeline.storage.storage import Storage
from tests.pipeline.apply.test_applying import mark_in_small_files
from tests.pipeline.comparison import find_differences
from tests.pipeline.formats.delta.test_logged_paths import VALUES
from tests.pipeline.formats.delta.test_other_programs import Loads
from tests.pipeline.test_replicate import settings
from tests.postgres.servers import Database

SEED, SEEDS = int(os.environ.get("SEED", "1")), int(os.environ.get("UPKEEP_SEEDS", "3"))
_WRITES = 30
"""The write of a run before which delta-rs does something: a run with a batch has some dozens."""


class DeltaRs:
    """The upkeep of delta-rs for the table `public.t` of a destination."""

    format = "delta"
    lost_races = (CommitFailedError,)
    """The errors of a commit that came second."""

    def __init__(self, lake: Path, chance: random.Random) -> None:
        """Take the destination, and the chances by which steps differ."""
        self._folder, self._chance = str(lake / "public/t"), chance

    def steps(self) -> Mapping[str, Callable[[], object]]:
        """Return what it may do to the table, by name; none of it changes rows."""
        return {
            "compact": lambda: DeltaTable(self._folder).optimize.compact(),
            "z-order": lambda: DeltaTable(self._folder).optimize.z_order([self._chance.choice(["id", "v"])]),
            "vacuum": self._vacuum,
            "checkpoint": lambda: DeltaTable(self._folder).create_checkpoint(),
            "cleanup": lambda: DeltaTable(self._folder).cleanup_metadata(),
        }

    def _vacuum(self) -> None:
        # Without any retention it would delete the files of a commit that is being made.
        DeltaTable(self._folder).vacuum(retention_hours=1, enforce_retention_duration=False, dry_run=False)


@contextmanager
def before_write(number: int, action: Callable[[], None]) -> Iterator[None]:
    """Do something before the write of a run that has so many before it, once."""
    numbers, lock = count(), threading.Lock()

    def hooked(original: Callable[..., Any]) -> Callable[..., Any]:
        def act(storage: Storage, path: str, *arguments: Any) -> Any:
            with lock:
                is_due = next(numbers) == number
            if is_due:
                action()
            return original(storage, path, *arguments)

        return act

    with pytest.MonkeyPatch.context() as patch:
        for name in ("create", "write", "delete"):
            patch.setattr(Storage, name, hooked(getattr(Storage, name)))
        yield


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(SEED, SEED + SEEDS))
def test_upkeep_of_delta_rs_loads_nothing_and_loses_nothing(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(delta_log, "CHECKPOINT_EVERY", 5)
    mark_in_small_files(monkeypatch)
    chance, lake, loads, steps = random.Random(seed), tmp_path / "lake", Loads(), list[str]()
    mode = chance.choice(["copy-on-write", "merge-on-read"])
    config = {"tables": {"t": {"partition_by": "city", "write_mode": mode}}}
    engine = DeltaRs(lake, chance)
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, city text, v text)")
    quoted = ", ".join("$q$" + value + "$q$" for value in VALUES)
    insert = f"INSERT INTO t SELECT i, (ARRAY[{quoted}, NULL])[1 + i % {len(VALUES) + 1}], 'new' FROM generate_series"

    def replicate() -> None:
        keep = chance.choice([0.0, 24.0])
        wanted = settings(db18, lake, once=True, config=config, keep=keep)
        replicate_with(wanted, loads, engine=SequentialEngine())
        assert find_differences(db18.dsn, str(lake), ["public.t"]) == {}, steps
        assert [reason for reason in loads.reasons if reason != "new table"] == [], steps

    def work() -> None:
        name, step = chance.choice(list(engine.steps().items()))
        steps.append(name)
        with suppress(*engine.lost_races):
            step()

    db18.execute(f"{insert}(1, 60) AS i")
    replicate()
    for number in range(20):
        first = chance.randrange(60)
        db18.execute(
            *chance.sample(
                [
                    f"{insert}({100 + 10 * number}, {104 + 10 * number}) AS i",
                    f"UPDATE t SET v = v || 'u' WHERE id % 7 = {first % 7}",
                    f"UPDATE t SET city = 'ü' WHERE id % 23 = {first % 23}",
                    f"DELETE FROM t WHERE id % 31 = {first % 31}",
                ],
                k=chance.randint(0, 3),
            )
        )
        steps.append("replicate")
        if chance.random() < 0.5:
            with before_write(chance.randrange(_WRITES), work):
                replicate()
        else:
            for _ in range(chance.randrange(3)):
                work()
            if chance.random() < 0.3:
                for path in (lake / "public/t").rglob("*.parquet"):
                    os.utime(path, (1, 1))
            replicate()
