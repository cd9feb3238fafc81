"""Processes that are stopped for a while, and wake when another one replicates to the same destination."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from logicalrep.pipeline.state.state import State, StateError, States
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn
from tests.conftest import ROOT
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import TABLES, replicate_meanwhile, replicate_once
from tests.postgres.servers import Database
from tests.waiting import eventually

PROGRAM = """
import sys, threading
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.observe.observer import Observers
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.engine import SequentialEngine

settings = ReplicateSettings(dsn=ConnectionSettings(sys.argv[1]), to=sys.argv[2], every=0.0)
replicate_with(settings, Observers(), engine=SequentialEngine())
"""


@contextmanager
def start_replicating(db: Database, storage: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Replicate in a process of its own, without Spark."""
    with log.open("wb") as output:
        arguments = [sys.executable, "-c", PROGRAM, db.dsn, str(storage)]
        process = subprocess.Popen(arguments, cwd=ROOT, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_process_that_wakes_behind_another_one_ends_and_harms_nothing(shop: Database, tmp_path: Path) -> None:
    lake, storage = tmp_path / "lake", Storage(str(tmp_path / "lake"))
    name = shop.name

    def reader() -> object:
        return shop.value(
            f"SELECT max(active_pid) FROM pg_replication_slots WHERE database = '{name}' AND NOT temporary"
        )

    with start_replicating(shop, lake, tmp_path / "log") as first:
        eventually(lambda: len(State.read(storage).tables) == len(TABLES))
        eventually(lambda: all(table.state == "following" for table in State.read(storage).tables.values()))
        shop.execute("UPDATE customer SET city = 'Fulda' WHERE id < 100")
        os.kill(first.pid, signal.SIGSTOP)
        # As the server does once the process has not answered for wal_sender_timeout.
        shop.execute(f"SELECT pg_terminate_backend({reader()})")
        eventually(lambda: reader() is None)
        with replicate_meanwhile(shop, lake) as caught_up:
            shop.execute("UPDATE orders SET price = 1 WHERE id < 100")
            caught_up()
            previous_state = State.read(storage)
            os.kill(first.pid, signal.SIGCONT)
            assert first.wait(300) != 0
            assert "[DESTINATION_HAS_WRITER]" in (tmp_path / "log").read_text()
            assert State.read(storage).lsn >= previous_state.lsn
            shop.execute("DELETE FROM orders WHERE id % 7 = 0")
            caught_up()
    assert find_differences(shop.dsn, str(lake), TABLES) == {}
    replicate_once(shop, lake)
    assert find_differences(shop.dsn, str(lake), TABLES) == {}


def test_a_state_goes_forward_only(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    first = States(storage)
    for lsn in range(1, 6):
        first.write(replace(first.last, lsn=Lsn(lsn)))
    files = sorted(path.name for path in (tmp_path / "_logicalrep" / "states").iterdir())
    assert files == [f"{number:020}.json" for number in (4, 5)]
    second = States(storage)
    assert second.last.lsn == Lsn(5)
    second.write(replace(second.last, lsn=Lsn(6)))
    with pytest.raises(StateError, match="DESTINATION_HAS_WRITER"):
        first.write(replace(first.last, lsn=Lsn(5)))
    # Its number may have been removed meanwhile: the highest counts all the same, and it ends.
    for lsn in range(7, 10):
        second.write(replace(second.last, lsn=Lsn(lsn)))
    for action in (first.check, lambda: first.write(first.last)):
        with pytest.raises(StateError, match="another process has replicated"):
            action()
    assert State.read(storage).lsn == Lsn(9)


def test_a_state_of_before_a_drop_is_not_that_of_the_tables_that_came_after_it(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    first = States(storage)
    for lsn in range(1, 6):
        first.write(replace(first.last, lsn=Lsn(lsn)))
    for path in storage.list("_logicalrep"):
        storage.delete(path)
    for action in (first.check, lambda: first.write(first.last)):
        with pytest.raises(StateError, match="another process has replicated"):
            action()
    assert storage.list("_logicalrep") == []
    second = States(storage)
    second.write(State(Lsn(100)))
    with pytest.raises(StateError, match="another process has replicated"):
        first.write(first.last)
    assert State.read(storage).lsn == Lsn(100)
    second.write(State(Lsn(101)))


def test_a_lost_answer_to_a_state_is_no_other_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage(str(tmp_path))
    states, create = States(storage), Storage.create

    def lost(storage: Storage, path: str, data: bytes) -> bool:
        create(storage, path, data)
        return create(storage, path, data)

    monkeypatch.setattr(Storage, "create", lost)
    states.write(State(Lsn(1)))
    assert State.read(storage).lsn == Lsn(1)


def test_the_copy_of_the_state_is_believed_by_nobody(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    States(storage).write(State(Lsn(7)))
    copy = tmp_path / "_logicalrep" / "state.json"
    copy.write_bytes(State(Lsn(3)).to_json("another"))
    assert State.read(storage).lsn == Lsn(7)
    copy.unlink()
    assert State.read(storage).lsn == Lsn(7)


def test_a_check_in_another_thread_recognises_its_own_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    states, create, errors = States(Storage(str(tmp_path))), Storage.create, []

    def check() -> None:
        try:
            states.check()
        except StateError as error:
            errors.append(error)

    thread = threading.Thread(target=check)

    def created(storage: Storage, path: str, data: bytes) -> bool:
        is_made = create(storage, path, data)
        thread.start()
        # It ends, or waits for the write to end.
        thread.join(0.2)
        return is_made

    monkeypatch.setattr(Storage, "create", created)
    states.write(replace(states.last, lsn=Lsn(1)))
    thread.join()
    assert errors == []
