"""A catalog's service merges files and removes snapshots between two steps of replicate."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyiceberg.table.snapshots import Operation

from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.storage.storage import DamagedError
from tests.pipeline.formats.iceberg.catalogs.kinds import CatalogOfTests
from tests.pipeline.formats.iceberg.catalogs.services import compact, expire_all
from tests.pipeline.formats.iceberg.catalogs.tables import ids_at, new_table, open_table
from tests.pipeline.formats.iceberg.tables import insert

pytestmark = pytest.mark.filterwarnings("ignore:Iceberg scan planning", "ignore:.*unclosed:ResourceWarning")


def test_rows_of_another_program_before_a_removal_are_no_upkeep(sqlite: CatalogOfTests) -> None:
    stored = new_table(sqlite.open())
    insert(stored, 1000, range(3))
    compact(sqlite.reader, Operation.APPEND)
    expire_all(sqlite.reader)
    assert "has changed its rows" in str(open_table(sqlite.open()).foreign_change(-1))
    with pytest.raises(DamagedError, match="has changed its rows"):
        insert(stored, 1001, range(3, 5))


def test_own_upkeep_keeps_the_proof_of_unchanged_rows(sqlite: CatalogOfTests) -> None:
    sqlite = sqlite.with_limits(Limits(metadata_seconds=0, upkeep_versions=1))
    insert(new_table(sqlite.open()), 1000, range(3))
    for _ in range(2):
        compact(sqlite.reader)
    stored = open_table(sqlite.open())
    stored.set_retention(0)
    for _ in range(2):
        compact(sqlite.reader)
    for path in Path(sqlite.storage.uri).rglob("*"):
        if path.is_file():
            os.utime(path, (0, 0))
    stored = open_table(sqlite.open())
    for _ in range(3):
        stored.maintain(0)
    assert open_table(sqlite.open()).foreign_change(-1) is None
    insert(stored, 1001, range(3, 5))
    assert ids_at(sqlite) == [0, 1, 2, 3, 4]
