"""The upkeep of a table: what is on the disk stays bounded, and what readers have open stays readable."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.delta.delta_log import DeltaLog
from logicalrep.pipeline.formats.stored_table import NewTable, Position
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.run.receiving import ChangeReceiver
from logicalrep.pipeline.storage.data_files import write_rows
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.upkeep.merging import merge_next
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.comparison import find_differences
from tests.pipeline.histories import History, table
from tests.pipeline.replicating import replicate_meanwhile
from tests.pipeline.stored import APP, new_log, rows_at
from tests.postgres.servers import Database
from tests.waiting import eventually


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("part-*.parquet"))


@pytest.mark.slow
def test_500_commits_of_random_updates_stay_small(tmp_path: Path) -> None:
    limits = Limits(retained_bytes=0)
    storage = Storage(str(tmp_path), limits=limits)
    log = new_log(storage, ("id",))
    history = History(("id",), random.Random(1))
    for number in range(500):
        history.step()
        history.update()
        apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
        merge_next(log, SequentialEngine())
        if log.is_upkeep_due(24):
            log.maintain(24)
        if number == 250:
            old, rows_then = DeltaTable(storage.uri_of("public/t")), len(history.rows)
            opened = old.to_pyarrow_table()
    assert rows_at(storage) == history.truth()
    current_size = sum(file.size for file in log.files.values())
    assert size_of(tmp_path) <= (limits.retained_factor + 2) * current_size
    assert opened.num_rows == rows_then
    reopened = DeltaLog.open(storage, "public/t")
    assert reopened is not None
    assert reopened.applied(APP) == log.applied(APP)
    assert (reopened.version, reopened.load, reopened.table) == (log.version, "x", log.table)


def test_old_files_are_removed_under_constant_changes(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tables take turns: the upkeep of `t` does not depend on its place among them.
    limits = Limits(retained_bytes=0, retained_factor=3, checked_tables=1)
    monkeypatch.setattr(ChangeReceiver, "has_changes", property(lambda receiver: True))
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    db18.execute("INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 20000) AS i")
    db18.execute("CREATE TABLE r (id int PRIMARY KEY)", "CREATE TABLE u (id int PRIMARY KEY)")
    with replicate_meanwhile(db18, tmp_path, limits=limits) as caught_up:
        for number in range(20):
            db18.execute(f"UPDATE t SET v = '{number}' WHERE id = {number}")
            caught_up()
        log = DeltaLog.open(Storage(str(tmp_path)), "public/t")
        assert log is not None
        current_size = sum(file.size for file in log.files.values())
        eventually(lambda: size_of(tmp_path) <= 5 * current_size)
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}


def test_small_files_are_merged(tmp_path: Path) -> None:
    limits = Limits(small_file_bytes=0)
    storage = Storage(str(tmp_path), limits=limits)
    log = new_log(storage, ("id",))
    history = History(("id",), random.Random(2))
    while len(log.files) < 12:
        history.insert()
        apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    applied = log.applied(APP)
    assert merge_next(log, SequentialEngine())
    assert len(log.files) == 2
    assert log.applied(APP) == applied
    assert rows_at(storage) == history.truth()


TABLES = {
    # The rows of each file, and a value of each, with the most rows and bytes of a file: 1000 and 100 kB.
    "tiny": (20, 5, "x"),
    "narrow": (12, 990, ""),
    "narrow, in files of half as many rows": (24, 499, ""),
    "wide": (16, 40, "long " * 250),
    "wide, in files that hold no more": (12, 78, "long " * 250),
    "huge rows": (12, 2, "y" * 200_000),
    "both": (40, 300, "long " * 60),
}


@pytest.mark.slow
@pytest.mark.parametrize(("files", "rows", "value"), TABLES.values(), ids=TABLES)
def test_merging_ends_after_each_row_is_written_about_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int, rows: int, value: str
) -> None:
    """Also where files are small on the disk, and cannot be fewer."""
    limits = Limits(file_rows=1000, file_bytes=100_000)
    storage = Storage(str(tmp_path), limits=limits)
    spec = table(("id",))

    def part(number: int) -> pa.Table:
        ids = range(number * rows, (number + 1) * rows)
        columns = {"id": pa.array(ids, pa.int32()), "big": pa.array([f"{value}{id_ % 7}" for id_ in ids])}
        arrays = [columns.get(field.name, pa.nulls(rows)).cast(field.type) for field in spec.stored]
        return pa.table(arrays, schema=spec.stored)

    first = [file for number in range(files) for file in write_rows(storage, "public/t", spec.stored, part(number))]
    log = DeltaLog.replace(
        storage, "public/t", NewTable(spec, first, Position(APP, Lsn(9)), load="x", keep_hours=24), None
    )
    current_size = sum(file.size for file in first)
    steps = 0
    while merge_next(log, SequentialEngine()):
        steps += 1
        assert steps <= len(first)
    # A row is written about twice at most.
    assert size_of(tmp_path) <= 3 * current_size + 100_000
    assert DeltaTable(storage.uri_of("public/t")).to_pyarrow_table().num_rows == files * rows
    assert not merge_next(reopened(storage), SequentialEngine())


def test_vacuum_of_another_program_keeps_the_retained_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage(str(tmp_path))
    log = new_log(storage, ("id",))
    nanoseconds = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: nanoseconds - 2 * 3600 * 1_000_000_000)
    make_commits(storage, log, History(("id",), random.Random(1)), 3)
    DeltaTable(storage.uri_of("public/t")).vacuum(dry_run=False)
    for version in range(reopened(storage).version):
        DeltaTable(storage.uri_of("public/t"), version=version).to_pyarrow_table()
    log = reopened(storage)
    log.set_retention(1)
    version = log.version
    log.set_retention(1)
    assert log.version == version
    DeltaTable(storage.uri_of("public/t")).vacuum(dry_run=False)
    assert size_of(tmp_path) == sum(file.size for file in log.files.values())


def make_commits(storage: Storage, log: DeltaLog, history: History, number: int) -> None:
    for _ in range(number):
        history.insert()
        history.update()
        apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), SequentialEngine())


def reopened(storage: Storage) -> DeltaLog:
    log = DeltaLog.open(storage, "public/t")
    assert log is not None
    return log


@pytest.mark.slow
def test_processes_that_end_soon_keep_what_readers_need_and_remove_the_rest(tmp_path: Path) -> None:
    limits = Limits(log_checkpoint_commits=5)
    storage = Storage(str(tmp_path), limits=limits)
    new_log(storage, ("id",))
    history = History(("id",), random.Random(1))
    checkpoints = set()
    for _ in range(8):
        log = reopened(storage)
        make_commits(storage, log, history, 3)
        if log.opens_slowly:
            log.maintain(24)
            checkpoints.add(log.checkpoint)
    assert len(checkpoints) == 4
    # All old versions can be read, also those whose files the last checkpoint knows nothing of.
    for version in range(reopened(storage).version):
        DeltaTable(storage.uri_of("public/t"), version=version).to_pyarrow_table()
    log = reopened(storage)
    assert not log.removed.is_complete
    log.maintain(24)
    assert len(log.removed) + len(log.files) == len(list(tmp_path.rglob("part-*.parquet"))) > 5
    log.maintain(0)
    assert len(log.removed) == 0
    assert size_of(tmp_path) == sum(file.size for file in log.files.values())
    assert rows_at(storage) == history.truth()


def test_old_files_without_a_commit_are_deleted(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    log = new_log(storage, ("id",))
    history = History(("id",), random.Random(1))
    make_commits(storage, log, history, 2)
    for name, hours in {"part-old.parquet": 30, ".part-old.parquet.1.2": 30, "part-new.parquet": 0.1}.items():
        storage.write(f"public/t/{name}", b"x")
        at = time.time() - hours * 3600
        os.utime(tmp_path / "public" / "t" / name, (at, at))
    for path in log.files:
        os.utime(tmp_path / "public" / "t" / path, (1, 1))
    reopened(storage).maintain(24)
    names = {path.name for path in (tmp_path / "public" / "t").iterdir()}
    assert "part-new.parquet" in names
    assert not names & {"part-old.parquet", ".part-old.parquet.1.2"}
    assert rows_at(storage) == history.truth()
