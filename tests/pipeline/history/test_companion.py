"""Companion tables at a load, without a server."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import NewTable, Position
from logicalrep.pipeline.history import companion
from logicalrep.pipeline.history.companion import replaced_companion
from logicalrep.pipeline.load.snapshot_copy import CopiedTable
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import Storage, StorageError
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn, TimestampTz
from tests.pipeline.histories import History, table
from tests.pipeline.reading import read_table

APP = "logicalrep/1/1/x"


def test_the_changes_before_a_load_are_all_added_though_the_destination_was_away_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, history = Storage(str(tmp_path)), History(("id",), random.Random(1))
    spec = replace(table(("id",)), settings=TableSettings(append=True))
    of_changes = replace(spec, companion="changes")
    table_format(storage).replace(
        "public/t~changes", NewTable(of_changes, [], Position(APP, Lsn(1)), load="x", keep_hours=24), None
    )
    parts = []
    for _ in range(3):
        history.insert()
        parts.append(TableChanges(batches=history.take()))
    calls = []

    def apply_unless_away(*arguments: Any) -> object:
        calls.append(arguments)
        if len(calls) == 2:
            raise StorageError("it is away")
        return apply(*arguments)

    monkeypatch.setattr(companion, "apply", apply_unless_away)
    loaded = CopiedTable(TableName("public", "t"), spec, Lsn(10_000), [], "y", TimestampTz(0))

    def replace_again() -> None:
        replaced_companion(
            table_format(storage),
            "public/t",
            loaded,
            NewTable(of_changes, [], Position("logicalrep/1/1/y", Lsn(9999)), "y", 24),
            SequentialEngine(),
            buffered=lambda: iter(parts),
            before_application=APP,
        )

    with pytest.raises(StorageError):
        replace_again()
    replace_again()
    rows = read_table(str(tmp_path / "public" / "t~changes"))
    assert sorted(rows["id"].to_pylist()) == sorted(int(str(row[0])) for row in history.rows)
    assert len(history.rows) == 3
