"""Settings that a killed run had, and the next run no longer has: a table and its companion tables never keep them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest

import logicalrep
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.operate.dropping import drop
from logicalrep.pipeline.storage.storage import Storage
from tests.pipeline.formats.iceberg.catalogs.owner_server import OwnerServer, Warehouse
from tests.pipeline.kills import Killed, Kills
from tests.pipeline.replicating import replicate_once
from tests.pipeline.stored import MARKS_IN_SMALL_FILES
from tests.postgres.servers import Database

COMPANIONS = {"history": True, "append": True}
PARTITIONS = {"config": {"tables": {"t": {"partition_by": "bucket(2, id)"}}}}
STORING: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "partitions and marks": ({**COMPANIONS, **PARTITIONS, "write_mode": "merge-on-read"}, COMPANIONS),
    "no partitions and marks": (COMPANIONS, {**COMPANIONS, **PARTITIONS, "write_mode": "merge-on-read"}),
    "a feed": ({"change_data_feed": True, **COMPANIONS}, COMPANIONS),
    "no feed": (COMPANIONS, {"change_data_feed": True, **COMPANIONS}),
    "version 3": ({"format_version": 3, **COMPANIONS}, {"format_version": 2, **COMPANIONS}),
    "version 2": ({"format_version": 2, **COMPANIONS}, {"format_version": 3, **COMPANIONS}),
}
"""The settings of a run that is killed, and of the next run: both store equal rows."""
CHANGES = STORING | {
    "companions": (COMPANIONS, {}),
    "soft deletes": ({"deletes": "soft"}, {"deletes": "hard"}),
    "hard deletes": ({"deletes": "hard", **COMPANIONS}, {"deletes": "soft", **COMPANIONS}),
}


def _writes() -> Iterator[int]:
    """Yield the numbers of the writes that end runs, some before a write, some after it: most of them are early."""
    return (number * (2 * number - 1) for number in count(1))


def cases(places: Sequence[str], changes: Iterable[str], quick: tuple[str, str] | None = None) -> list[Any]:
    """Return the places with the changes that they can have; only the case `quick` is not thorough."""
    possible = [
        (place, change)
        for place, change in product(places, changes)
        if not ("version" in change if place == "delta" else "feed" in change)
    ]
    return [pytest.param(*case, marks=() if case == quick else pytest.mark.thorough) for case in possible]


@contextmanager
def running_owner(folder: Path) -> Iterator[dict[str, Any]]:
    with OwnerServer(Warehouse(str(folder / "warehouse"))).running() as server:
        yield {"format": "iceberg", "catalog": server.uri}


class Lake:
    def __init__(self, db: Database, folder: Path, place: dict[str, Any]) -> None:
        self.db, self.folder, self.place = db, folder, place

    def run(self, options: dict[str, Any]) -> None:
        replicate_once(self.db, self.folder, MARKS_IN_SMALL_FILES, **self.place, **options)

    def run_with_kill(self, options: dict[str, Any], write: int) -> bool:
        """Return whether the run ended before its write of this number."""
        with pytest.MonkeyPatch.context() as patch, suppress(Killed):
            Kills(patch).at(write)
            self.run(options)
            return True
        return False

    @property
    def catalog(self) -> CatalogSettings | None:
        return CatalogSettings(self.place["catalog"]) if "catalog" in self.place else None

    def check(self, options: dict[str, Any]) -> None:
        named = {"catalog": self.place["catalog"]} if "catalog" in self.place else {}
        rows = logicalrep.read(self.folder, "t", **named).arrow().to_pylist()
        current = [(row["id"], row["v"]) for row in rows if not row.get("_is_deleted")]
        assert sorted(current) == sorted(self.db.rows("SELECT * FROM t"))
        tables = table_format(Storage(str(self.folder)), self.place["format"], self.catalog)
        partition_by = options.get("config", {"tables": {"t": {}}})["tables"]["t"]
        names = (
            "public/t",
            *(
                f"public/t~{name}"
                for name, option in (("history", "history"), ("changes", "append"))
                if options.get(option)
            ),
        )
        for name in names:
            stored = tables.open(name)
            assert stored is not None
            settings, partitions = stored.table.settings, stored.table.partitions
            assert settings.write_mode == options.get("write_mode", "copy-on-write"), name
            assert bool(settings.partition_by) == bool(partitions) == bool(partition_by), name
            assert settings.change_data_feed == options.get("change_data_feed", False), name
            assert settings.deletes == options.get("deletes", "hard"), name
            # No load lowers the version of a table that a kill left complete.
            assert settings.format_version >= options.get("format_version", 2), name
            assert all(bool(file.partition) == bool(partition_by) for file in stored.files.values()), name
            if settings.write_mode == "copy-on-write":
                assert not [file for file in stored.files.values() if file.vector is not None], name


@pytest.fixture
def lake(request: pytest.FixtureRequest, db18: Database, tmp_path: Path) -> Iterator[Lake]:
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text)",
        "INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 40) AS i",
    )
    place = request.param
    context = running_owner(tmp_path) if place == "owner" else nullcontext({"format": place})
    with context as options:
        yield Lake(db18, tmp_path / "lake", options)


@pytest.mark.parametrize(
    ("lake", "change"),
    cases(("delta", "iceberg", "owner"), STORING, ("delta", "partitions and marks")),
    indirect=["lake"],
)
def test_a_change_of_settings_that_a_kill_ended_is_taken_back(lake: Lake, change: str) -> None:
    killed_options, last_options = CHANGES[change]
    lake.run(last_options)
    for write in _writes():
        lake.db.execute(
            f"UPDATE t SET v = 'new {write}' WHERE id % 7 = {write % 7}", f"DELETE FROM t WHERE id = {write}"
        )
        is_done = lake.run_with_kill(killed_options, write)
        lake.run(last_options)
        lake.check(last_options)
        if is_done:
            return


@pytest.mark.parametrize(("lake", "change"), cases(("delta", "owner"), CHANGES), indirect=["lake"])
def test_an_unfinished_load_leaves_no_settings(lake: Lake, change: str) -> None:
    killed_options, last_options = CHANGES[change]
    for write in _writes():
        is_done = lake.run_with_kill(killed_options, write)
        lake.run(last_options)
        lake.check(last_options)
        drop(lake.db.settings, Storage(str(lake.folder)), deletes_tables=True, catalog=lake.catalog)
        assert not list(lake.folder.parent.rglob("*.parquet"))
        if is_done:
            return
