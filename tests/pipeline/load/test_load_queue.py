"""The threads that load tables: groups, two of them at a time, and how they end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.load.load_queue import LoadQueue
from logicalrep.pipeline.load.snapshot_copy import CopiedTable, CopyFailed, LoadRequest, SnapshotCopy
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn, TimestampTz
from tests.waiting import eventually

NOW = Lsn(100)
"""Every commit before it is taken."""


class Held:
    """Takes groups, and holds each group until the test releases it."""

    def __init__(self) -> None:
        self.groups: list[list[TableName]] = []
        self.may_finish = threading.Event()
        self.is_closed = False

    def load(
        self, folders: Mapping[TableName, LoadRequest], is_wanted: Callable[[TableName], bool]
    ) -> Iterator[CopiedTable | CopyFailed]:
        self.groups.append(list(folders))
        self.is_wanted = is_wanted
        assert self.may_finish.wait(30)
        for name in folders:
            yield CopyFailed(name, "tried", may_retry=False)

    def close(self) -> None:
        self.is_closed = True


def names(count: int) -> list[TableName]:
    return [TableName("public", f"t{number}") for number in range(count)]


def test_tables_that_come_one_by_one_are_loaded_in_groups_two_at_a_time() -> None:
    held, results = Held(), []
    with LoadQueue(cast(SnapshotCopy, held), threading.Event(), Limits()) as loader:
        for name in names(20):
            loader.add({name: LoadRequest(name.name, 1)})
        eventually(lambda: len(held.groups) == 2)
        assert [len(group) for group in held.groups] == [8, 8]
        held.may_finish.set()

        def are_all_loaded() -> bool:
            results.extend(loader.results(NOW))
            return len(results) == 20

        eventually(are_all_loaded)
    assert sorted(result.name for result in results) == sorted(names(20))
    assert (len(held.groups), held.is_closed) == (3, True)


def test_a_table_that_is_wanted_twice_before_its_load_is_loaded_once() -> None:
    held = Held()
    held.may_finish.set()
    with LoadQueue(cast(SnapshotCopy, held), threading.Event(), Limits()) as loader:
        for _ in range(3):
            loader.add({names(1)[0]: LoadRequest("t0", 1)})
        eventually(lambda: len(loader.results(NOW)) == 1)
        loader.add({names(1)[0]: LoadRequest("t0", 1)})
        eventually(lambda: len(held.groups) == 2)


def test_an_error_of_a_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held()

    def fail(folders: Any, is_wanted: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(held, "load", fail)
    with LoadQueue(cast(SnapshotCopy, held), threading.Event(), Limits()) as loader:
        loader.add({names(1)[0]: LoadRequest("t0", 1)})
        with pytest.raises(ZeroDivisionError):
            eventually(lambda: bool(loader.results(NOW)))


def test_a_table_requested_twice_is_loaded_twice_one_after_another() -> None:
    held, name = Held(), names(1)[0]
    with LoadQueue(cast(SnapshotCopy, held), threading.Event(), Limits()) as loader:
        loader.add({name: LoadRequest("t0", 1)})
        eventually(lambda: len(held.groups) == 1)
        assert held.is_wanted(name)
        loader.add({name: LoadRequest("t0", 1)})
        assert not held.is_wanted(name)
        loader.add({names(2)[1]: LoadRequest("t1", 1)})
        eventually(lambda: len(held.groups) == 2)
        assert held.groups == [[name], [names(2)[1]]]
        held.may_finish.set()
        loaded: list[TableName] = []

        def are_both_loaded() -> bool:
            loaded.extend(result.name for result in loader.results(NOW))
            return len(held.groups) == 3 and len(loaded) >= 2

        eventually(are_both_loaded)
    # What came of the first wish counts no more.
    assert sorted(loaded) == names(2)


def test_partitions_are_returned_once_all_commits_before_their_snapshot_are_taken() -> None:
    part, whole = names(2)
    spec = cast(Any, SimpleNamespace())

    class Copied(Held):
        def load(self, folders: Mapping[TableName, LoadRequest], is_wanted: Any) -> Iterator[CopiedTable | CopyFailed]:
            self.groups.append(list(folders))
            for name in folders:
                yield CopiedTable(name, spec, Lsn(101), [], "x", TimestampTz(0), None if name == whole else spec)

    copying = Copied()
    with LoadQueue(cast(SnapshotCopy, copying), threading.Event(), Limits()) as loader:
        loader.add({part: LoadRequest("t0", 1), whole: LoadRequest("t1", 2)})
        loaded: list[TableName] = []

        def take(taken: int) -> bool:
            loaded.extend(result.name for result in loader.results(Lsn(taken)))
            return loader.waits_for_changes

        eventually(lambda: take(100))
        assert not take(101)
        assert sorted(loaded) == [part, whole]
        # Another load of it is wanted before the copied rows are taken.
        loader.add({part: LoadRequest("t0", 1)})
        eventually(lambda: take(100))
        loader.add({part: LoadRequest("t0", 1)})
        eventually(lambda: len(copying.groups) == 3 and take(100))
        assert not take(101)
        assert loaded.count(part) == 2
