"""Changes applied to a table's files: the resulting rows equal a naive replay."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from logicalrep.arrow.changes.change_batch import ChangeBatch, joined
from logicalrep.arrow.changes.table_changes import in_parts
from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.errors import NeedsResync
from logicalrep.pipeline.formats.delta.delta_log import DeltaLog
from logicalrep.pipeline.formats.stored_table import NewTable, Position, WriterError
from logicalrep.pipeline.index.recent_keys import RecentKeys
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.storage.data_files import write_rows
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.histories import History
from tests.pipeline.index.small_indexes import index_small_tables, small_indexes
from tests.pipeline.stored import APP, KEYS, MARKS_IN_SMALL_FILES, MODES, PicklingTasks, WriteMode, new_log, rows_at

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(4))
def test_random_histories_end_with_the_rows_of_a_naive_replay(
    tmp_path: Path, key: tuple[str, ...] | None, seed: int, mode: WriteMode
) -> None:
    limits = index_small_tables(MARKS_IN_SMALL_FILES)
    indexes, keys = small_indexes(tmp_path / "indexes"), RecentKeys(limits)
    chance = random.Random(seed)
    storage = Storage(str(tmp_path), limits=limits)
    log = new_log(storage, key, mode=mode)
    history = History(key, chance)
    kept: list[list[ChangeBatch]] = []
    has_vectors = False
    for _ in range(25):
        for _ in range(chance.randrange(1, 60)):
            history.step()
        kept.append(history.take())
        # A batch may begin with what the table has already, cut somewhere else.
        repeated = [batch for batches in kept[-chance.randrange(1, 4) :] for batch in batches]
        assert log.table.columns
        index = (indexes if seed % 2 else keys).of(log)
        assert (index is not None) == (key is not None and (seed % 2 == 1 or mode == "merge-on-read"))
        # Some commits are not in the index, as after a kill.
        is_killed = chance.random() < 0.2
        apply(log, repeated, Position(APP, Lsn(history.lsn - 1)), PicklingTasks(), index=None if is_killed else index)
        if is_killed:
            indexes.close()
            indexes = small_indexes(tmp_path / "indexes")
        if chance.random() < 0.3:
            reopened = DeltaLog.open(storage, "public/t")
            assert reopened is not None
            assert (reopened.version, reopened.table) == (log.version, log.table)
            assert {path: file.vector for path, file in reopened.files.items()} == {
                path: file.vector for path, file in log.files.items()
            }
            log = reopened
        has_vectors |= any(file.vector is not None for file in log.files.values())
    assert rows_at(storage) == history.truth()
    assert has_vectors == (mode == "merge-on-read")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_many_files_are_rewritten_in_many_tasks(tmp_path: Path, key: tuple[str, ...] | None, mode: WriteMode) -> None:
    limits = Limits(
        small_file_bytes=1, marked_share=1, marked_weight=1, in_process_bytes=2000, part_bytes=2000, file_rows=7
    )
    storage = Storage(str(tmp_path), limits=limits)
    log = new_log(storage, key, mode=mode)
    history = History(key, random.Random(7))
    most = 0
    for _ in range(20):
        for _ in range(40):
            history.step()
        apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
        most = max(most, len(log.files))
        assert rows_at(storage) == history.truth()
    assert most > 3


def test_a_row_moves_many_times_and_keeps_its_large_value(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    log = new_log(storage, ("id",))
    history = History(("id",), random.Random(1))
    history.rows.append(("1", "a", None, "the large value"))
    history.add_change("insert", None, history.rows[0], ())
    apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    history.move(2000)
    apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    assert rows_at(storage) == Counter([("1001999", "a", None, "the large value")])


def test_changes_that_the_table_has_make_no_commit(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    log = new_log(storage, ("id",))
    history = History(("id",), random.Random(1))
    for _ in range(20):
        history.step()
    changes = history.take()
    assert apply(log, changes, Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    version = log.version
    assert apply(log, changes, Position(APP, Lsn(history.lsn - 1)), SequentialEngine()) is False
    assert log.version == version
    # LSNs of another load, server or timeline are not this table's.
    assert log.applied("logicalrep/2/1/x") is None


def test_a_missing_row_needs_a_resync(tmp_path: Path) -> None:
    log = new_log(Storage(str(tmp_path)), ("id",))
    history = History(("id",), random.Random(1))
    history.add_change("delete", ("5", "a", None, None), None, ())
    version = log.version
    with pytest.raises(NeedsResync, match="1 of 1 updated or deleted rows are missing"):
        apply(log, history.take(), Position(APP, Lsn(history.lsn)), SequentialEngine())
    assert log.version == version


def test_files_of_a_kill_before_the_commit_are_in_no_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage(str(tmp_path))
    log = new_log(storage, ("id",))
    history = History(("id",), random.Random(1))
    for _ in range(30):
        history.step()
    changes = history.take()
    with monkeypatch.context() as killed:
        killed.setattr(DeltaLog, "commit", lambda *arguments: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            apply(log, changes, Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    assert len(list((tmp_path / "public" / "t").glob("*.parquet"))) == 1
    reopened = DeltaLog.open(storage, "public/t")
    assert reopened is not None
    apply(reopened, changes, Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    assert rows_at(storage) == history.truth()


def test_a_second_writer_is_found(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    log = new_log(storage, ("id",))
    other = DeltaLog.open(storage, "public/t")
    assert other is not None
    log.commit([], [], Position(APP, Lsn(2000)))
    with pytest.raises(WriterError, match="another process"):
        other.commit([], [], Position(APP, Lsn(2000)))


def test_a_table_that_is_replaced_has_the_old_rows_in_its_old_version(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    log = new_log(storage, ("id",))
    history = History(("id",), random.Random(3))
    for _ in range(30):
        history.insert()
    apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    version = log.version
    rows = pa.table({"id": [1], "b": ["new"], "v": [None], "big": [None]}, schema=log.table.schema)
    files = write_rows(storage, "public/t", rows.schema, rows)
    replaced = DeltaLog.replace(
        storage,
        "public/t",
        NewTable(log.table, files, Position("logicalrep/1/1/y", Lsn(5000)), load="y", keep_hours=24),
        log,
    )
    assert rows_at(storage) == Counter([("1", "new", None, None)])
    assert replaced.applied("logicalrep/1/1/y") == 5000
    assert DeltaTable(storage.uri_of("public/t"), version=version).to_pyarrow_table().num_rows == len(history.rows)


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("seed", "most_effect"), [(0, 96 << 20), (1, 3000)])
def test_a_large_batch_is_applied_in_parts_and_one_commit(
    tmp_path: Path,
    key: tuple[str, ...] | None,
    seed: int,
    most_effect: int,
    mode: WriteMode,
) -> None:
    storage = Storage(str(tmp_path))
    log = new_log(storage, key, mode=mode)
    history = History(key, random.Random(seed))
    for _ in range(5):
        for _ in range(150):
            history.step()
        changes = history.take()
        limits = replace(MARKS_IN_SMALL_FILES, effect_bytes=most_effect, batch_bytes=changes[0].nbytes // 7)
        log.storage = replace(storage, limits=limits)
        parts = list(in_parts(changes, limits.batch_bytes))
        assert len(parts) > 2
        assert joined([batch for part in parts for batch in part]) == changes[0]
        version = log.version
        apply(log, changes, Position(APP, Lsn(history.lsn - 1)), PicklingTasks())
        assert log.version == version + 1
        assert rows_at(storage) == history.truth()
    # Files between the parts are in no version, and gone.
    paths = {path.name for path in tmp_path.rglob("part-*.parquet")}
    assert paths == log.files.keys() | {file.path for file in log.removed if file.path.startswith("part-")}


def test_a_batch_with_applied_changes_adds_only_the_new_changes_in_parts(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    log = new_log(storage, ("id",))
    history = History(("id",), random.Random(5))
    kept: list[ChangeBatch] = []
    for _ in range(4):
        for _ in range(40):
            history.step()
        kept += history.take()
        log.storage = replace(storage, limits=Limits(batch_bytes=kept[-1].nbytes // 3))
        apply(log, kept, Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
        assert rows_at(storage) == history.truth()
