"""Indexes of keys: their matches, and indexes that are damaged, too large, or out of date."""

from __future__ import annotations

import errno
import json
import os
import random
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.stored_table import Position
from logicalrep.pipeline.index import key_index
from logicalrep.pipeline.index.hashes import Hashes, hashes_of
from logicalrep.pipeline.index.key_index import IndexedRows, IndexTooLargeError, KeyIndex
from logicalrep.pipeline.index.key_indexes import KeyIndexes, TableIndex
from logicalrep.pipeline.index.runs import IndexDamagedError
from logicalrep.pipeline.storage.data_files import DataFile, write_rows
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.histories import History, table
from tests.pipeline.index.small_indexes import index_small_tables, small_indexes
from tests.pipeline.stored import APP, MARKS_IN_SMALL_FILES, MODES, WriteMode, new_log, rows_at

TABLE = table(("id",))
LIMITS = index_small_tables(MARKS_IN_SMALL_FILES)


def write_ids(storage: Storage, ids: list[int]) -> DataFile:
    count = len(ids)
    rows = pa.table([ids, ["b"] * count, [None] * count, [None] * count], schema=TABLE.stored)
    (file,) = write_rows(storage, "public/t", TABLE.stored, rows)
    return file


@pytest.mark.slow
@pytest.mark.parametrize("collide", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_an_index_finds_what_a_dict_does(
    tmp_path: Path, seed: int, collide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def few_hashes(keys: pa.Array, salt: int) -> Hashes:
        return hashes_of(keys, salt) % np.uint64(7) if collide else hashes_of(keys, salt)

    monkeypatch.setattr(key_index, "hashes_of", few_hashes)
    chance, storage = random.Random(seed), Storage(str(tmp_path / "lake"), limits=LIMITS)
    taken: list[int] = []
    index = KeyIndex.open(tmp_path / "index", taken.append, LIMITS)
    files: dict[str, tuple[DataFile, list[int]]] = {}
    for _ in range(60):
        ids = chance.sample(range(500), chance.choice([1, 5, 30, 80]))
        file = write_ids(storage, ids)
        files[file.path] = (file, ids)
        for path in chance.sample(sorted(files), chance.randrange(2) * len(files) // 3):
            del files[path]
        index.drop_missing(TABLE, [data_file for data_file, _ in files.values()])
        for data_file, _ in files.values():
            if not index.has(data_file):
                index.add(storage, "public/t", TABLE, data_file)
        sought = chance.sample(range(600), 20)
        matches = index.find([data_file for data_file, _ in files.values()], pa.array(sought, pa.int32()))
        for path, (_, ids) in files.items():
            rows = [row for row, id_ in enumerate(ids) if id_ in sought]
            assert set(matches[path].numbers.tolist()) >= set(rows)
            if not collide:
                assert matches[path].numbers.tolist() == rows
        # What went does not stay for ever, and few files are left.
        rows_there = sum(len(ids) for _, ids in files.values())
        assert index.rows <= 3 * rows_there + 3 * LIMITS.recent_entries
        assert sum(taken) == index.size == sum(path.stat().st_size for path in (tmp_path / "index").glob("*.run"))
        assert len([*(tmp_path / "index").glob("*.run")]) < 8
        if chance.random() < 0.2:
            index.close()
            taken.clear()
            index = KeyIndex.open(tmp_path / "index", taken.append, LIMITS)
            # It was of another table's key if it has another name or type.
            assert index.has_key_of(TABLE) or not index.rows
            assert not index.has_key_of(table(("b", "id")))


class Followed:
    """A table that changes at random, and its index."""

    def __init__(self, folder: Path, mode: WriteMode = "merge-on-read", most: int = 1 << 30) -> None:
        self.folder = folder / "indexes"
        self.messages: list[str] = []
        self.storage = Storage(str(folder / "lake"), limits=LIMITS)
        self.log = new_log(self.storage, ("id",), mode=mode)
        self.history = History(("id",), random.Random(11), ids=1000)
        self.indexes = KeyIndexes("lake", most, self.messages.append, self.folder)

    @property
    def index(self) -> TableIndex:
        index = self.indexes.of(self.log)
        assert index is not None
        return index

    def change(self) -> None:
        """Apply a batch, with the index if there is one."""
        history = self.history
        for step in [history.insert] * 40 + [history.update] * 20 + [history.delete] * 5:
            step()
            if self.history.chance.random() < 0.3:
                history.commit()
        apply(
            self.log,
            self.history.take(),
            Position(APP, Lsn(self.history.lsn - 1)),
            SequentialEngine(),
            index=self.index,
        )
        assert rows_at(self.storage) == self.history.truth()

    def restart(self) -> None:
        self.indexes.close()
        self.indexes = KeyIndexes("lake", 1 << 30, self.messages.append, self.folder)

    @property
    def files(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*") if path.is_file())

    @property
    def is_used(self) -> bool:
        """Whether the index has all files of the table."""
        files = list(self.log.files.values())
        matches = self.index.find(self.log.table, files, pa.array([1], pa.int32()))
        return matches.keys() == self.log.files.keys()


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_rows_of_other_keys_with_the_same_hash_stay(
    tmp_path: Path, mode: WriteMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_index, "hashes_of", lambda keys, salt: hashes_of(keys, salt) % np.uint64(3))
    followed = Followed(tmp_path, mode)
    for _ in range(8):
        followed.change()
    assert followed.is_used
    assert followed.messages == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["run", "json"])
@pytest.mark.parametrize("damage", ["bits", "an end", "gone"])
@pytest.mark.parametrize("is_open", [True, False])
def test_a_damaged_index_is_recreated(tmp_path: Path, kind: str, damage: str, is_open: bool) -> None:
    followed = Followed(tmp_path)
    for _ in range(6):
        followed.change()
    if not is_open:
        followed.restart()
    for path in (path for path in followed.files if path.suffix == f".{kind}"):
        data = bytearray(path.read_bytes())
        for at in range(0, len(data), 60):
            data[at] ^= 16
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(data if damage == "bits" else data[: len(data) // 10])
    for _ in range(3):
        followed.change()
    assert followed.is_used
    # What is read while it is open is noticed with a word; what is found at the opening is made like a new one.
    noticed = [text for text in followed.messages if "is rebuilt" in text]
    assert noticed == followed.messages
    assert len(noticed) == 1 if is_open and kind == "run" and damage != "gone" else len(noticed) <= 1


def test_an_index_that_misses_rows_makes_no_row_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    followed = Followed(tmp_path)
    for _ in range(4):
        followed.change()
    find = KeyIndex.find

    def find_less(self: KeyIndex, files: Any, keys: pa.Array) -> Mapping[str, Any]:
        return {path: IndexedRows(rows.numbers[1:]) for path, rows in find(self, files, keys).items()}

    with monkeypatch.context() as wrong:
        wrong.setattr(KeyIndex, "find", find_less)
        followed.change()
    assert [text for text in followed.messages if "lacked rows" in text]
    named = followed.log.files.keys() | {file.path for file in followed.log.removed}
    assert {path.name for path in (tmp_path / "lake").rglob("part-*.parquet")} <= named
    followed.change()
    assert followed.is_used


def test_a_table_without_room_is_followed_without_an_index(tmp_path: Path) -> None:
    followed = Followed(tmp_path, most=2_000)
    for _ in range(6):
        followed.change()
    assert not followed.is_used
    assert followed.messages == [
        "public/t has no key index, as index_size has no room for it: its batches read the keys of all files"
    ]
    assert followed.files == []


def test_room_of_tables_that_are_not_replicated_any_more_is_taken(tmp_path: Path) -> None:
    followed = Followed(tmp_path)
    for _ in range(4):
        followed.change()
    followed.indexes.close()
    (run, *_) = followed.files
    run.parent.rename(run.parent.parent / "other")
    (run.parent.parent / "other" / "large.run").write_bytes(bytes(99_000))
    followed.indexes = KeyIndexes("lake", 100_000, followed.messages.append, followed.folder)
    followed.change()
    assert followed.is_used
    assert followed.messages == []
    assert not (run.parent.parent / "other").exists()


@pytest.mark.parametrize("step", ["write_run", "_save", "open"])
def test_a_disk_that_is_full_leaves_the_table_without_an_index(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed = Followed(tmp_path)
    followed.change()

    def fail(*_: object, **__: object) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    followed.restart()
    monkeypatch.setattr(key_index if step == "write_run" else KeyIndex, step, fail)
    for _ in range(5):
        followed.change()
    assert followed.messages == [
        "public/t has no key index, as [Errno 28] No space left on device: its batches read the keys of all files"
    ]
    assert followed.files == []


def test_a_folder_that_cannot_be_made_leaves_the_table_without_an_index(tmp_path: Path) -> None:
    (tmp_path / "indexes").write_text("a file")
    followed = Followed(tmp_path)
    for _ in range(3):
        assert followed.indexes.of(followed.log) is None
    assert ["File exists" in text for text in followed.messages] == [True]


@pytest.mark.parametrize("foreign", ["writable", "link"])
def test_a_folder_that_other_users_can_write_is_not_used(tmp_path: Path, foreign: str) -> None:
    followed = Followed(tmp_path)
    followed.folder.mkdir()
    own = followed.folder / f"logicalrep-{os.geteuid()}"
    if foreign == "link":
        (tmp_path / "planted").mkdir()
        own.symlink_to(tmp_path / "planted")
    else:
        own.mkdir()
        own.chmod(0o777)
    for _ in range(3):
        assert followed.indexes.of(followed.log) is None
    assert followed.messages == [
        f"no table has a key index, as {own} is not a folder that only this user can write to: its batches read "
        "the keys of all files"
    ]
    assert followed.files == []


def named(text: bytes) -> bytes:
    """Return the content of an index's file with a checksum that is right."""
    return b"%08x\n" % zlib.crc32(text) + text


@pytest.mark.parametrize(
    "content",
    [
        *({"runs": [[name, 0, 0]]} for name in ("../../victim", "{victim}", ".", "", "a/../../../victim", 7, None)),
        {"runs": [["x.run", 1 << 60, 0]]},
        {"runs": [["x.run", -1, 0]]},
        {"runs": 7},
        {"files": []},
        {"files": {"part": [1]}},
        {"next": "x"},
        [],
        None,
    ],
    ids=str,
)
def test_a_file_that_somebody_made_up_is_no_index_and_removes_nothing(tmp_path: Path, content: Any) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "indexes" / "index"
    folder.mkdir(parents=True)
    victim.touch()
    (folder / "x.run").touch()
    if isinstance(content, dict):
        content = {"format": 1, "hashes": 1, "key": [], "next": 0, "files": {}, "runs": []} | content
    text = json.dumps(content).replace("{victim}", str(victim))
    (folder / "index.json").write_bytes(named(text.encode()))
    index = KeyIndex.open(folder, lambda nbytes: None, LIMITS)
    assert index.rows == 0
    assert victim.exists()
    assert list(folder.iterdir()) == []


def test_a_large_table_gets_its_index_part_by_part(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path / "lake"), limits=replace(LIMITS, indexed_rows_a_batch=100))
    log = new_log(storage, ("id",))
    index = small_indexes(tmp_path / "indexes").of(log)
    assert index is not None
    files = [write_ids(storage, [*range(first, first + 70)]) for first in range(0, 420, 70)]
    log.commit(files, [], Position(APP, Lsn(2000)))
    steps = 0
    while index.is_behind(log):
        index.follow(log)
        steps += 1
    assert steps == len(files)
    rows = index.find(log.table, files, pa.array([5, 75], pa.int32()))
    assert {path: matches.numbers.tolist() for path, matches in rows.items() if len(matches.numbers)} == {
        files[0].path: [5],
        files[1].path: [5],
    }


def test_tables_without_a_need_for_an_index_have_none(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path / "lake"), limits=LIMITS)
    log = new_log(storage, ("id",))
    assert small_indexes(tmp_path / "indexes", most=0).of(log) is None
    assert small_indexes(tmp_path / "indexes").of(new_log(storage, None, "public/without")) is None
    log.storage = replace(storage, limits=replace(LIMITS, indexed_rows=71))
    log.commit([write_ids(storage, [*range(70)])], [], Position(APP, Lsn(2000)))
    indexes = small_indexes(tmp_path / "indexes")
    assert indexes.of(log) is None
    log.commit([write_ids(storage, [70])], [], Position(APP, Lsn(2001)))
    assert indexes.of(log) is not None


def test_a_file_with_another_number_of_rows_is_not_indexed(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path / "lake"), limits=LIMITS)
    file = write_ids(storage, [1, 2, 3])
    index = KeyIndex.open(tmp_path / "index", lambda _: None, LIMITS)
    index.drop_missing(TABLE, [file])
    with pytest.raises(IndexDamagedError):
        index.add(storage, "public/t", TABLE, DataFile(file.path, file.size, 2, file.statistics))


def test_an_index_that_is_too_large_when_it_is_opened_holds_no_bytes_and_no_files(tmp_path: Path) -> None:
    storage, taken = Storage(str(tmp_path / "lake"), limits=LIMITS), list[int]()
    index = KeyIndex.open(tmp_path / "index", taken.append, LIMITS)
    files = [write_ids(storage, [*range(size)]) for size in (900, 300, 100)]
    for file in files:
        index.add(storage, "public/t", TABLE, file)
    sizes = sorted(path.stat().st_size for path in (tmp_path / "index").glob("*.run"))
    assert len(sizes) > 1
    index.close()
    counted = 0

    def take(nbytes: int) -> None:
        nonlocal counted
        if counted + nbytes >= sum(sizes):
            raise IndexTooLargeError
        counted += nbytes

    opened = len(os.listdir("/proc/self/fd"))
    with pytest.raises(IndexTooLargeError):
        KeyIndex.open(tmp_path / "index", take, LIMITS)
    assert counted == 0
    assert len(os.listdir("/proc/self/fd")) == opened


def test_each_index_has_its_own_hashes(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path / "lake"), limits=LIMITS)
    salts = set()
    for name in ("one", "two"):
        index = KeyIndex.open(tmp_path / name, lambda nbytes: None, LIMITS)
        index.add(storage, "public/t", TABLE, write_ids(storage, [*range(900)]))
        index.close()
        content = json.loads((tmp_path / name / "index.json").read_bytes().partition(b"\n")[2])
        salts.add(content["salt"])
        # Another process finds the keys by the stored number.
        assert KeyIndex.open(tmp_path / name, lambda nbytes: None, LIMITS).rows == 900
    assert len(salts) == 2


def test_indexes_of_destinations_that_nobody_uses_are_removed(tmp_path: Path) -> None:
    def start(destination: str) -> Path:
        storage = Storage(str(tmp_path / destination), limits=LIMITS)
        log = new_log(storage, ("id",))
        (file,) = [write_ids(storage, [*range(900)])]
        log.commit([file], [], Position(APP, Lsn(1000)))
        indexes = KeyIndexes(storage.uri, 1 << 20, print, tmp_path / "cache")
        index = indexes.of(log)
        assert index is not None
        index.follow(log)
        indexes.close()
        (path,) = {path.parents[1] for path in (tmp_path / "cache").rglob("index.json")} - folders
        folders.add(path)
        return path

    folders: set[Path] = set()
    used, unused = start("used"), start("unused")
    for path in (unused, *unused.rglob("*")):
        os.utime(path, (0, 0))
    os.utime(used, (0, 0))
    other = start("other")
    assert (used.exists(), unused.exists(), other.exists()) == (True, False, True)
