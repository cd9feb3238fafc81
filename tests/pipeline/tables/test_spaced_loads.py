"""Workloads that need many loads, on a machine whose cores are all busy: each ends right, once its loads come to rest."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic, sleep

import psycopg
import pytest

from logicalrep.observe.events import RunEvent, TableStopped
from logicalrep.observe.observer import Observer
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.server import Connection
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import replicate_meanwhile
from tests.postgres.servers import Database

pytestmark = [pytest.mark.postgres, pytest.mark.thorough]

SECONDS = float(os.environ.get("SPACED_LOADS_SECONDS", "20"))
"""The seconds of each workload."""


class _Watched(Observer):
    """Collects the tables that stop."""

    def __init__(self) -> None:
        self.stopped: list[str] = []

    def on_event(self, event: RunEvent) -> None:
        match event:
            case TableStopped(table, reason):
                self.stopped.append(f"{table}: {reason}")


def _spin() -> None:
    while True:
        pass


@pytest.fixture
def busy_cores() -> Iterator[None]:
    """Keep each core busy twice over."""
    processes = [
        multiprocessing.get_context("spawn").Process(target=_spin, daemon=True)
        for _ in range(2 * (os.cpu_count() or 1))
    ]
    for process in processes:
        process.start()
    yield
    for process in processes:
        process.kill()
        process.join()


def add_and_drop_columns(db: Connection, number: int) -> None:
    db.execute(f"ALTER TABLE t ADD c int DEFAULT {number}")
    db.execute(f"INSERT INTO t (id, v, c) VALUES ({number}, 'with', {number})")
    db.execute(f"UPDATE t SET v = 'changed', c = c + 1 WHERE id % 7 = {number % 7}")
    db.execute("ALTER TABLE t DROP c")
    db.execute(f"UPDATE t SET v = 'without' WHERE id % 5 = {number % 5}")


def drop_and_create(db: Connection, number: int) -> None:
    column = ("a int", "b text", "c numeric")[number % 3]
    db.execute(f"DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, v text, {column})")
    db.execute("INSERT INTO t (id, v) SELECT i, 'new' FROM generate_series(1, 200) AS i")
    db.execute(f"DELETE FROM t WHERE id % 3 = {number % 3}")


def move_between_partitions(db: Connection, number: int) -> None:
    part, earlier = f"t{number % 4}", f"t{(number + 3) % 4}"
    low = 10 * (number % 4)
    with suppress(psycopg.errors.UndefinedTable):
        db.execute(f"DROP TABLE {part}" if number % 2 else f"ALTER TABLE t DETACH PARTITION {part}; DROP TABLE {part}")
    db.execute(f"CREATE TABLE {part} PARTITION OF t FOR VALUES FROM ({low}) TO ({low + 10})")
    db.execute(
        f"INSERT INTO t SELECT i, 'there', {low} + i % 10 FROM generate_series({100 * number}, {100 * number + 49}) AS i"
    )
    with suppress(psycopg.errors.CheckViolation):
        db.execute(f"UPDATE t SET place = {low} WHERE id % 3 = 0 AND place < 40")
    with suppress(psycopg.errors.UndefinedTable):
        db.execute(f"DELETE FROM {earlier} WHERE id % 5 = 0")


def write_many_rows(db: Connection, number: int) -> None:
    """Rows of one transaction, beside statements that rewrite their table."""
    low = 4001 * number
    db.execute(f"INSERT INTO t SELECT i, 'many' FROM generate_series({low}, {low + 4000}) AS i")
    db.execute(("ALTER TABLE t ALTER v TYPE text USING v || '+'", "TRUNCATE t", "VACUUM FULL t")[number % 3])
    db.execute(f"DELETE FROM t WHERE id % 11 = {number % 11}")


def attach_filled_partitions(db: Connection, number: int) -> None:
    part, low = f"t{number % 4}", 10 * (number % 4)
    with suppress(psycopg.errors.UndefinedTable):
        db.execute(f"DROP TABLE {part}")
    db.execute(f"CREATE TABLE {part} (id int, v text, place int, PRIMARY KEY (id, place))")
    first = 10_000 * number
    db.execute(f"INSERT INTO {part} SELECT i, 'many', {low} FROM generate_series({first}, {first + 4000}) AS i")
    db.execute(f"ALTER TABLE t ATTACH PARTITION {part} FOR VALUES FROM ({low}) TO ({low + 10})")
    db.execute(f"INSERT INTO t SELECT i, 'later', {low} FROM generate_series({first + 5000}, {first + 5099}) AS i")
    db.execute(f"UPDATE t SET v = 'changed' WHERE id % 13 = {number % 13}")


PLAIN = "CREATE TABLE t (id int PRIMARY KEY, v text)"
PARTED = "CREATE TABLE t (id int, v text, place int, PRIMARY KEY (id, place)) PARTITION BY RANGE (place)"
WORKLOADS: dict[Callable[[Connection, int], None], str] = {
    add_and_drop_columns: PLAIN,
    drop_and_create: PLAIN,
    write_many_rows: PLAIN,
    move_between_partitions: PARTED,
    attach_filled_partitions: PARTED,
}


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.__name__)
@pytest.mark.usefixtures("busy_cores")
def test_postponed_loads_of_a_workload_end_with_equal_rows(
    db18: Database,
    tmp_path: Path,
    workload: Callable[[Connection, int], None],
) -> None:
    # Each load waits, also the first one for a reason.
    limits = Limits(loads_at_once=0, load_pause_seconds=1.0)
    db18.execute(WORKLOADS[workload], "CREATE TABLE other (id int PRIMARY KEY)")
    if WORKLOADS[workload] is PLAIN:
        db18.execute("INSERT INTO t SELECT i, 'old' FROM generate_series(-500, -1) AS i")
    observer, tables = _Watched(), ["public.t", "public.other"]
    errors: list[BaseException] = []
    is_over = threading.Event()

    def write_others() -> None:
        try:
            with closing(db18.writer()) as writer:
                number = 0
                while not is_over.is_set():
                    number += 1
                    writer.execute(f"INSERT INTO other VALUES ({number})")
                    sleep(0.01)
        except BaseException as error:
            errors.append(error)

    with replicate_meanwhile(db18, tmp_path, observer, limits=limits) as caught_up, closing(db18.writer()) as writer:
        beside = threading.Thread(target=write_others)
        beside.start()
        caught_up()
        end, number = monotonic() + SECONDS, 0
        while monotonic() < end:
            number += 1
            workload(writer, number)
            # At first the rounds come apart, so that each is found out, and then faster than they are.
            sleep(max(0.5 - number / 40, 0.0))
        is_over.set()
        beside.join()
        caught_up(seconds=900, tables=tables)
        assert find_differences(db18.dsn, str(tmp_path), tables) == {}
        # What follows says so, and nothing is said of the others.
        states = State.read(Storage(str(tmp_path))).tables
        assert {name: states[name].error for name in tables} == dict.fromkeys(tables)
    assert (observer.stopped, errors) == ([], [])
