"""A run with `once` that ends while a table's load waits for a later time."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from logicalrep.pipeline.buffer.change_buffer import ChangeBuffer
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.tables.manager import TableManager
from logicalrep.transactions.table_names import TableName
from tests.pipeline.state.restoring import SETUP, Destination
from tests.postgres.servers import Database


def test_a_load_whose_time_comes_during_the_upkeep_is_an_error(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db18.execute(*SETUP)
    destination = Destination(db18, tmp_path, random.Random(1), {"format": "delta"})
    assert destination.replicate() is None
    resync(db18.settings, destination.storage, [TableName("public", "t")])
    buffer = ChangeBuffer(destination.storage)
    pending_load = buffer.pending_loads()["public/t"]
    buffer.save_pending_load(replace(pending_load, begin=time.time() + 1800))
    finish = TableManager.finish

    def finish_late(tables: TableManager) -> None:
        finish(tables)
        monkeypatch.setattr("logicalrep.pipeline.tables.table.pause_until", lambda begin: 0.0)

    monkeypatch.setattr(TableManager, "finish", finish_late)
    assert destination.replicate() == "TABLES_STOPPED"
    assert destination.replicate() is None
