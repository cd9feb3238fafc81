"""A clock that goes back between two commits: the times of an Iceberg table's metadata ascend, as Java requires."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")

from pyiceberg.table.metadata import TableMetadata

from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables
from logicalrep.pipeline.formats.stored_table import NewTable, Position, StoredTable
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_facts import Skipped
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.formats.iceberg.catalogs.kinds import catalog_of
from tests.pipeline.formats.iceberg.tables import insert
from tests.pipeline.histories import table
from tests.pipeline.stored import APP

pytestmark = pytest.mark.filterwarnings("ignore:.*unclosed:ResourceWarning")
_HOUR = 3600


def assert_times_ascend(metadata: TableMetadata) -> None:
    """Refuse what `TableMetadata` of Iceberg's Java library refuses, without its tolerance of a minute."""
    for log in (metadata.snapshot_log, metadata.metadata_log):
        times = [entry.timestamp_ms for entry in log]
        assert all(first <= second for first, second in pairwise(times))
        assert max(times, default=0) <= metadata.last_updated_ms


@pytest.mark.parametrize("place", ["folder", "sqlite"])
def test_times_ascend_when_the_clock_goes_back(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(upkeep_versions=3, snapshots=6, retained_bytes=1, retained_factor=0)
    clock, ahead = time.time_ns, [2 * _HOUR]
    with catalog_of("sqlite", tmp_path, monkeypatch) as catalog:
        storage = Storage(str(tmp_path / "lake"), limits=limits)
        catalog = catalog.with_limits(limits)
        tables = IcebergTables.in_folders(storage) if place == "folder" else catalog.open()

        def check(stored: StoredTable) -> None:
            version = tables.versions("public/t").find()
            assert version is not None
            assert version.number == stored.version
            assert_times_ascend(version.metadata)

        with monkeypatch.context() as patch:
            patch.setattr(time, "time_ns", lambda: clock() + ahead[0] * 1_000_000_000)
            spec = table(("id",), TableSettings(format="iceberg"))
            new = NewTable(spec, [], Position(APP, Lsn(999)), load="x", keep_hours=24)
            stored = tables.replace("public/t", new, None)
            for number, seconds in enumerate((_HOUR, 3 * _HOUR, _HOUR, 0)):
                insert(stored, 1000 + number, range(number, number + 1))
                ahead[0] = seconds
        stored.write_stopped("0/1: a reason")
        check(stored)
        stored.set_retention(48)
        check(stored)
        stored.skip(Skipped("0/3F2", 1, "2026-11-28"), APP)
        check(stored)
        for number in range(8):
            insert(stored, 1020 + number, range(10 * number, 10 * number + 5))
            stored.maintain(0)
            check(stored)
        stored = tables.replace(
            "public/t", NewTable(spec, [], Position(APP, Lsn(2000)), load="y", keep_hours=24), stored
        )
        check(stored)
