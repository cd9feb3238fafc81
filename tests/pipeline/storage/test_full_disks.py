"""Places that cannot be written for a while, and files that are gone."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from logicalrep.observe.events import DestinationFailing, RunEvent, WaitEnded, WaitReported
from logicalrep.observe.observer import Observer
from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.stored_table import Position
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import DamagedError, Storage, StorageError
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.comparison import find_differences
from tests.pipeline.histories import History
from tests.pipeline.replicating import TABLES, replicate_meanwhile
from tests.pipeline.storage.disks import fill, read_only, small_disk
from tests.pipeline.stored import APP, new_log, rows_at
from tests.postgres.servers import Database
from tests.waiting import eventually


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    with small_disk(tmp_path / "disk") as folder:
        yield folder


def test_a_full_disk_leaves_the_last_version_and_no_rests(disk: Path) -> None:
    storage = Storage(str(disk))
    log = new_log(storage, ("id",))
    history = History(("id",), random.Random(1))
    for _ in range(30):
        history.insert()
    apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    rows = rows_at(storage)
    filling = fill(disk)
    names = set(disk.rglob("*"))
    history.update()
    changes = history.take()
    for _ in range(3):
        with pytest.raises(StorageError, match="No space left"):
            apply(log, changes, Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    assert set(disk.rglob("*")) == names
    assert rows_at(storage) == rows
    filling.unlink()
    apply(log, changes, Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    assert rows_at(storage) == history.truth()


def test_a_read_only_disk_is_one_error(disk: Path) -> None:
    storage = Storage(str(disk))
    log = new_log(storage, ("id",))
    history = History(("id",), random.Random(1))
    history.insert()
    changes = history.take()
    with read_only(disk), pytest.raises(StorageError, match="Read-only"):
        apply(log, changes, Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    apply(log, changes, Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    assert rows_at(storage) == history.truth()


def test_a_data_file_that_is_gone_or_cut_is_damage(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    log = new_log(storage, ("id",))
    history = History(("id",), random.Random(1))
    for _ in range(9):
        history.insert()
    apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    (path,) = tmp_path.rglob("part-*.parquet")
    history.update()
    changes = history.take()
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DamagedError, match="is damaged"):
        apply(log, changes, Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    path.unlink()
    with pytest.raises(DamagedError, match="does not exist"):
        apply(log, changes, Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    with pytest.raises(DamagedError, match="nothing is deleted"):
        log.maintain(24)


class LinePrinter(Observer):
    """Keeps what the command waits for."""

    def __init__(self) -> None:
        self.waited: list[str] = []
        self.failures: list[DestinationFailing | WaitEnded] = []

    def on_event(self, event: RunEvent) -> None:
        match event:
            case WaitReported(text):
                self.waited.append(text)
            case DestinationFailing() | WaitEnded():
                self.failures.append(event)


@pytest.mark.parametrize("trouble", ["full", "read-only"])
def test_the_loop_waits_for_a_disk_and_continues(shop: Database, disk: Path, trouble: str) -> None:
    lines = LinePrinter()
    with replicate_meanwhile(shop, disk / "lake", lines, limits=Limits(failing_seconds=0.0)) as caught_up:
        caught_up()
        lsn = State.read(Storage(str(disk / "lake"))).lsn
        with read_only(disk) if trouble == "read-only" else contextlib.nullcontext():
            filling = fill(disk) if trouble == "full" else None
            shop.execute("UPDATE customer SET city = 'Fulda' WHERE id < 100", "DELETE FROM orders WHERE id % 2 = 0")
            eventually(lambda: any("WAL" in event.text for event in lines.failures))
            assert State.read(Storage(str(disk / "lake"))).lsn == lsn or trouble == "full"
            confirmed = shop.value("SELECT confirmed_flush_lsn FROM pg_replication_slots")
            assert Lsn(str(confirmed)) <= State.read(Storage(str(disk / "lake"))).lsn
            if filling is not None:
                filling.unlink()
        caught_up()
    assert [type(event) for event in lines.failures[:1]] == [DestinationFailing]
    assert lines.failures[-1] == WaitEnded("the destination can be written again: replication resumes")
    assert find_differences(shop.dsn, str(disk / "lake"), TABLES) == {}


def test_a_damaged_table_is_reloaded(shop: Database, tmp_path: Path) -> None:
    with replicate_meanwhile(shop, tmp_path) as caught_up:
        caught_up()
        for path in (tmp_path / "public" / "customer").glob("part-*.parquet"):
            path.unlink()
        shop.execute("UPDATE customer SET city = 'Fulda' WHERE id < 100")
        caught_up()
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}
