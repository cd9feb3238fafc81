"""Buffered changes that the slot has confirmed and that are missing at the next start: replicate reloads the table."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.load.snapshot_copy import CopiedTable
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.run.receiving import ChangeReceiver, Changes
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.tables.buffers import TableBuffers
from logicalrep.pipeline.tables.phases import Copy
from logicalrep.pipeline.tables.writer import TableWriter
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.comparison import find_differences
from tests.pipeline.state.restoring import SETUP, TABLES, Destination, Killed
from tests.postgres.servers import Database
from tests.waiting import eventually


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("buffered/public/t", "the buffered changes before"),
        ("pending/public/t.json", "it was loading at the last checkpoint, but its pending load is missing"),
        (None, None),
    ],
    ids=str,
)
def test_a_table_without_its_buffered_changes_is_reloaded(
    db18: Database, tmp_path: Path, path: str | None, reason: str | None
) -> None:
    db18.execute(*SETUP)
    destination = Destination(db18, tmp_path, random.Random(1), {"format": "delta"})
    destination.change_rows()
    destination.replicate()
    destination.step("kill")
    assert destination.log[-1] == "killed"
    if path is not None:
        target = destination.lake / "_logicalrep" / path
        shutil.rmtree(target) if target.is_dir() else target.unlink()
    destination.log.clear()
    assert destination.replicate() is None
    assert find_differences(db18.dsn, str(destination.lake), [f"public.{table}" for table in TABLES]) == {}
    assert len(destination.log) == (reason is not None)
    assert all(str(reason) in text for text in destination.log)
    assert not list((destination.lake / "_logicalrep/pending").rglob("*.json"))


def test_buffered_changes_that_the_copy_has_are_not_missed(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db18.execute(*SETUP)
    destination = Destination(db18, tmp_path, random.Random(1), {"format": "delta"})
    destination.change_rows()
    destination.replicate()
    targets = list[Lsn]()
    take, take_table, replace_rows = ChangeReceiver.take, TableBuffers.take_table, TableWriter.replace

    def take_later(receiver: ChangeReceiver) -> Changes:
        is_received = bool(targets) and not receiver.is_behind(targets[0])
        return take(receiver) if is_received else Changes((), Lsn(0))

    def ends_after(position: Lsn) -> bool:
        buffered = State.read(destination.storage).tables["public.t"].buffered
        return buffered is not None and buffered.end > position

    def replace_later(writer: TableWriter, table: Any, loaded: CopiedTable, *arguments: Any) -> Copy:
        # The batch with changes from before the snapshot ends after it.
        db18.execute("INSERT INTO dated VALUES (1000, 'n', '2026-01-01')")
        targets.append(Lsn(str(db18.value("SELECT pg_current_wal_lsn()"))))
        eventually(lambda: ends_after(loaded.position), seconds=60)
        return replace_rows(writer, table, loaded, *arguments)

    def take_and_end(*arguments: Any) -> None:
        take_table(*arguments)
        raise Killed

    db18.execute("UPDATE t SET v = 'before the snapshot'")
    resync(db18.settings, destination.storage, [TableName("public", "t")])
    with monkeypatch.context() as patch:
        patch.setattr(ChangeReceiver, "take", take_later)
        patch.setattr(TableWriter, "replace", replace_later)
        patch.setattr(TableBuffers, "take_table", take_and_end)
        with pytest.raises(Killed):
            destination.replicate(Limits(checkpoint_seconds=0.1))
    destination.log.clear()
    assert destination.replicate() is None
    assert destination.log == []
    assert find_differences(db18.dsn, str(destination.lake), [f"public.{table}" for table in TABLES]) == {}
