"""Buffered changes that the slot has passed, and that are not there any more at the next start: a load brings them."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.pipeline.comparison import find_differences
from tests.pipeline.state.restoring import SETUP, TABLES, Destination
from tests.postgres.servers import Database


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("kept/public/t", "that were buffered are not there any more"),
        ("loads/public/t", "it was loading at the last checkpoint, and its pending load is not there any more"),
        (None, None),
    ],
    ids=str,
)
def test_a_table_whose_buffered_changes_are_gone_is_loaded_again(
    db18: Database, tmp_path: Path, path: str | None, reason: str | None
) -> None:
    db18.execute(*SETUP)
    destination = Destination(db18, tmp_path, random.Random(1), {"format": "delta"})
    destination.change_rows()
    destination.replicate()
    destination.step("kill")
    assert destination.log[-1] == "killed"
    if path is not None:
        shutil.rmtree(destination.lake / "_logicalrep" / path)
    destination.log.clear()
    assert destination.replicate() is None
    assert find_differences(db18.dsn, str(destination.lake), [f"public.{table}" for table in TABLES]) == {}
    assert len(destination.log) == (reason is not None)
    assert all(str(reason) in text for text in destination.log)
    assert not list((destination.lake / "_logicalrep/loads").rglob("load.json"))
