"""What every storage must do, sentence by sentence of `Storage`: in a folder, and in an object store."""

from __future__ import annotations

import errno
import os
import pickle
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest

pytest.importorskip("moto")

from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.names import table_folder
from logicalrep.pipeline.storage.storage import DamagedError, MalformedFileError, Storage, StorageError, below
from logicalrep.transactions.table_names import TableName
from tests.pipeline.odd_names import ODD_NAMES
from tests.pipeline.storage.stores import Store, start_object_store


@dataclass(frozen=True)
class Place:
    """A destination, which can be made to fail."""

    storage: Storage
    store: Store | None
    patch: pytest.MonkeyPatch

    def fail(self) -> None:
        """Refuse all that is written from now on."""
        if self.store is not None:
            self.store.trouble = lambda method, path: "fail" if method == "PUT" else None
            return

        def fsync(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        self.patch.setattr(os, "fsync", fsync)

    def lose_answers(self) -> None:
        """Do all that is written from now on, without an answer."""
        if self.store is not None:
            self.store.trouble = lambda method, path: "lose" if method == "PUT" else None
            return

        def lost(action: Callable[..., None]) -> Callable[..., None]:
            def act(*arguments: Any) -> None:
                action(*arguments)
                raise OSError(errno.EIO, "the answer is lost")

            return act

        for name in ("link", "replace"):
            self.patch.setattr(os, name, lost(getattr(os, name)))

    def work(self) -> None:
        """Fail no more."""
        if self.store is not None:
            self.store.trouble = lambda method, path: None
        self.patch.undo()

    def pickled_copy(self) -> Storage:
        """Return the storage as an engine's process gets it."""
        storage: Storage = pickle.loads(pickle.dumps(self.storage))
        return storage


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with start_object_store() as store:
        yield store


@pytest.fixture(params=["folder", pytest.param("store", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "folder":
            yield Place(Storage(str(tmp_path / "lake")), None, patch)
            return
        store = request.getfixturevalue("store")
        place = Place(Storage(f"s3://lake/{tmp_path.name}/", store.options), store, patch)
        try:
            yield place
        finally:
            place.work()


@pytest.fixture
def storage(place: Place) -> Storage:
    return place.storage


# Files


def test_other_processes_read_what_was_written(place: Place) -> None:
    storage, other = place.storage, place.pickled_copy()
    for data in (b"1", b"", random.Random(1).randbytes(300_000), b"3"):
        storage.write("a/b", memoryview(data))
        assert other.read("a/b") == data
        with other.open("a/b", len(data)) as opened:
            assert opened.read() == data
    assert other.list("") == other.list("a") == ["a/b"]
    other.delete("a/b")
    assert (storage.read("a/b"), storage.list("")) == (None, [])


def test_absent_files_are_none_or_damage(storage: Storage) -> None:
    for _ in range(2):
        assert storage.read("a/b") is None
        assert storage.parse("a/b", pytest.fail) is None
        assert (storage.names("a", ""), storage.list("a"), storage.times("")) == ([], [], {})
        for size, few in ((1, False), (1, True), (1 << 30, False)):
            with pytest.raises(DamagedError, match="a/b does not exist"), storage.open("a/b", size, few=few) as opened:
                opened.read(1)
        with pytest.raises(StorageError, match="a/c"):
            storage.copy("a/b", "a/c")
        storage.delete("a/b")
        # The same in a folder that exists.
        storage.write("x", b"")
        storage.delete("x")


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("most_whole", [1, 1 << 20])
def test_a_file_is_read_at_any_position(storage: Storage, most_whole: int, few: bool) -> None:
    storage = replace(storage, limits=Limits(whole_file_bytes=most_whole))
    data = random.Random(1).randbytes(100_000)
    storage.write("f", data)
    with storage.open("f", len(data), few=few) as opened:
        assert opened.seek(-10, 2) == 99_990
        assert opened.read() == data[-10:]
        opened.seek(5)
        assert opened.read(7) == data[5:12]
        opened.seek(3, 1)
        assert opened.read(2) == data[15:17]
        opened.seek(0)
        assert opened.read() == data


def test_large_and_malformed_files_are_errors_with_their_names(storage: Storage) -> None:
    storage.write("a/b", b"[12]")
    assert storage.read("a/b", 4) == b"[12]"
    assert storage.parse("a/b", list, most_bytes=4) == [12]
    for read in (
        lambda: storage.read("a/b", 3),
        lambda: storage.parse("a/b", list, most_bytes=3),
        lambda: storage.parse("a/b", lambda content: content["key"]),
    ):
        with pytest.raises(MalformedFileError, match=r"\[DESTINATION_DAMAGED\] .*a/b is damaged: ."):
            read()


@pytest.mark.parametrize("part", ["", "/etc/passwd", "..", "a/../b", "a//b", "./a", "a/..", "a\0b"])
def test_no_path_leads_out_of_a_destination(storage: Storage, part: str) -> None:
    uses: list[Callable[[str], object]] = [
        *(storage.read, storage.delete, storage.uri_of, storage.times, storage.remove_empty_folders),
        lambda path: storage.write(path, b""),
        lambda path: storage.create(path, b""),
        lambda path: storage.copy(path, "a"),
        lambda path: storage.copy("a", path),
        lambda path: storage.names(path, ""),
        lambda path: storage.open(path, 1).__enter__(),
    ]
    for use in uses if part else []:
        with pytest.raises(MalformedFileError, match="is not a path below a destination"):
            use(part)
    with pytest.raises(MalformedFileError):
        below("public/t", part)
    assert storage.list("") == []
    assert not (storage.is_local and Path(storage.uri).exists())


# One winner, whole files, lost answers


def test_a_file_is_created_once(storage: Storage) -> None:
    storage.write("a/written", b"1")
    assert not storage.create("a/written", b"2")
    assert storage.read("a/written") == b"1"
    barrier, contents = Barrier(8), [bytes([65 + number]) * 50_000 for number in range(8)]

    def create(data: bytes) -> bool:
        barrier.wait(60)
        return storage.create("a/b", data)

    with ThreadPoolExecutor(len(contents)) as pool:
        winners = [data for data, is_made in zip(contents, pool.map(create, contents), strict=True) if is_made]
    assert [storage.read("a/b")] == winners
    assert sorted(storage.list("")) == ["a/b", "a/written"]
    storage.delete("a/b")
    assert storage.create("a/b", b"again")


def test_a_file_is_replaced_as_a_whole(place: Place) -> None:
    contents = [bytes([65 + number]) * (100_000 + number) for number in range(3)]
    place.storage.write("a/b", contents[0])
    has_ended = Event()

    def read_all() -> set[bytes | None]:
        contents, other = set(), place.pickled_copy()
        while not has_ended.is_set():
            contents.add(other.read("a/b"))
        return contents

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read_all) for _ in range(2)]
        try:
            for number in range(30):
                place.storage.write("a/b", contents[number % 3])
        finally:
            has_ended.set()
        for reader in readers:
            assert reader.result() <= set(contents)


def test_what_cannot_be_written_changes_nothing(place: Place) -> None:
    storage = replace(place.storage, limits=Limits(store_retries=0))
    storage.write("a/b", b"old")
    place.fail()
    for write in (
        lambda: storage.write("a/b", b"new"),
        lambda: storage.write("a/c", b"new"),
        lambda: storage.create("a/c", b"new"),
    ):
        with pytest.raises(StorageError) as error:
            write()
        assert (error.value.code, error.value.may_pass) == ("STORAGE_NOT_WRITABLE", True)
        assert storage.uri in str(error.value)
        assert "\n" not in str(error.value)
    place.work()
    assert (storage.read("a/b"), storage.list("")) == (b"old", ["a/b"])
    storage.write("a/b", b"new")
    assert storage.create("a/c", b"new")
    assert storage.read("a/b") == b"new"


def test_a_lost_answer_leaves_the_whole_file_which_its_writer_recognises(place: Place) -> None:
    storage = replace(place.storage, limits=Limits(store_retries=0))
    place.lose_answers()
    for write in (lambda: storage.write("a/b", b"mine"), lambda: storage.create("a/c", b"mine")):
        with pytest.raises(StorageError):
            write()
    place.work()
    assert (storage.read("a/b"), storage.read("a/c")) == (b"mine", b"mine")
    assert sorted(storage.list("")) == ["a/b", "a/c"]
    assert not storage.create("a/c", b"of another")
    assert storage.read("a/c") == b"mine"


def test_a_repeated_request_of_a_create_has_one_winner(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first answer is lost on the way, and the client asks again: a store's, or the one of a network's disk."""
    storage = place.storage
    if place.store is None:
        link = os.link

        def link_twice(source: Path, target: Path) -> None:
            link(source, target)
            link(source, target)

        monkeypatch.setattr(os, "link", link_twice)
        assert storage.create("a/b", b"mine")
    else:
        losses = iter([True])
        place.store.trouble = lambda method, path: "lose" if method == "PUT" and next(losses, False) else None
        is_made = storage.create("a/b", b"mine")
        assert is_made is False
    assert storage.read("a/b") == b"mine"


def test_files_and_their_folders_are_on_the_disk_before_a_method_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store is durable; on a disk each new name has to be synced in its folder, and the bytes before the name."""
    synced: list[str] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        synced.append("file" if path.is_file() else str(path.relative_to(tmp_path)))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    storage = Storage(str(tmp_path / "new" / "lake"))
    writes: list[Callable[[], object]] = [
        lambda: storage.write("a/b/c", b"1"),
        lambda: storage.write("a/b/c", b"2"),
        lambda: storage.create("a/b/d", b"1"),
        lambda: storage.create("e/f", b"1"),
        lambda: storage.copy("a/b/c", "g/h/c"),
    ]
    synced_names = []
    for write in writes:
        write()
        synced_names.append(synced.copy())
        synced.clear()
    folders = ("a/b", "a/b", "a/b", "e", "g/h")
    assert [names[-1] for names in synced_names] == [f"new/lake/{folder}" for folder in folders]
    assert all("file" in names[:-1] for names in synced_names[:4])
    # Each new folder has a name in another one.
    assert {".", "new", "new/lake", "new/lake/a"} <= set(synced_names[0])
    assert "new/lake" in synced_names[3]
    assert {"new/lake", "new/lake/g"} <= set(synced_names[4])


# Copies, lists, removals


def test_a_copy_is_a_file_of_its_own(storage: Storage) -> None:
    storage.write("a/b", b"1")
    for _ in range(2):
        storage.copy("a/b", "A b/~c")
    assert storage.read("A b/~c") == b"1"
    storage.write("a/b", b"2")
    storage.delete("a/b")
    assert (storage.read("A b/~c"), storage.list("")) == (b"1", ["A b/~c"])


def test_names_are_of_one_folder_after_a_name_in_order(storage: Storage) -> None:
    names = ["00", "01", "1", "B", "a", "b c", "ü", "\U0001f600"]
    for name in reversed(names):
        storage.write(f"a/{name}", b"")
    for path in ("a/sub/0", "ab/2", "2"):
        storage.write(path, b"")
    assert names == sorted(names, key=str.encode)
    assert storage.names("a", "") == names
    for number, name in enumerate(names):
        assert storage.names("a", name) == names[number + 1 :]
    assert storage.names("a", "0") == names
    assert storage.names("a", "c") == names[-2:]


def test_lists_have_all_files_beneath_a_folder_and_no_other(storage: Storage) -> None:
    start = time.time()
    for path in ("a/b", "a/c/d/e", "ab/f", "g"):
        storage.write(path, b"")
    assert sorted(storage.list("a")) == ["a/b", "a/c/d/e"]
    assert sorted(storage.list("")) == ["a/b", "a/c/d/e", "ab/f", "g"]
    times = storage.times("")
    assert sorted(times) == ["a/b", "a/c/d/e", "ab/f", "g"]
    # A store counts whole seconds, and a disk the ticks of its kernel.
    assert all(start - 2 < written < time.time() + 2 for written in times.values())


def test_removals_leave_what_has_files(storage: Storage) -> None:
    for path in ("a/b/c", "a/d/e", "f/g"):
        storage.write(path, b"")
    for _ in range(2):
        storage.delete("a/b/c")
        storage.delete("f/g")
        for folder in ("a", "f", "absent"):
            storage.remove_empty_folders(folder)
    assert storage.list("") == ["a/d/e"]
    if storage.is_local:
        assert sorted(path.name for path in Path(storage.uri).rglob("*")) == ["a", "d", "e"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_names(storage: Storage, name: str) -> None:
    path = table_folder(TableName("Sch ema", name))
    assert storage.create(path, b"1")
    assert not storage.create(path, b"2")
    storage.copy(path, f"{path} 2")
    assert storage.names("Sch ema", "") == sorted(file.removeprefix("Sch ema/") for file in (path, f"{path} 2"))
    assert sorted(storage.list("Sch ema")) == [path, f"{path} 2"]
    assert storage.read(path) == storage.read(f"{path} 2") == b"1"
    storage.delete(path)
    assert storage.list("") == [f"{path} 2"]
