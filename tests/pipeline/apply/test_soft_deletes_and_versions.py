"""Soft deletes and history tables: after random histories the rows equal a naive replay."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from logicalrep.arrow.changes.change_batch import ChangeBatch
from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import Position
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.histories import NAMES, History, table
from tests.pipeline.reading import read_delta
from tests.pipeline.stored import APP, KEYS, MARKS_IN_SMALL_FILES, MODES, WriteMode, new_stored_table

pytestmark = pytest.mark.slow


def moment(lsn: int) -> datetime:
    """Commit times that often run backwards."""
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=lsn * 7919 % 1000, microseconds=lsn)


def taken(history: History) -> tuple[list[dict[str, Any]], list[ChangeBatch]]:
    """Return the changes of a history with these times, as they are and as batches."""
    for change in history.changes:
        change["commit_timestamp"] = moment(change["commit_lsn"])
    return history.changes, history.take()


def text(value: Any) -> Any:
    if isinstance(value, float):
        return {"nan": "NaN", "inf": "Infinity", "-0.0": "-0"}.get(repr(value), repr(value))
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def rows_at(tmp_path: Path) -> list[dict[str, Any]]:
    rows = read_delta(str(tmp_path / "public" / "t")).to_pylist()
    return [{name: text(value) if name in NAMES else value for name, value in row.items()} for row in rows]


class Replay:
    """The rows with a key, changed one after another."""

    def __init__(self, key: tuple[str, ...]) -> None:
        self.key = key
        self.current: dict[Any, dict[str, Any]] = {}
        self.marked: dict[Any, tuple[dict[str, Any], datetime]] = {}
        self.past: list[tuple[Any, ...]] = []

    def _of(self, row: dict[str, Any]) -> Any:
        return tuple(row[name] for name in self.key)

    def _end(self, key: Any, change: dict[str, Any]) -> dict[str, Any]:
        row = self.current.pop(key)
        at = change["commit_timestamp"], change["commit_lsn"], change["ordinal"]
        self.marked[key] = row["values"], at[0]
        self.past.append((*row["values"].values(), *row["from"], *at))
        return dict(row["values"])

    def change(self, change: dict[str, Any]) -> None:
        old_row, after = change["before"], change["after"]
        if change["op"] == "truncate":
            for key in list(self.current):
                self._end(key, change)
            return
        values: dict[str, Any] = {}
        if change["op"] != "insert":
            values = self._end(self._of(dict(old_row or after)), change)
        if change["op"] != "delete":
            new = {name: dict(after).get(name, values.get(name)) for name in NAMES}
            position = change["commit_timestamp"], change["commit_lsn"], change["ordinal"]
            self.current[self._of(new)] = {"values": new, "from": position}
            self.marked.pop(self._of(new), None)


def applied_randomly(
    tmp_path: Path, limits: Limits, key: tuple[str, ...] | None, description: TableSpec, seed: int
) -> list[dict[str, Any]]:
    """Apply a random history in batches that are cut anywhere; return all its changes."""
    storage, chance = Storage(str(tmp_path), limits=limits), random.Random(seed)
    log = new_stored_table(storage, description)
    history = History(key, chance)
    changes: list[dict[str, Any]] = []
    batches: list[list[ChangeBatch]] = []
    for _ in range(12):
        for _ in range(chance.randrange(1, 60)):
            history.step()
        if chance.random() < 0.2:
            history.truncate()
        new, taken_now = taken(history)
        changes += new
        batches.append(taken_now)
        repeated = [batch for part in batches[-chance.randrange(1, 4) :] for batch in part]
        apply(log, repeated, Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
        if chance.random() < 0.3:
            reopened = table_format(storage).open("public/t")
            assert reopened is not None
            assert reopened.table == log.table
            log = reopened
    return changes


@pytest.fixture(params=[False, True], ids=["few files", "many files"])
def limits(request: pytest.FixtureRequest) -> Limits:
    if not request.param:
        return MARKS_IN_SMALL_FILES
    return replace(MARKS_IN_SMALL_FILES, in_process_bytes=9000, part_bytes=9000, file_rows=7, batch_bytes=3000)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("key", KEYS[:2], ids=str)
def test_deleted_rows_are_marked(tmp_path: Path, key: tuple[str, ...], mode: WriteMode, limits: Limits) -> None:
    replay = Replay(key)
    for change in applied_randomly(
        tmp_path, limits, key, table(key, TableSettings(deletes="soft", write_mode=mode)), 1
    ):
        replay.change(change)
    stored = Counter(tuple(row.values()) for row in rows_at(tmp_path))
    current = [(*row["values"].values(), False, None) for row in replay.current.values()]
    marked = [(*values.values(), True, at) for values, at in replay.marked.values()]
    assert marked
    assert stored == Counter(current + marked)


@pytest.mark.parametrize("mode", MODES)
def test_without_a_key_each_delete_leaves_a_mark(tmp_path: Path, mode: WriteMode, limits: Limits) -> None:
    current: Counter[Any] = Counter()
    marked: Counter[Any] = Counter()
    for change in applied_randomly(
        tmp_path, limits, None, table(None, TableSettings(deletes="soft", write_mode=mode)), 2
    ):
        if change["op"] == "truncate":
            marked.update({(*row, True, change["commit_timestamp"]): count for row, count in current.items()})
            current.clear()
        if change["before"] is not None:
            row = tuple(dict(change["before"]).values())
            current -= Counter([row])
            if change["op"] == "delete":
                marked[(*row, True, change["commit_timestamp"])] += 1
        if change["after"] is not None:
            current[tuple(dict(change["after"]).values())] += 1
    stored = Counter(tuple(row.values()) for row in rows_at(tmp_path))
    assert marked
    assert stored == marked + Counter({(*row, False, None): count for row, count in current.items()})


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("key", KEYS[:2], ids=str)
def test_history_has_every_version(tmp_path: Path, key: tuple[str, ...], mode: WriteMode, limits: Limits) -> None:
    replay = Replay(key)
    description = replace(table(key, TableSettings(write_mode=mode)), companion="history")
    for change in applied_randomly(tmp_path, limits, key, description, 3):
        replay.change(change)
    names = [*NAMES, *(f"_valid_{end}{what}" for end in ("from", "to") for what in ("", "_lsn", "_ordinal"))]
    rows = rows_at(tmp_path)
    stored = Counter(tuple(row[name] for name in names) for row in rows)
    current = [(*row["values"].values(), *row["from"], None, None, None) for row in replay.current.values()]
    assert len(replay.past) > 100
    assert stored == Counter(current + replay.past)
    assert all(row["_is_current"] == (row["_valid_to_lsn"] is None) for row in rows)


@pytest.mark.parametrize("mode", MODES)
def test_history_without_a_key_has_the_rows_of_each_moment(tmp_path: Path, mode: WriteMode, limits: Limits) -> None:
    """Which of some equal rows ends is not known: how many there are at each moment is."""
    description = replace(table(None, TableSettings(write_mode=mode)), companion="history")
    changes = applied_randomly(tmp_path, limits, None, description, 4)
    rows = rows_at(tmp_path)
    current: Counter[Any] = Counter()
    for change in changes:
        if change["op"] == "truncate":
            current.clear()
        if change["before"] is not None:
            current -= Counter([tuple(dict(change["before"]).values())])
        if change["after"] is not None:
            current[tuple(dict(change["after"]).values())] += 1
        moment = change["commit_lsn"], change["ordinal"]
        stored = Counter(
            tuple(row[name] for name in NAMES)
            for row in rows
            if (row["_valid_from_lsn"], row["_valid_from_ordinal"]) <= moment
            and (row["_is_current"] or moment < (row["_valid_to_lsn"], row["_valid_to_ordinal"]))
        )
        assert stored == current
