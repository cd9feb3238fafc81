"""The trial of a destination: tasks reach it, and one process alone makes a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from logicalrep.observe.observer import Observer
from logicalrep.options.kinds import OptionError
from logicalrep.pipeline.engines.engine import Engine, SequentialEngine
from logicalrep.pipeline.engines.local import LocalEngine
from logicalrep.pipeline.engines.reaching import UnreachedError, check_destination
from logicalrep.pipeline.run import replicate_with
from logicalrep.pipeline.settings import ReplicateSettings
from logicalrep.pipeline.state.state import StateError
from logicalrep.pipeline.storage.local_files import LocalFiles
from logicalrep.pipeline.storage.storage import Storage, StorageError
from tests.pipeline.comparison import find_differences
from tests.pipeline.test_replicate import TABLES, settings, shop
from tests.postgres.servers import Database

__all__ = ["shop"]


def left(folder: Path) -> list[Path]:
    """Return the files that a trial has left."""
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_folder_of_this_machine_is_shared_by_its_processes(tmp_path: Path, is_shared: bool) -> None:
    with LocalEngine(1) as engine:
        check_destination(engine, Storage(str(tmp_path / "lake")), is_shared_folder=is_shared)
    assert left(tmp_path) == []


def test_a_task_with_a_folder_of_its_own_is_refused(tmp_path: Path) -> None:
    class Elsewhere(SequentialEngine):
        """A machine on which the path is another folder."""

        def run(self, function: Callable[[Any], Any], items: Sequence[Any], nbytes: int) -> list[Any]:
            [item] = items
            there = type(item)(Storage(str(tmp_path / "there")), item.of_driver, item.of_task, item.contested)
            return [function(there)]

    with pytest.raises(StateError, match=r"\[DESTINATION_NOT_SHARED\].* do not see each other's files"):
        check_destination(Elsewhere(), Storage(str(tmp_path / "here")), is_shared_folder=True)
    assert left(tmp_path / "here") == []


def test_a_folder_on_which_two_processes_make_a_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create(self: LocalFiles, path: str, data: bytes) -> bool:
        self.write(path, data)
        return True

    monkeypatch.setattr(LocalFiles, "create", create)
    with pytest.raises(StateError, match=r"\[DESTINATION_NOT_SHARED\].*two processes have both made 64 of 64 files"):
        check_destination(SequentialEngine(), Storage(str(tmp_path)), is_shared_folder=True)
    assert left(tmp_path) == []


def test_a_folder_that_cannot_make_a_file_by_one_alone_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a file system without hard links."""

    def link(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(StorageError, match=r"cannot write a file only if it does not exist.*no hard links") as raised:
        check_destination(SequentialEngine(), Storage(str(tmp_path)), is_shared_folder=True)
    assert not raised.value.may_pass
    assert left(tmp_path) == []


def test_a_task_that_cannot_reach_the_destination_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class WithoutKeys(SequentialEngine):
        """A machine whose environment lacks the store's keys."""

        def run(self, function: Callable[[Any], Any], items: Sequence[Any], nbytes: int) -> list[Any]:
            with monkeypatch.context() as patch:
                patch.setattr(LocalFiles, "read", self._refuse)
                return [function(item) for item in items]

        @staticmethod
        def _refuse(*_: object) -> bytes:
            raise PermissionError(13, "no key")

    with pytest.raises(
        UnreachedError, match=r"\[DESTINATION_NOT_REACHED\] a task on .* cannot read and write .*no key"
    ):
        check_destination(WithoutKeys(), Storage(str(tmp_path)), is_shared_folder=False)


def test_an_answer_that_was_lost_is_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on NFS, which asks again: the file that is there then is the one that was made."""
    made = os.link

    def link(source: Path, target: Path) -> None:
        made(source, target)
        raise FileExistsError(17, "File exists")

    storage = Storage(str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", link)
        assert storage.create("one", b"1")
    assert not storage.create("one", b"2")
    assert storage.read("one") == b"1"


def test_a_shared_folder_is_tried_and_used(shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[bool] = []

    def check(engine: Engine, storage: Storage, *, is_shared_folder: bool) -> None:
        tried.append(is_shared_folder)
        check_destination(engine, storage, is_shared_folder=is_shared_folder)

    monkeypatch.setattr("logicalrep.pipeline.engines.start.check_destination", check)
    replicate_with(settings(shop, tmp_path, once=True, engine="local", shared_folder=True), Observer())
    assert tried == [True]
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}


def test_a_store_is_no_shared_folder() -> None:
    with pytest.raises(OptionError, match="shared_folder"):
        ReplicateSettings("dbname=x", "s3://lake/shop", shared_folder=True)
