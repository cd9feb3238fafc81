"""The upkeep of a table: what is on the disk stays bounded, and what readers have open stays readable."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from deltalake import DeltaTable

from logicalrep.tables.apply import applying
from logicalrep.tables.apply.applying import apply
from logicalrep.tables.delta import maintenance
from logicalrep.tables.delta.delta_log import DeltaLog
from logicalrep.tables.delta.maintenance import is_due, maintain
from logicalrep.tables.delta.place import Place
from logicalrep.tables.tasks import LocalTasks
from logicalrep_runtime.scalars import Lsn
from tests.tables.histories import History
from tests.tables.test_applying import APP, new_log, rows_at


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("part-*.parquet"))


def test_500_commits_of_random_updates_stay_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "_LEAST_RETAINED", 0)
    place = Place(str(tmp_path))
    log = new_log(place, ("id",))
    history = History(("id",), random.Random(1))
    for number in range(500):
        history.step()
        history.update()
        apply(log, history.take(), Lsn(history.lsn - 1), APP, LocalTasks())
        if is_due(log, 24):
            maintain(log, 24, LocalTasks())
        if number == 250:
            old, rows_then = DeltaTable(place.uri_of("public/t")), len(history.rows)
            opened = old.to_pyarrow_table()
    assert rows_at(place) == history.truth()
    there = sum(file.size for file in log.files.values())
    assert size_of(tmp_path) <= (maintenance.MOST_RETAINED + 2) * there
    assert opened.num_rows == rows_then
    reopened = DeltaLog.open(place, "public/t")
    assert reopened is not None
    assert reopened.applied(APP) == log.applied(APP)
    assert (reopened.version, reopened.load, reopened.table) == (log.version, "x", log.table)


def test_small_files_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, "_SMALL", 0)
    place = Place(str(tmp_path))
    log = new_log(place, ("id",))
    history = History(("id",), random.Random(2))
    while len(log.files) < 12:
        history.insert()
        apply(log, history.take(), Lsn(history.lsn - 1), APP, LocalTasks())
    applied = log.applied(APP)
    maintain(log, 24, LocalTasks())
    assert len(log.files) == 2
    assert log.applied(APP) == applied
    assert rows_at(place) == history.truth()


def test_without_keeping_old_files_go_at_once(tmp_path: Path) -> None:
    place = Place(str(tmp_path))
    log = new_log(place, ("id",))
    history = History(("id",), random.Random(2))
    for _ in range(5):
        history.insert()
        apply(log, history.take(), Lsn(history.lsn - 1), APP, LocalTasks())
    maintain(log, 0, LocalTasks())
    assert size_of(tmp_path) == sum(file.size for file in log.files.values())
