"""Other columns for rows that are there, rows that are gone, and changes: what each has in a new or renamed column."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.apply.reshaping import reshape
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.errors import NeedsResync
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import NewTable, Position, StoredTable
from logicalrep.pipeline.schema.forms import ReservedColumnError
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.apply.evolutions import evolved
from tests.pipeline.formats.iceberg.tables import insert
from tests.pipeline.histories import History, table
from tests.pipeline.reading import read_delta, read_table
from tests.pipeline.stored import APP, new_stored_table


def changed(log: StoredTable) -> None:
    """Insert two rows, update the first without its large value, and delete the second."""
    history = History(("id",), chance=None)  # type: ignore[arg-type]
    for op, old, new, unchanged in (
        ("insert", None, ("1", "b", None, "big"), ()),
        ("insert", None, ("2", "b", None, "big"), ()),
        ("update", None, ("1", "c", None, "big"), ("big",)),
        ("delete", ("2", "b", None, "big"), None, ()),
    ):
        history.add_change(op, old, new, unchanged)

    apply(log, history.pending(), Position(APP, Lsn(1000)), SequentialEngine())


def rows(tmp_path: Path, *columns: str) -> list[tuple[Any, ...]]:
    stored = read_delta(str(tmp_path / "public/t")).to_pylist()
    return sorted((tuple(row[name] for name in columns) for row in stored), key=repr)


def log_of(
    tmp_path: Path, settings: TableSettings, companion: Literal["history", "changes"] | None = None
) -> StoredTable:
    log = new_stored_table(Storage(str(tmp_path)), replace(table(("id",)), settings=settings, companion=companion))
    changed(log)
    return log


def test_past_versions_have_null_in_a_new_column(tmp_path: Path) -> None:
    log = log_of(tmp_path, TableSettings(history=True), "history")
    reshape(log, evolved(log.table, "7"), SequentialEngine())
    assert rows(tmp_path, "id", "b", "large", "new", "_is_current") == [
        (1, "b", "big", None, False),
        (1, "c", "big", 7, True),
        (2, "b", "big", None, False),
    ]


def test_marked_rows_have_null_in_a_new_column(tmp_path: Path) -> None:
    log = log_of(tmp_path, TableSettings(deletes="soft"))
    reshape(log, evolved(log.table, "7"), SequentialEngine())
    assert rows(tmp_path, "id", "large", "new", "_is_deleted") == [(1, "big", 7, False), (2, "big", None, True)]


def test_stored_changes_name_a_renamed_column_by_its_new_name(tmp_path: Path) -> None:
    log = log_of(tmp_path, TableSettings(append=True), "changes")
    reshape(log, evolved(log.table, "7"), SequentialEngine())
    assert rows(tmp_path, "_ordinal", "_change_type", "large", "new", "_unchanged") == [
        (0, "insert", "big", None, []),
        (1, "insert", "big", None, []),
        (2, "update_postimage", None, None, ["large"]),
        (3, "delete", None, None, []),
    ]


def test_files_with_field_ids_are_rewritten_if_their_changes_name_a_renamed_column(tmp_path: Path) -> None:
    settings = TableSettings(append=True, format="iceberg")
    tables = table_format(Storage(str(tmp_path)), "iceberg")
    spec = replace(table(("id",)), settings=settings, companion="changes")
    log = tables.replace("public/t", NewTable(spec, [], Position(APP, Lsn(1)), load="x", keep_hours=24), None)
    insert(log, 999, range(5, 6))
    (other,) = log.files
    changed(log)
    previous_files = {*log.files}
    reshape(log, evolved(log.table, "7"), SequentialEngine())
    (named,) = previous_files - log.files.keys()
    assert named != other
    assert len(log.files) == 2
    stored_rows = read_table(str(tmp_path / "public/t")).select(["_ordinal", "id", "large", "new", "_unchanged"])
    assert sorted((tuple(row.values()) for row in stored_rows.to_pylist()), key=repr) == [
        (0, 1, "big", None, []),
        (0, 5, "big", None, []),
        (1, 2, "big", None, []),
        (2, 1, None, None, ["large"]),
        (3, 2, None, None, []),
    ]


@pytest.mark.parametrize("default", ["7", None])
def test_a_repeated_reshape_makes_no_commit(tmp_path: Path, default: str | None) -> None:
    log = log_of(tmp_path, TableSettings())
    evolution = evolved(log.table, default)
    reshape(log, evolution, SequentialEngine())
    version = log.version
    reshape(log, evolution, SequentialEngine())
    assert (log.version, len(rows(tmp_path, "id", "large", "new"))) == (version, 1)


@pytest.mark.parametrize(
    ("unrepresentable", "expected"), [("null", {"new": None}), ("text", {"new": None, "new_text": "infinity"})]
)
def test_a_default_that_the_type_cannot_hold_becomes_null_or_text_or_needs_a_reload(
    tmp_path: Path, unrepresentable: Literal["null", "text"], expected: dict[str, Any]
) -> None:
    log = log_of(tmp_path, TableSettings(unrepresentable=unrepresentable))
    reshape(log, evolved(log.table, "infinity", type_id=1114), SequentialEngine())
    assert rows(tmp_path, *expected) == [tuple(expected.values())]
    other = log_of(tmp_path / "other", TableSettings())
    with pytest.raises(NeedsResync, match="cannot hold its default"):
        reshape(other, evolved(other.table, "infinity", type_id=1114), SequentialEngine())


def test_a_new_column_with_a_reserved_name_is_refused(tmp_path: Path) -> None:
    log = log_of(tmp_path, TableSettings(deletes="soft"))
    with pytest.raises(ReservedColumnError):
        reshape(log, evolved(log.table, None, name="_is_deleted"), SequentialEngine())
