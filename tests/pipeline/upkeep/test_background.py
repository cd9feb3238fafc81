"""Upkeep beside a run that follows: it is at rest in the end, and batches go first."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from logicalrep.pipeline.formats.delta.delta_log import DeltaLog
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.upkeep import background
from logicalrep.pipeline.upkeep.merging import Merge, Merged, due_merge, merge_files
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import replicate_meanwhile, replicate_once
from tests.postgres.servers import Database
from tests.waiting import eventually


def log_at(storage: Path) -> DeltaLog:
    log = DeltaLog.open(Storage(str(storage)), "public/t")
    assert log is not None
    return log


def files_at(storage: Path) -> dict[str, int]:
    """Return the sizes of all files of the table."""
    folder = storage / "public"
    return {str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


def test_an_idle_table_settles_and_then_nothing_is_written(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = Limits(small_file_bytes=1)
    steps: list[int] = []
    begin = background.BackgroundMerges.begin

    def counted(merges: background.BackgroundMerges, tables: object) -> None:
        begin(merges, tables)  # type: ignore[arg-type]
        steps.append(1)

    monkeypatch.setattr(background.BackgroundMerges, "begin", counted)
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    db18.execute("INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 20000) AS i")
    with replicate_meanwhile(db18, tmp_path, limits=limits, write_mode="merge-on-read") as caught_up:
        caught_up()
        for number in range(4):
            db18.execute(f"UPDATE t SET v = '{number}' WHERE id % 20 = {number}")
            caught_up()
        eventually(lambda: due_merge(log_at(tmp_path)) is None)
        version = log_at(tmp_path).version
        # The file with a fifth of its rows marked was written anew: by upkeep, as no batch has touched it since.
        info = log_at(tmp_path)
        assert all(8 * (file.rows - file.live_rows) < file.rows for file in info.files.values())
        files = files_at(tmp_path)
        soon = len(steps) + 20
        eventually(lambda: len(steps) > soon)
        assert log_at(tmp_path).version == version
        assert files_at(tmp_path) == files
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_batches_do_not_wait_for_a_merge(
    db18: Database, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = Limits(small_file_bytes=0, merge_pause_seconds=0.1)
    begun, may_go_on = threading.Event(), threading.Event()

    def held(work: Merge) -> Merged:
        merged = merge_files(work)
        begun.set()
        assert may_go_on.wait(60)
        return merged

    monkeypatch.setattr(background, "merge_files", held)
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    db18.execute("INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 100) AS i")
    with replicate_meanwhile(db18, tmp_path, limits=limits, write_mode=mode) as caught_up:
        caught_up()
        number = 100
        while not begun.is_set():
            number += 1
            db18.execute(f"INSERT INTO t SELECT {number} * 1000 + i, 'new' FROM generate_series(1, 100) AS i")
            caught_up()
        db18.execute("UPDATE t SET v = 'later' WHERE id % 7 = 0")
        caught_up()
        assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}
        may_go_on.set()
        eventually(lambda: due_merge(log_at(tmp_path)) is None)
        assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}


def test_a_run_that_ends_soon_leaves_a_table_at_rest(db18: Database, tmp_path: Path) -> None:
    limits = Limits(small_file_bytes=1)
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    db18.execute("INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 5000) AS i")
    replicate_once(db18, tmp_path, limits=limits, write_mode="merge-on-read")
    db18.execute("UPDATE t SET v = 'a fifth' WHERE id % 5 = 0")
    replicate_once(db18, tmp_path, limits=limits, write_mode="merge-on-read")
    assert all(file.vector is None for file in log_at(tmp_path).files.values())
    files = files_at(tmp_path)
    replicate_once(db18, tmp_path, limits=limits, write_mode="merge-on-read")
    assert files_at(tmp_path) == files
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}


def test_tables_that_are_always_due_leave_time_for_the_others(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maintained: set[str] = set()
    monkeypatch.setattr(DeltaLog, "is_upkeep_due", lambda log, hours: True)
    monkeypatch.setattr(DeltaLog, "is_upkeep_urgent", lambda log, hours: True)
    monkeypatch.setattr(DeltaLog, "maintain", lambda log, hours: maintained.add(log.folder))
    db18.execute(*(f"CREATE TABLE t{i} (id int PRIMARY KEY)" for i in range(3)))
    with replicate_meanwhile(db18, tmp_path) as caught_up:
        caught_up()
        eventually(lambda: maintained == {"public/t0", "public/t1", "public/t2"})
