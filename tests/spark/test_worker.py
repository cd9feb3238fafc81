"""A task in a reused Python worker starts at once."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark import cloudpickle

from logicalrep.spark import feed_schema
from logicalrep.spark.source import LogicalRepDataSource

CAPTURE = Path(__file__).parents[1] / "captures" / "pg18" / "mixed" / "v4-late.sql.jsonl.gz"
SLOT = {"slot": "s", "publication": "p"}


def reader(is_stream: bool, **options: str) -> Any:
    source = LogicalRepDataSource(options)
    return source.streamReader(feed_schema()) if is_stream else source.reader(feed_schema())


@pytest.mark.parametrize(
    ("is_stream", "options"),
    [(False, {"path": str(CAPTURE)}), (True, SLOT), (True, SLOT | {"mode": "walsender", "spool": "/tmp/spool"})],
    ids=["captures", "peek", "walsender"],
)
def test_a_reader_is_longer_than_a_segment_of_tcp(is_stream: bool, options: dict[str, str]) -> None:
    assert len(cloudpickle.dumps(reader(is_stream, **options))) > 1 << 16  # type: ignore[no-untyped-call]


def test_objects_of_earlier_tasks_are_not_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    captures = reader(False, path=str(CAPTURE))
    [partition] = captures.partitions()
    made_since: list[list[int]] = []

    def run() -> bool:
        """Return whether the garbage collector still tracks a new object after a task."""
        assert sum(batch.num_rows for batch in captures.read(partition))
        return any(tracked is made_since for tracked in gc.get_objects())

    gc.unfreeze()
    try:
        # Earlier tests in this process may have loaded all modules.
        monkeypatch.setitem(sys.modules, "loaded by the first task", ModuleType("first"))
        run()
        assert gc.get_freeze_count() > 10_000
        made_since = [[1]]
        assert run()
        monkeypatch.setitem(sys.modules, "loaded by another task", ModuleType("second"))
        assert not run()
    finally:
        gc.unfreeze()
