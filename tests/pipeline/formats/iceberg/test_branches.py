"""Branches, tags and statistics of other programs on a replicated table: our upkeep keeps what they need."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from logicalrep.pipeline.limits import Limits

pytest.importorskip("moto")

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.statistics import PartitionStatisticsFile, StatisticsFile
from pyiceberg.table.update import (
    RemoveSnapshotRefUpdate,
    SetPartitionStatisticsUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
)

from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.formats.iceberg.catalogs.connecting import connect
from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables
from logicalrep.pipeline.formats.stored_table import NewTable, Position, StoredTable, UnsupportedTableError
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import DamagedError, Storage, StorageError
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.formats.iceberg.catalogs.kinds import catalog_of
from tests.pipeline.formats.iceberg.catalogs.owner_server import OwnerServer
from tests.pipeline.formats.iceberg.tables import insert
from tests.pipeline.histories import table
from tests.pipeline.stored import APP
from tests.pipeline.upkeep.foreign.folder_catalog import FolderCatalog

pytestmark = [
    pytest.mark.filterwarnings("ignore:Iceberg scan planning", "ignore:.*unclosed:ResourceWarning"),
    pytest.mark.slow,
]


COUNT = 7
"""The rows of a table, one a commit."""


@dataclass(frozen=True)
class Place:
    """A table, as replicate and as pyiceberg open it."""

    folder: Path
    tables: Callable[[], IcebergTables]
    load: Callable[[], Table]

    def stored(self) -> StoredTable:
        table = self.tables().open("public/t")
        assert table is not None
        return table

    def ids(self, snapshot: int | None = None) -> list[int]:
        return sorted(self.load().scan(snapshot_id=snapshot).to_arrow()["id"].to_pylist())

    def ids_of(self, reference: str) -> list[int]:
        return self.ids(self.load().metadata.refs[reference].snapshot_id)

    def snapshot(self) -> Snapshot:
        current = self.load().current_snapshot()
        assert current is not None
        return current

    def commit(self, update: TableUpdate) -> None:
        loaded = self.load()
        loaded.catalog.commit_table(loaded, (), (update,))

    def row(self) -> pa.Table:
        return self.load().scan().to_arrow().slice(0, 1)


KINDS = ["folder", "sqlite", pytest.param("rest", marks=pytest.mark.thorough)]
OWN_LOCATIONS = pytest.mark.parametrize("place", KINDS, indirect=True)
"""A catalog that owns tables has settings of its own for old snapshots, and replicate deletes no other program's files."""


@pytest.fixture(params=[*KINDS, "owner"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A table of some commits in each place."""
    limits = Limits(metadata_seconds=0, upkeep_versions=5)
    if request.param == "folder":
        storage, catalog = Storage(str(tmp_path), limits=limits), FolderCatalog(tmp_path)
        opened = Place(
            tmp_path / "public/t", lambda: IcebergTables.in_folders(storage), lambda: catalog.load_table(("public/t",))
        )
        yield filled(opened)
        return
    if request.param == "owner":
        with OwnerServer(Storage(str(tmp_path / "warehouse"))).running() as server:
            storage, settings = Storage(str(tmp_path / "lake"), limits=limits), CatalogSettings(server.uri)
            tables, reader = partial(IcebergTables.in_catalog, storage, settings), connect(settings, server.warehouse)
            load = partial(reader.load_table, "public.t")
            filled(Place(tmp_path, tables, load))
            yield Place(Path(load().location()), tables, load)
        return
    with catalog_of(request.param, tmp_path, monkeypatch) as of_tests:
        yield filled(Place(tmp_path / "lake/public/t", of_tests.open, lambda: of_tests.reader.load_table("public.t")))


def new_table(load: str) -> NewTable:
    spec = table(("id",), TableSettings(format="iceberg"))
    return NewTable(spec, [], Position(APP, Lsn(999)), load=load, keep_hours=24)


def filled(place: Place) -> Place:
    stored = place.tables().replace("public/t", new_table("x"), None)
    for number in range(COUNT):
        insert(stored, 1000 + number, range(number, number + 1))
    return place


def retried(action: Callable[[], object]) -> None:
    """Do something until no commit of another program comes in between."""
    for _ in range(5):
        try:
            action()
            return
        except StorageError:
            continue
    raise AssertionError("it never goes on from what others committed")


def age(place: Place) -> None:
    """Let all files be a day old."""
    for path in place.folder.rglob("*"):
        if path.is_file():
            os.utime(path, (0, 0))


def upkeep(stored: StoredTable, place: Place, hours: float = 0) -> None:
    """Do all upkeep as if `--keep` had passed."""
    age(place)
    for _ in range(10):
        retried(lambda: stored.maintain(hours))
        if not stored.is_upkeep_due(hours):
            break
    assert not stored.is_upkeep_due(hours)


@OWN_LOCATIONS
@pytest.mark.parametrize("restarts", [False, True])
def test_a_branch_with_a_commit_of_its_own_stays_readable_and_so_does_main(place: Place, restarts: bool) -> None:
    stored = place.stored()
    place.load().manage_snapshots().create_branch(place.snapshot().snapshot_id, "audit").commit()
    row = place.row().set_column(0, "id", pa.array([777], pa.int32()))
    place.load().append(row.cast(place.row().schema), branch="audit")
    if restarts:
        stored = place.stored()
    upkeep(stored, place)
    assert place.ids() == list(range(COUNT))
    assert place.ids_of("audit") == [*range(COUNT), 777]
    assert place.stored().files == stored.files
    for number in range(COUNT, COUNT + 3):
        retried(lambda number=number: insert(stored, 1000 + number, range(number, number + 1)))  # type: ignore[misc]
        upkeep(stored, place)
    assert place.ids() == list(range(COUNT + 3))
    assert place.ids_of("audit") == [*range(COUNT), 777]
    # Once the branch is dropped, so are its files.
    place.load().manage_snapshots().remove_branch("audit").commit()
    stored = place.stored()
    stored.set_retention(0)
    insert(stored, 1100, range(COUNT + 3, COUNT + 4))
    upkeep(stored, place)
    upkeep(place.stored(), place)
    assert place.ids() == list(range(COUNT + 4))
    assert len(place.load().metadata.snapshots) == 1
    assert {path.name for path in place.folder.rglob("*.parquet")} == {Path(name).name for name in stored.files}


def test_a_tag_keeps_its_snapshot_and_files(place: Place) -> None:
    stored = place.stored()
    tagged = place.load().metadata.snapshots[5].snapshot_id
    ids = place.ids(tagged)
    place.load().manage_snapshots().create_tag(tagged, "month").commit()
    upkeep(stored, place)
    assert place.ids_of("month") == ids
    for number in range(COUNT, COUNT + 10):
        retried(lambda number=number: insert(stored, 1000 + number, range(number, number + 1)))  # type: ignore[misc]
    upkeep(stored, place)
    assert place.ids_of("month") == ids
    assert place.ids() == list(range(COUNT + 10))
    assert len(place.load().metadata.snapshots) == 2


def test_a_tag_that_comes_while_upkeep_runs_keeps_its_snapshot(place: Place) -> None:
    stored = place.stored()
    stored.set_retention(24)
    age(place)
    retried(lambda: stored.maintain(24))
    tagged = place.load().metadata.snapshots[5].snapshot_id
    ids = place.ids(tagged)
    place.load().manage_snapshots().create_tag(tagged, "month").commit()
    # The open table has not seen the tag.
    retried(lambda: stored.set_retention(0))
    retried(lambda: insert(stored, 1010, range(COUNT, COUNT + 1)))
    upkeep(stored, place)
    assert place.ids_of("month") == ids
    assert place.ids() == list(range(COUNT + 1))


@OWN_LOCATIONS
def test_a_branch_keeps_as_many_snapshots_as_it_says(place: Place) -> None:
    stored = place.stored()
    manage, head = place.load().manage_snapshots(), place.snapshot().snapshot_id
    manage.create_branch(head, "three", min_snapshots_to_keep=3).create_branch(head, "one").commit()
    retried(lambda: stored.set_retention(0))
    upkeep(stored, place)
    # In a catalog another retention is a snapshot of its own.
    last = place.snapshot().snapshot_id
    kept = {snapshot.snapshot_id for snapshot in place.load().metadata.snapshots} - {last, head}
    assert sorted(len(place.ids(snapshot)) for snapshot in kept) == [COUNT - 2, COUNT - 1]
    manage = place.load().manage_snapshots().remove_branch("three")
    manage.create_branch(head, "old", max_snapshot_age_ms=3_600_000).commit()
    retried(lambda: insert(stored, 1010, range(COUNT, COUNT + 1)))
    upkeep(stored, place)
    assert kept < {snapshot.snapshot_id for snapshot in place.load().metadata.snapshots}
    retention = place.load().metadata.refs["old"]
    assert (retention.snapshot_id, retention.max_snapshot_age_ms) == (head, 3_600_000)


def test_expiring_snapshots_keeps_referenced_snapshots(place: Place) -> None:
    stored, manage = place.stored(), place.load().manage_snapshots()
    stored.storage = replace(stored.storage, limits=Limits(snapshots=6))
    kept = {f"tag{number}": place.load().metadata.snapshots[number].snapshot_id for number in (1, 2, 3)}
    for name, snapshot in kept.items():
        manage.create_tag(snapshot, name)
    manage.commit()
    for number in range(COUNT, COUNT + 10):
        retried(lambda number=number: insert(stored, 1000 + number, range(number, number + 1)))  # type: ignore[misc]
    metadata = place.load().metadata
    assert len(metadata.snapshots) < 12
    assert kept.items() <= {name: ref.snapshot_id for name, ref in metadata.refs.items()}.items()
    upkeep(stored, place, 24)
    assert [place.ids_of(name) for name in kept] == [list(range(end)) for end in (1, 2, 3)]


def test_the_retention_of_main_is_honoured_and_stays(place: Place) -> None:
    stored = place.stored()
    values = {"ref-name": "main", "type": "branch", "snapshot-id": place.snapshot().snapshot_id}
    place.commit(SetSnapshotRefUpdate.model_validate(values | {"min-snapshots-to-keep": 4}))
    for number in range(COUNT, COUNT + 3):
        retried(lambda number=number: insert(stored, 1000 + number, range(number, number + 1)))  # type: ignore[misc]
    upkeep(stored, place)
    assert place.load().metadata.refs["main"].min_snapshots_to_keep == 4
    assert [len(place.ids(snapshot.snapshot_id)) for snapshot in place.load().metadata.snapshots] == [
        COUNT,
        COUNT + 1,
        COUNT + 2,
        COUNT + 3,
    ]


@OWN_LOCATIONS
def test_statistics_of_snapshots_stay_with_them(place: Place) -> None:
    paths_by_name = {}
    all_snapshots = place.load().metadata.snapshots
    for name, snapshot in (("last", all_snapshots[-1]), ("old", all_snapshots[4]), ("tagged", all_snapshots[5])):
        paths_by_name[name] = [place.folder / f"metadata/{name}.stats", place.folder / f"data/{name}.parquet"]
        common = {"snapshot-id": snapshot.snapshot_id, "file-size-in-bytes": 5}
        for path in paths_by_name[name]:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"stats")
        blobs = {"blob-metadata": [], "file-footer-size-in-bytes": 1, "statistics-path": str(paths_by_name[name][0])}
        with place.load().update_statistics() as update:
            update.set_statistics(StatisticsFile.model_validate(common | blobs))
        partitions = PartitionStatisticsFile.model_validate(common | {"statistics-path": str(paths_by_name[name][1])})
        place.commit(SetPartitionStatisticsUpdate.model_validate({"partition-statistics": partitions}))
    place.load().manage_snapshots().create_tag(all_snapshots[5].snapshot_id, "tag").commit()
    upkeep(place.stored(), place)
    upkeep(place.stored(), place)
    assert {name: [path.exists() for path in paths] for name, paths in paths_by_name.items()} == {
        "last": [True, True],
        "old": [False, False],
        "tagged": [True, True],
    }
    metadata = place.load().metadata
    assert len(metadata.statistics) == len(metadata.partition_statistics) == len(metadata.snapshots) == 2
    retried(lambda: insert(place.stored(), 1010, range(COUNT, COUNT + 1)))
    assert place.ids() == list(range(COUNT + 1))


def test_a_staged_snapshot_keeps_its_files_as_long_as_old_versions(place: Place) -> None:
    place.load().manage_snapshots().create_branch(place.snapshot().snapshot_id, "staged").commit()
    place.load().append(place.row(), branch="staged")
    staged = place.load().metadata.refs["staged"].snapshot_id
    place.load().manage_snapshots().remove_branch("staged").commit()
    upkeep(place.stored(), place)
    upkeep(place.stored(), place)
    assert place.ids(staged) == [0, *range(COUNT)]
    stored = place.stored()
    stored.set_retention(0)
    insert(stored, 1010, range(COUNT, COUNT + 1))
    assert staged not in {snapshot.snapshot_id for snapshot in place.load().metadata.snapshots}
    assert place.ids() == list(range(COUNT + 1))


def test_a_table_without_a_snapshot_is_replaced_and_not_empty(place: Place) -> None:
    stored = place.stored()
    place.commit(RemoveSnapshotRefUpdate.model_validate({"ref-name": "main"}))
    assert place.load().current_snapshot() is None
    with pytest.raises(UnsupportedTableError, match="has changed its rows"):
        place.tables().open("public/t")
    for _ in range(2):
        with pytest.raises(DamagedError, match="has changed its rows"):
            insert(stored, 1010, range(COUNT, COUNT + 1))
    insert(place.tables().replace("public/t", new_table("y"), stored), 1011, range(2))
    assert place.ids() == [0, 1]
    assert len(place.stored().files) == 1


def test_the_files_of_a_reference_that_cannot_be_read_stay(place: Place) -> None:
    stored = place.stored()
    place.load().manage_snapshots().create_branch(place.snapshot().snapshot_id, "audit").commit()
    place.load().append(place.row(), branch="audit")
    branch = place.load().metadata.snapshot_by_id(place.load().metadata.refs["audit"].snapshot_id)
    assert branch is not None
    files = set(place.folder.rglob("*.parquet"))
    Path(branch.manifest_list).unlink()
    for stored_table in (stored, place.stored()):
        upkeep(stored_table, place)
    assert set(place.folder.rglob("*.parquet")) == files
    assert place.ids() == list(range(COUNT))
