"""What all versions of metadata must do, sentence by sentence of `MetadataVersions`: in a folder, and in a catalog."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Barrier

import pytest

pytest.importorskip("moto")
pytest.importorskip("sqlalchemy")

from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import SetPropertiesUpdate, TableUpdate, update_table_metadata

from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables
from logicalrep.pipeline.formats.iceberg.manifest_writer import ManifestWriter
from logicalrep.pipeline.formats.iceberg.metadata import (
    TABLE,
    VERSION,
    WRITER,
    SnapshotNumbers,
    commit_summary,
    new_metadata,
    next_sequence_number,
    schema_updates,
    snapshot_updates,
)
from logicalrep.pipeline.formats.iceberg.old_versions import read_old_version
from logicalrep.pipeline.formats.iceberg.versions import LaterCommits, MetadataVersion, MetadataVersions
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.storage import MalformedFileError, Storage, StorageError
from tests.pipeline.formats.iceberg.catalogs.kinds import CatalogOfTests, catalog_of
from tests.pipeline.histories import table

FOLDER = "public/t"
SPEC = table(("id",), TableSettings(format="iceberg"))
FIRST = {"write.metadata.previous-versions-max": "2"}

pytestmark = pytest.mark.filterwarnings("ignore:.*unclosed:ResourceWarning")


@dataclass
class Process:
    """A process that commits to the table."""

    versions: MetadataVersions
    storage: Storage
    name: str = "one"
    last: MetadataVersion | None = None
    spec: TableSpec = SPEC

    def commit(self, *, operation: Operation = Operation.APPEND, is_ours: bool = True) -> MetadataVersion | None:
        """Commit a snapshot without files, as this process or as another program does."""
        last = self.last
        start = new_metadata(self.storage, FOLDER, self.spec, {}) if last is None else last.metadata
        number = 1 if last is None else last.number + 1
        own = {WRITER: self.name, VERSION: str(number)} if is_ours else {}
        updates: list[TableUpdate] = schema_updates(start, self.spec)
        changed = update_table_metadata(start, tuple(updates)) if updates else start
        numbers = SnapshotNumbers(secrets.randbits(62) + 1, next_sequence_number(start))
        writer = ManifestWriter(self.storage, f"{FOLDER}/metadata", changed, numbers)
        path = writer.write_list([], start.current_snapshot_id)
        summary = commit_summary(operation, [], [], {}, {}, None, own)
        updates += snapshot_updates(self.storage, start, changed.current_schema_id, numbers, path, summary)
        if is_ours:
            properties = {TABLE: self.spec.to_json(), **own, **(FIRST if last is None else {})}
            updates.append(SetPropertiesUpdate(updates=properties))
        version = self.versions.commit(last, start, updates, numbers.snapshot_id)
        if version is not None:
            self.last = version
        return version

    def commit_many(self, count: int) -> list[MetadataVersion]:
        """Commit some versions, with what upkeep is due after each."""
        versions = []
        for _ in range(count):
            version = self.commit()
            assert version is not None
            versions.append(version)
            self.versions.find_needed()
            if self.versions.is_upkeep_due:
                self.versions.maintain(0)
        return versions

    def follow(self) -> LaterCommits:
        return self.versions.follow(self.last)


@dataclass(frozen=True)
class Place:
    """Where the metadata of a table is."""

    storage: Storage
    catalog: CatalogOfTests | None
    patch: pytest.MonkeyPatch

    def process(self, name: str = "one") -> Process:
        """Return a process that has just found the last version."""
        tables = IcebergTables.in_folders(self.storage) if self.catalog is None else self.catalog.open()
        versions = tables.versions(FOLDER)
        return Process(versions, self.storage, name, versions.find())

    def last(self) -> MetadataVersion:
        version = self.process().last
        assert version is not None
        return version

    def lose_answer(self, *, is_made: bool) -> None:
        """Lose the answer of the next commit, which is made or not."""
        if self.catalog is not None:
            self.catalog.fail_next_commit(is_made=is_made)
            return
        create = Storage.create

        def created(storage: Storage, path: str, data: bytes) -> bool:
            self.patch.setattr(Storage, "create", create)
            if is_made:
                create(storage, path, data)
            raise StorageError("the answer is lost")

        self.patch.setattr(Storage, "create", created)

    def metadata_files(self) -> set[str]:
        """Return the paths of all metadata in the table's folder."""
        paths = (path.removeprefix(f"{FOLDER}/") for path in self.storage.list(f"{FOLDER}/metadata"))
        return {path for path in paths if path.endswith(".metadata.json")}


@pytest.fixture(params=["folder", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    limits = Limits(metadata_versions=2, metadata_seconds=0, upkeep_versions=3)
    with ExitStack() as stack:
        catalog = None
        if request.param != "folder":
            catalog = stack.enter_context(catalog_of(request.param, tmp_path, monkeypatch))
            catalog = replace(catalog, storage=replace(catalog.storage, limits=limits))
        yield Place(Storage(str(tmp_path / "lake"), limits=limits), catalog, monkeypatch)


def test_a_table_has_no_version_before_its_first_commit(place: Place) -> None:
    process = place.process()
    assert (process.last, process.versions.find(1), process.follow()) == (None, None, LaterCommits(None))
    version = process.commit()
    assert version is not None
    assert version.number == 1
    assert place.last() == version


def test_other_processes_find_each_version(place: Place) -> None:
    process = place.process()
    committed = [process.commit(), process.commit(), process.commit()]
    for versions in (process.versions, place.process("two").versions):
        versions_read = [versions.find(number) for number in (1, 2, 3)]
        assert [version and (version.number, version.metadata) for version in versions_read] == [
            version and (version.number, version.metadata) for version in committed
        ]
        assert (versions.find(), versions.find(4)) == (committed[-1], None)
        commits = [versions.commit_of(version) for version in versions_read if version is not None]
        assert commits == [process.versions.commit_of(version) for version in committed if version is not None]
        assert len({*commits, None}) == 4
        assert versions.follow(committed[0]).last == committed[-1]
        assert versions.follow(committed[-1]) == LaterCommits(committed[-1])


@pytest.mark.parametrize("is_there", [True, False], ids=["a table", "no table"])
def test_a_commit_has_one_winner(place: Place, is_there: bool) -> None:
    if is_there:
        place.process().commit()
    first, second = place.process("one"), place.process("two")
    version = first.commit()
    assert version is not None
    for _ in range(2):
        assert second.commit() is None
    assert place.last() == version
    # The loser learns who has won, and continues from there.
    assert second.follow() == LaterCommits(version, frozenset({"one"}))
    second.last = version
    assert second.commit() is not None
    assert first.follow() == LaterCommits(second.last, frozenset({"two"}))
    assert first.commit() is None


def test_a_commit_of_many_at_once_has_one_winner(place: Place) -> None:
    place.process().commit()
    processes = [place.process(f"{number}") for number in range(4)]
    barrier = Barrier(len(processes))

    def commit(process: Process) -> MetadataVersion | None:
        barrier.wait(60)
        try:
            return process.commit()
        except StorageError:
            # A file of SQLite may be locked.
            return None

    with ThreadPoolExecutor(len(processes)) as pool:
        results = list(pool.map(commit, processes))
    winners = [process.name for process, version in zip(processes, results, strict=True) if version is not None]
    assert len(winners) == 1
    for process in processes:
        assert process.follow().writers == set(winners) - {process.name}
    assert place.last().number == 2


def test_a_suspended_process_creates_no_version(place: Place) -> None:
    """Upkeep has removed the versions after the process's last known version."""
    place.process().commit()
    slept, other = place.process("slept"), place.process("other")
    last = other.commit_many(12)[-1]
    files = place.metadata_files()
    assert slept.commit() is None
    assert place.last() == last
    followed = slept.follow()
    assert (followed.last, followed.writers) == (last, frozenset({"other"}))
    assert other.commit() is not None
    if place.catalog is None:
        assert files <= place.metadata_files()


@pytest.mark.parametrize("is_made", [True, False], ids=["made", "not made"])
def test_a_commit_whose_answer_was_lost_is_recognised(place: Place, is_made: bool) -> None:
    process = place.process()
    process.commit()
    place.lose_answer(is_made=is_made)
    try:
        version = process.commit()
    except StorageError:
        followed = process.follow()
        assert followed.writers == ({"one"} if is_made else set())
        assert not followed.is_foreign
        version = followed.last
    else:
        assert is_made
    assert version is not None
    assert (version, version.number) == (place.last(), 2 if is_made else 1)
    process.last = version
    assert process.commit() is not None


@pytest.mark.parametrize("operation", [Operation.REPLACE, Operation.DELETE, Operation.APPEND])
def test_commits_of_other_programs_are_reported(place: Place, operation: Operation) -> None:
    ours = place.process()
    ours.commit()
    previous = ours.last
    assert previous is not None
    program = place.process()
    program.commit(operation=operation, is_ours=False)
    assert ours.commit() is None
    followed = ours.follow()
    assert followed.is_foreign
    assert not followed.writers
    is_upkeep = operation == Operation.REPLACE
    assert (followed.changes is None) == is_upkeep
    # A process that starts then learns the same.
    started = place.process("two")
    assert started.last is not None
    assert (started.versions.foreign_change(started.last, -1) is None) == is_upkeep
    assert started.versions.foreign_change(previous, -1) is None
    if is_upkeep:
        assert started.commit() is not None
        assert started.versions.foreign_change(place.last(), -1) is None
        assert started.follow() == LaterCommits(started.last)


def test_changed_columns_are_reported(place: Place) -> None:
    ours = place.process()
    ours.commit()
    program = place.process()
    columns = tuple(replace(column, name=f"{column.name}_renamed") for column in SPEC.relation.columns)
    program.spec = replace(SPEC, relation=replace(SPEC.relation, columns=columns), key=None)
    program.commit(operation=Operation.REPLACE, is_ours=False)
    assert ours.follow().changes == "another program has changed its columns"
    started = place.process("two")
    assert started.last is not None
    assert started.versions.foreign_change(started.last, -1) == "another program has changed its columns"


def test_a_dropped_table_is_reported(place: Place) -> None:
    process = place.process()
    process.commit_many(3)
    tables = IcebergTables.in_folders(place.storage) if place.catalog is None else place.catalog.open()
    tables.versions(FOLDER).remove()
    for path in place.storage.list(FOLDER):
        place.storage.delete(path)
    assert place.process().last is None
    followed = process.follow()
    assert (followed.last, followed.is_foreign) == (None, True)
    assert followed.changes is not None


# Upkeep


def test_upkeep_keeps_the_files_of_current_and_past_versions(place: Place) -> None:
    process = place.process()
    committed = process.commit_many(14)
    needed = process.versions.find_needed()
    assert len(place.metadata_files()) < 14
    for path in place.metadata_files() - needed:
        place.storage.delete(f"{FOLDER}/{path}")
    versions = place.process("two").versions
    for number in (13, 14):
        version = versions.find(number)
        assert version is not None
        assert version.metadata == committed[number - 1].metadata
    for number in range(1, 13):
        old = read_old_version(place.storage, FOLDER, number)
        assert versions.find(number) is not None or (old is not None and old[1] == SPEC)


def test_versions_that_a_reader_may_have_found_stay(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, limits = [1000.0], replace(place.storage.limits, metadata_seconds=60)
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    catalog = None if place.catalog is None else place.catalog.with_limits(limits)
    place = replace(place, storage=replace(place.storage, limits=limits), catalog=catalog)
    process = place.process()
    process.commit_many(10)
    # Another process does not know how long the versions have been there.
    process = place.process()
    process.versions.find_needed()
    clock[0] += 59
    process.commit_many(10)
    files = place.metadata_files()
    assert len(files) == 20
    clock[0] += 2
    process.commit_many(1)
    remaining = place.metadata_files()
    assert 11 <= len(remaining) < 20
    clock[0] += 60
    process.commit_many(1)
    assert len(place.metadata_files()) <= limits.metadata_versions + limits.upkeep_versions + 1
    assert place.last() == process.last


def test_upkeep_that_fails_resumes_where_it_ended(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    process = place.process()
    for _ in range(20):
        process.commit()
        process.versions.find_needed()
        if process.versions.is_upkeep_due:
            break
    files, delete, calls = place.metadata_files(), Storage.delete, iter([False, True])

    def fail(storage: Storage, path: str) -> None:
        if next(calls):
            raise StorageError("the destination is away")
        delete(storage, path)

    with monkeypatch.context() as away:
        away.setattr(Storage, "delete", fail)
        with pytest.raises(StorageError, match="is away"):
            process.versions.maintain(0)
    assert len(place.metadata_files()) == len(files) - 1
    process.commit_many(12)
    assert not process.versions.is_upkeep_due
    assert len(place.metadata_files()) <= len(files)
    assert place.metadata_files().isdisjoint(files)
    assert place.last() == process.last


# Errors


def test_damaged_metadata_is_never_no_table(place: Place) -> None:
    process = place.process()
    process.commit()
    place.process("two").commit()
    for path in place.metadata_files():
        place.storage.write(f"{FOLDER}/{path}", b"{")
    for find in (place.process, process.follow):
        with pytest.raises(MalformedFileError):
            find()


@pytest.mark.parametrize("use", [lambda process: process.versions.find(), Process.follow, Process.commit])
def test_a_destination_that_is_away_is_never_no_table(
    place: Place, use: Callable[[Process], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    process = place.process()
    process.commit()

    def away(storage: Storage, *arguments: object) -> None:
        raise StorageError("the destination is away")

    with monkeypatch.context() as patch:
        for name in ("read", "names", "write", "create"):
            patch.setattr(Storage, name, away)
        with pytest.raises(StorageError, match="is away"):
            use(process)
    assert process.follow() == LaterCommits(process.last)
    assert process.commit() is not None
