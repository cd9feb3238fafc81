"""Random steps: statements at the server, runs of `replicate`, time that passes, and another engine in between.

The other engine works between runs, and within a run at a random write. A run may also sleep at a random write, while
other runs commit so many versions that upkeep deletes the names that the sleeping one knows. After each run that ends
without an error, the table has the rows of the server, and the engine can read what it has made. Steps that change no
rows do not make a run reload the table.
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from logicalrep.observe.observer import Observers
from logicalrep.pipeline.config.settings import ReplicateSettings, shared_options
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.errors import LogicalRepError
from tests.conftest import ROOT
from tests.pipeline.comparison import find_differences
from tests.pipeline.observed_loads import LoadReasons
from tests.pipeline.odd_names import ODD_VALUES
from tests.pipeline.replicating import settings as settings_of
from tests.pipeline.stored import MARKS_IN_SMALL_FILES
from tests.pipeline.upkeep.foreign.engine import FOLDER, ForeignEngine
from tests.postgres.servers import Database
from tests.waiting import eventually

_WRITES = 40
"""The write of a run up to which something happens at one: a run with a batch has some dozens."""
_SLEEPS = 12
"""The write to the table up to which a run sleeps."""
_CITIES = ", ".join(["NULL", *(f"$q${value}$q$" for value in ODD_VALUES)])
"""Values of the column that may partition files: NULL, and values that paths escape."""
_VERSIONS = 8
"""The runs during which another one sleeps: upkeep deletes the names that it knows."""


@dataclass
class Played:
    """What came of some steps."""

    steps: list[str] = field(default_factory=list)
    """What happened, in order."""
    wrong: list[str] = field(default_factory=list)
    """What is wrong; the play ends there."""


EARLY_UPKEEP = replace(
    MARKS_IN_SMALL_FILES,
    metadata_versions=2,
    metadata_seconds=0,
    upkeep_versions=3,
    snapshots=8,
    log_checkpoint_commits=3,
    loads_at_once=1_000_000,
)
"""Upkeep deletes old names and files after a few commits, and tables are loaded as often as steps need it."""


def hook_writes(patch: pytest.MonkeyPatch, number: int, action: Callable[[], None], folder: str = "") -> None:
    """Call an action before a write below a folder of the destination: write `number`, counted from 0."""
    numbers, lock = count(), threading.Lock()

    def hooked(original: Callable[..., Any]) -> Callable[..., Any]:
        def act(storage: Storage, path: str, *arguments: Any) -> Any:
            if path.startswith(folder):
                with lock:
                    is_due = next(numbers) == number
                if is_due:
                    action()
            return original(storage, path, *arguments)

        return act

    for name in ("create", "write", "delete"):
        patch.setattr(Storage, name, hooked(getattr(Storage, name)))


@dataclass(frozen=True)
class Sleeper:
    """A process that replicates once, and stops itself before a write to the table."""

    dsn: str
    lake: str
    options: dict[str, Any]
    number: int
    """The number of writes before it."""

    @contextmanager
    def started(self) -> Iterator[tuple[subprocess.Popen[bytes], bool]]:
        """Yield the process, and whether it sleeps; else it has ended."""
        program = "import pickle, sys; pickle.load(sys.stdin.buffer).run()"
        null = subprocess.DEVNULL
        process = subprocess.Popen(
            [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=null, stderr=null
        )
        try:
            assert process.stdin is not None
            process.stdin.write(pickle.dumps(self))
            process.stdin.close()
            state = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            yield process, state is not None and state.si_code == os.CLD_STOPPED
        finally:
            process.kill()
            process.wait()

    def run(self) -> None:
        """Replicate in this process."""
        settings = ReplicateSettings(self.dsn, self.lake, once=True, keep=0.0, **self.options)
        with pytest.MonkeyPatch.context() as patch:
            hook_writes(patch, self.number, lambda: os.kill(os.getpid(), signal.SIGSTOP), FOLDER)
            replicate_with(settings, Observers(), engine=SequentialEngine(), limits=EARLY_UPKEEP)


class Play:
    """Steps of one seed over one table."""

    def __init__(
        self, db: Database, lake: Path, engine: ForeignEngine, chance: random.Random, settings: TableSettings
    ) -> None:
        """Take a new database and destination, the engine, and the settings of tables."""
        self._db, self._lake, self._engine, self._chance = db, lake, engine, chance
        self._options = {**shared_options(settings), "format": engine.format, "catalog": engine.catalog}
        if (engine.catalog or "").startswith("http"):
            # The server of the test chooses no locations.
            self._options["catalog_options"] = {"access-delegation": "none"}
        if settings.partition_by:
            self._options["config"] = {"tables": {"t": {"partition_by": list(settings.partition_by)}}}
        self._played = Played()
        self._loaded_changes = 0
        """The engine's row changes before the last reload."""

    def run(self, count: int) -> Played:
        """Play so many steps; end with the first one after which something is wrong."""
        self._db.execute(
            "CREATE TABLE t (id int PRIMARY KEY, v text, city text)",
            f"INSERT INTO t SELECT i, repeat('x', i), {_city('i')} FROM generate_series(1, 30) AS i",
        )
        kinds = {
            self._change: 3,
            self._replicate: 3,
            self._work_between: 4,
            self._work_within: 2,
            self._sleep_within: 2,
            self._pass_time: 2,
        }
        self._replicate()
        for kind in self._chance.choices(list(kinds), list(kinds.values()), k=count):
            kind()
            if self._played.wrong:
                break
        else:
            self._replicate()
        return self._played

    # Steps

    def _change(self) -> None:
        first = self._chance.randrange(1, 60)
        self._db.execute(
            *self._chance.sample(
                [
                    f"INSERT INTO t SELECT i, 'new', {_city('i')} FROM generate_series({first}, {first + 5}) AS i "
                    "ON CONFLICT (id) DO UPDATE SET v = t.v || 'u'",
                    f"UPDATE t SET v = v || '{first}' WHERE id % 7 = {first % 7}",
                    f"UPDATE t SET city = {_city(f'id + {first}')} WHERE id % 13 = {first % 13}",
                    f"DELETE FROM t WHERE id % 11 = {first % 11}",
                ],
                k=self._chance.randint(1, 4),
            )
        )
        self._played.steps.append("changes")

    def _pass_time(self) -> None:
        """Let all files be so old that a search takes those that nobody needs for orphans."""
        for path in (self._lake / FOLDER).rglob("*"):
            with suppress(FileNotFoundError):
                if path.is_file():
                    os.utime(path, (0, 0))
        self._played.steps.append("time passes")

    def _replicate(self) -> None:
        # With 0 hours all that nobody needs goes at once.
        keep = self._chance.choice([0.0, 0.0, 24.0])
        self._played.steps.append(f"replicate --keep {keep}")
        loads, wanted = LoadReasons(), settings_of(self._db, self._lake, once=True, keep=keep, **self._options)
        row_changes = self._engine.row_changes
        try:
            replicate_with(wanted, loads, engine=SequentialEngine(), limits=EARLY_UPKEEP)
        except LogicalRepError as error:
            self._played.wrong.append(f"replicate ended with {error}")
            return
        if self._engine.row_changes > row_changes:
            # The other engine changed rows within the run, perhaps after the last commit of the run.
            self._replicate()
            return
        self._compare()
        reasons = [reason for reason in loads.reasons if reason != "new table"]
        if reasons and row_changes == self._loaded_changes:
            self._played.wrong.append(f"no step changed rows, and the table was reloaded: {reasons}")
        elif reasons:
            self._loaded_changes = row_changes

    def _work_between(self) -> None:
        for _ in range(self._chance.randint(1, 3)):
            self._work()
        self._played.wrong += self._engine.find_losses()

    def _work(self) -> None:
        name, step = self._chance.choice(list(self._engine.steps().items()))
        self._played.steps.append(name)
        with suppress(*self._engine.lost_races):
            step()

    def _work_within(self) -> None:
        self._change()
        with self._at_random_write(self._work):
            self._replicate()

    def _sleep_within(self) -> None:
        """Let a run sleep at a write to the table, and wake after many others."""
        self._change()
        sleeper = Sleeper(self._db.dsn, str(self._lake), self._options, self._chance.randrange(_SLEEPS))
        with sleeper.started() as (process, is_asleep):
            if is_asleep:
                self._played.steps.append("a run sleeps")
                self._go_on_without()
                os.kill(process.pid, signal.SIGCONT)
                process.wait(300)
                self._played.steps.append(f"it woke, and ended with {process.returncode}")
        if not self._played.wrong:
            self._replicate()

    def _go_on_without(self) -> None:
        name = self._db.name
        active = f"SELECT count(*) FROM pg_replication_slots WHERE database = '{name}' AND active_pid IS NOT NULL"
        # As the server does once a process has not answered for wal_sender_timeout.
        self._db.value(
            f"SELECT count(pg_terminate_backend(active_pid)) FROM pg_replication_slots WHERE database = '{name}'"
        )
        eventually(lambda: self._db.value(active) == 0)
        for _ in range(_VERSIONS):
            self._change()
            self._replicate()
            if self._played.wrong:
                break

    @contextmanager
    def _at_random_write(self, action: Callable[[], None]) -> Iterator[None]:
        """Do something before a random write of this context, once."""
        with pytest.MonkeyPatch.context() as patch:
            hook_writes(patch, self._chance.randrange(_WRITES), action)
            yield

    # Comparison

    def _compare(self) -> None:
        self._played.wrong += find_differences(self._db.dsn, str(self._lake), ["public.t"]).values()
        self._played.wrong += self._engine.find_losses()


def _city(number: str) -> str:
    return f"(ARRAY[{_CITIES}])[1 + ({number}) % {len(ODD_VALUES) + 1}]"
