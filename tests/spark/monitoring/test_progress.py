"""The source's figures in Spark's progress report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from logicalrep import Lsn
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.spark.peek.admission import HAS_ADMISSION_CONTROL
from tests.postgres.servers import Database
from tests.spark.streams import EACH_MODE, Stream
from tests.spark.workload import prepare

pytestmark = pytest.mark.skipif(not HAS_ADMISSION_CONTROL, reason="Spark before 4.2 asks a source for offsets alone")


@pytest.mark.parametrize("mode", EACH_MODE)
def test_how_far_the_server_is(spark: Any, db18: Database, tmp_path: Path, mode: str) -> None:
    prepare(db18, "spark")
    stream = Stream(spark, db18, tmp_path, mode=mode, max_changes_per_batch="1")
    db18.execute(*(f"INSERT INTO plain VALUES ({number})" for number in range(3)))
    slot = query_slot(db18.connection, "spark")
    assert slot.restart_lsn is not None
    # The server also writes WAL by itself at any time, so exact figures would hold for a moment only.
    written = slot.head
    sources = [progress["sources"][0] for progress in stream.run().recentProgress if progress["numInputRows"]]
    assert len(sources) == 3
    for source in sources:
        latest, end = (json.loads(source[name]) for name in ("latestOffset", "endOffset"))
        assert latest.keys() == {"lsn", "behind_bytes", "retained_bytes", "mode"}
        assert latest["mode"] in (("peek", "walsender") if mode == "auto" else (mode,))
        assert latest["behind_bytes"] == Lsn(latest["lsn"]) - Lsn(end["lsn"])
        assert Lsn(latest["lsn"]) >= written
        assert 0 < latest["retained_bytes"] <= Lsn(latest["lsn"]) - slot.restart_lsn
    ends = [Lsn(json.loads(source["endOffset"])["lsn"]) for source in sources]
    assert ends[0] < ends[1] < ends[2]
