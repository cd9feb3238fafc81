"""Merges beside batches: what a batch has changed meanwhile is in the merged files, or the merge is for nothing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.delta.delta_log import DeltaLog
from logicalrep.pipeline.formats.stored_table import Position
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.upkeep.merging import commit_merged, due_merge, merge_files
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.histories import History
from tests.pipeline.stored import APP, MODES, WriteMode, new_log, rows_at


def change(log: DeltaLog, history: History, steps: int) -> None:
    for _ in range(steps):
        history.step()
    apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), SequentialEngine())


@pytest.mark.slow
@pytest.mark.parametrize("key", [("id",), None], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_batches_between_a_merge_and_its_commit(tmp_path: Path, key: tuple[str, ...] | None, mode: WriteMode) -> None:
    limits = Limits(small_file_bytes=0, marked_share=1, merged_files=2, file_rows=12)
    # Merged rows are in several files.
    storage, chance = Storage(str(tmp_path), limits=limits), random.Random(3)
    log, history = new_log(storage, key, mode=mode), History(key, chance)
    put = {True: 0, False: 0}
    had_marks = 0
    for number in range(120):
        change(log, history, chance.randrange(1, 4))
        work = due_merge(log)
        if work is None:
            continue
        merged = merge_files(work)
        vectors = {file.path: file.vector for file in merged.removed}
        for _ in range(chance.randrange(4)):
            change(log, history, 1)
        version = log.version
        marks = any(path in log.files and log.files[path].vector != vector for path, vector in vectors.items())
        is_put = commit_merged(log, work, merged)
        put[is_put] += 1
        had_marks += is_put and marks
        assert log.version == version + is_put
        paths = {path.name for path in (tmp_path / "public/t").glob("part-*.parquet")}
        assert is_put or not paths & {file.path for file in merged.added}
        if number % 10 == 0:
            assert rows_at(storage) == history.truth()
    assert rows_at(storage) == history.truth()
    assert min(put.values()) > 5, put
    assert (had_marks > 5) == (mode == "merge-on-read"), had_marks


def test_a_merge_whose_answer_was_lost_deletes_nothing(tmp_path: Path) -> None:
    limits = Limits(small_file_bytes=0)
    storage = Storage(str(tmp_path), limits=limits)
    log, history = new_log(storage, ("id",)), History(("id",), random.Random(2))
    while (work := due_merge(log)) is None:
        history.insert()
        change(log, history, 0)
    merged = merge_files(work)
    assert commit_merged(log, work, merged)
    # The next try of a commit that is there finds the files in the table.
    assert not commit_merged(log, work, merged)
    assert rows_at(storage) == history.truth()


def test_a_merge_is_for_nothing_once_the_table_has_another_description(tmp_path: Path) -> None:
    limits = Limits(small_file_bytes=0)
    storage = Storage(str(tmp_path), limits=limits)
    log, history = new_log(storage, ("id",)), History(("id",), random.Random(2))
    while (work := due_merge(log)) is None:
        history.insert()
        change(log, history, 0)
    merged = merge_files(work)
    marking = new_log(storage, ("id",), "public/other", "merge-on-read").table
    log.describe(marking)
    assert not commit_merged(log, work, merged)
    assert rows_at(storage) == history.truth()
