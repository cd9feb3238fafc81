"""What every table format must do, sentence by sentence of `StoredTable` and `TableFormat`: in a folder, store, catalog.

A format that `FORMATS` declares, and `opening` opens, is tested here without another line. The last test breaks a
format on purpose: what it forgets must be noticed.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("moto")

from logicalrep.pipeline.apply.renaming import Copied, move
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import (
    LogDamagedError,
    NewTable,
    Position,
    StoredTable,
    TableFormat,
    WriterError,
    last_application,
)
from logicalrep.pipeline.schema.file_partitions import PartitionRule
from logicalrep.pipeline.schema.table_facts import Skipped
from logicalrep.pipeline.schema.table_formats import FORMATS, FormatAbilities, FormatName
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, file_sizes, read_rows, write_rows
from logicalrep.pipeline.storage.deletion_vectors import DeletionVector
from logicalrep.pipeline.storage.statistics import Statistics
from logicalrep.pipeline.storage.storage import DamagedError, Storage, StorageError
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.histories import table
from tests.pipeline.storage.stores import Store, start_object_store

APP, FOLDER = "logicalrep/1/1/x", "public/t"


def _marks(version: int, where: str) -> list[pytest.MarkDecorator]:
    if where == "folder":
        return [pytest.mark.slow] if version > 2 else []
    return [pytest.mark.thorough] if version > 2 else [pytest.mark.slow]


PLACES = [
    pytest.param((name, version, where), id=f"{name}-{version}-{where}", marks=_marks(version, where))
    for name, abilities in FORMATS.items()
    for version in abilities.versions or (2,)
    for where in ("folder", "store", *(["catalog"] if abilities.has_catalogs else []))
]
_FEW = np.array([1, 3])
_MANY = np.arange(0, 7_000, 3)


@dataclass(frozen=True)
class Place:
    """A destination for the tables of a format."""

    name: FormatName
    storage: Storage
    version: int = 2
    catalog: CatalogSettings | None = None
    forget: Callable[[StoredTable], None] = lambda stored: None
    """What a broken format does with each table that it opens."""

    @property
    def abilities(self) -> FormatAbilities:
        return FORMATS[self.name]

    @property
    def tables(self) -> TableFormat:
        """The tables as another process sees them."""
        return table_format(self.storage, self.name, self.catalog, creates=True)

    def open(self, folder: str = FOLDER) -> StoredTable:
        """Return the last version of a table as another process reads it."""
        stored = self.tables.open(folder)
        assert stored is not None
        self.forget(stored)
        return stored

    def spec(self) -> TableSpec:
        """Return a description with marked rows, if the format has marks, and partitions by the column b."""
        mode = "copy-on-write" if self.abilities.row_marks is None else "merge-on-read"
        settings = TableSettings(format=self.name, format_version=self.version, write_mode=mode, partition_by=("b",))
        spec = table(("id",), settings)
        return replace(spec, partitions=(PartitionRule("value", 2),))

    def replace(self, load: str = "x", lsn: int = 999, *, previous: StoredTable | None = None) -> StoredTable:
        """Make a table without rows, or replace all rows of the table before."""
        application = f"logicalrep/1/1/{load}"
        return self.tables.replace(
            FOLDER, NewTable(self.spec(), [], Position(application, Lsn(lsn)), load=load, keep_hours=24), previous
        )

    def files(self, ids: range, b: str | None = "EU") -> list[DataFile]:
        """Write rows into files of one partition."""
        schema = self.spec().stored
        columns = [pa.array(ids), pa.array([b] * len(ids)), pa.nulls(len(ids)), pa.array([f"big {i}" for i in ids])]
        arrays = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
        rows = pa.table(arrays, schema=schema)
        return write_rows(self.storage, FOLDER, schema, rows, self.spec().file_partitions)

    def ids(self, stored: StoredTable) -> list[int]:
        """Return the ids of the rows that a table has."""
        schema, ids_read = stored.table.stored, list[int]()
        for file in stored.files.values():
            ids_read += read_rows(self.storage, stored.folder, file, schema, ["id"])["id"].to_pylist()
        return sorted(ids_read)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with start_object_store() as store:
        yield store


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    name, version, where = request.param
    if where == "store":
        return Place(name, Storage(f"s3://lake/{tmp_path.name}", request.getfixturevalue("store").options), version)
    catalog = CatalogSettings(f"sqlite:///{tmp_path}/catalog.db") if where == "catalog" else None
    return Place(name, Storage(str(tmp_path / "lake")), version, catalog)


def same(first: StoredTable, second: StoredTable) -> bool:
    """Return whether two processes have the same state of a table."""
    states = [
        (
            stored.version,
            stored.head,
            stored.load,
            stored.table,
            stored.files,
            stored.applied(f"logicalrep/1/1/{stored.load}"),
        )
        for stored in (first, second)
    ]
    return states[0] == states[1]


# Files and positions, which survive `open`


def test_marked_rows_survive(place: Place) -> None:
    if place.abilities.row_marks is None:
        pytest.skip("the format has no marks")
    stored = place.replace()
    few, many, whole = (place.files(ids)[0] for ids in (range(10), range(100, 7_100), range(30_000, 30_010)))
    few = replace(few, vector=DeletionVector.of(_FEW))
    stored.commit([few, many, whole], [], Position(APP, Lsn(1000)))
    # Rows of a file that is in the table, and then more rows of the same file.
    for lsn, rows in ((1001, _MANY[:5]), (1002, _MANY)):
        marked = replace(many, vector=DeletionVector.of(rows))
        stored.commit([marked], [stored.files[many.path]], Position(APP, Lsn(lsn)))
    opened = place.open()
    assert same(opened, stored)
    for file, rows in ((few, _FEW), (many, _MANY)):
        vector = opened.files[file.path].vector
        assert vector is not None
        assert (vector.count, vector.read(place.storage, FOLDER).tolist()) == (len(rows), rows.tolist())
    assert opened.files[whole.path].vector is None
    assert len(place.ids(opened)) == 10 - len(_FEW) + 7_000 - len(_MANY) + 10
    # The next commit of the other process removes a file with its marks.
    opened.commit([], [opened.files[many.path]], Position(APP, Lsn(1003)))
    assert set(place.open().files) == {few.path, whole.path}


def test_partition_values_survive(place: Place) -> None:
    stored = place.replace()
    values = ["EU", None, "a/b", 'ü" %2F', "null"]
    files = [file for number, value in enumerate(values) for file in place.files(range(number, number + 1), value)]
    assert [file.partition for file in files] == [(value,) for value in values]
    stored.commit(files, [], Position(APP, Lsn(1000)))
    opened = place.open()
    assert {file.path: file.partition for file in opened.files.values()} == {
        file.path: file.partition for file in files
    }
    assert same(opened, stored)


def test_constants_of_file_partitions_survive(place: Place) -> None:
    """Other programs leave out the columns of partitions, where these are columns."""
    (file,) = place.files(range(3))
    if place.abilities.hides_partitions:
        assert file.constants == ()
        return
    stored = place.replace()
    stored.commit([file], [], Position(APP, Lsn(1000)))
    schema = place.spec().stored
    rows = read_rows(place.storage, FOLDER, file, schema, schema.names).drop_columns(["b"])
    buffer = io.BytesIO()
    pq.write_table(rows, buffer)
    data = buffer.getvalue()
    place.storage.write(f"{FOLDER}/other.parquet", data)
    other = replace(file, path="other.parquet", size=len(data), constants=(("b", pa.scalar("EU")),))
    stored.exchange([other], [file])
    opened = place.open()
    assert opened.files["other.parquet"].constants == other.constants
    assert read_rows(place.storage, FOLDER, opened.files["other.parquet"], schema, ["b"])["b"].to_pylist() == ["EU"] * 3


def test_statistics_survive(place: Place) -> None:
    stored = place.replace()
    (file,) = place.files(range(5, 15))
    stored.commit([file], [], Position(APP, Lsn(1000)))
    opened = place.open().files[file.path]
    assert (opened.statistics, opened.rows, opened.size) == (file.statistics, file.rows, file.size)
    assert (opened.statistics.least["id"], opened.statistics.greatest["id"]) == (5, 14)


def test_positions_survive(place: Place) -> None:
    stored = place.replace()
    other, third = "logicalrep/1/2/x", "logicalrep/2/1/x"
    assert stored.applied(other) is None
    assert stored.commit(place.files(range(3)), [], Position(APP, Lsn(1000))) == stored.version
    stored.commit([], [], Position(other, Lsn(2000)))
    for stored_table in (stored, place.open()):
        assert [stored_table.applied(name) for name in (APP, other, third)] == [Lsn(1000), Lsn(2000), None]
        assert [last_application(stored_table, 1, timeline) for timeline in (0, 1, 2)] == [None, APP, other]
    # Commits that leave the rows as they are leave the positions too.
    stored.exchange(place.files(range(3)), list(stored.files.values()))
    stored.describe(replace(stored.table, comments=((0, "a comment"),)))
    stored.set_retention(48)
    stored.write_stopped("since 0/1: why")
    for stored_table in (stored, place.open()):
        assert (stored_table.applied(APP), stored_table.applied(other)) == (Lsn(1000), Lsn(2000))
        assert place.ids(stored_table) == [0, 1, 2]


# The description, and what is stored beside the rows


def test_descriptions_survive(place: Place) -> None:
    stored = place.replace()
    files = place.files(range(3))
    stored.commit(files, [], Position(APP, Lsn(1000)))
    table = replace(stored.table, comments=((0, "the orders"), (1, "their number")))
    stored.describe(table)
    assert (stored.table, place.open().table) == (table, table)
    version = stored.version
    stored.describe(table)
    assert stored.version == version
    # With files in the place of others, and a position.
    new_spec = replace(table, comments=())
    stored.describe(new_spec, place.files(range(5)), list(stored.files.values()), position=Position(APP, Lsn(1001)))
    opened = place.open()
    assert (opened.table, opened.applied(APP), place.ids(opened)) == (new_spec, Lsn(1001), [0, 1, 2, 3, 4])
    assert same(opened, stored)


def test_skipped_commits_survive(place: Place) -> None:
    stored = place.replace()
    skipped = Skipped("0/400", 3, "2026-11-28T06:00:00+00:00")
    stored.write_stopped("since 0/3E7: why")
    stored.skip(skipped, APP)
    version = stored.version
    stored.skip(skipped, APP)
    opened = place.open()
    assert (opened.table.skipped, opened.applied(APP)) == ((skipped,), Lsn(0x400))
    assert opened.version == stored.version == version


def test_what_is_stored_already_makes_no_commit(place: Place) -> None:
    stored = place.replace()
    for store in (partial(stored.set_retention, 48), partial(stored.write_stopped, "since 0/1: why")):
        store()
        version = stored.version
        store()
        assert stored.version == version
    assert same(place.open(), stored)


# Commits


def test_a_commit_that_fails_changes_nothing_and_can_be_repeated(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = place.replace()
    first, second = place.files(range(3)), place.files(range(3, 6))
    stored.commit(first, [], Position(APP, Lsn(1000)))
    version = stored.version

    def refuse(self: Storage, path: str, data: bytes) -> bool:
        raise StorageError("no room")

    with monkeypatch.context() as full:
        for name in ("write", "create"):
            full.setattr(Storage, name, refuse)
        with pytest.raises(StorageError, match="no room"):
            stored.commit(second, first, Position(APP, Lsn(1001)))
    for stored_table in (stored, place.open()):
        assert (stored_table.version, stored_table.applied(APP), place.ids(stored_table)) == (
            version,
            Lsn(1000),
            [0, 1, 2],
        )
    stored.commit(second, first, Position(APP, Lsn(1001)))
    assert same(place.open(), stored)
    assert place.ids(stored) == [3, 4, 5]


def test_a_commit_whose_answer_was_lost_is_applied_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    if place.catalog is not None:
        pytest.skip("the answers of catalogs are lost in test_catalog_commits.py")
    stored, create = place.replace(), Storage.create

    def lose_answer(self: Storage, path: str, data: bytes) -> bool:
        create(self, path, data)
        raise StorageError("the answer is lost")

    files = place.files(range(3))
    with monkeypatch.context() as lost:
        lost.setattr(Storage, "create", lose_answer)
        with pytest.raises(StorageError, match="the answer is lost"):
            stored.commit(files, [], Position(APP, Lsn(1000)))
    version = place.open().version
    with pytest.raises(StorageError, match="the answer to an earlier commit was lost"):
        stored.commit(files, [], Position(APP, Lsn(1000)))
    assert stored.applied(APP) == Lsn(1000)
    assert same(place.open(), stored)
    assert stored.version == version


def test_a_second_writer_is_refused(place: Place) -> None:
    stored, other = place.replace(), place.open()
    other.refuse_unknown_commits()
    stored.commit(place.files(range(3)), [], Position(APP, Lsn(1000)))
    stored.refuse_unknown_commits()
    for _ in range(2):
        with pytest.raises(WriterError):
            other.commit(place.files(range(3, 6)), [], Position(APP, Lsn(1001)))
    with pytest.raises(WriterError):
        other.refuse_unknown_commits()
    with pytest.raises(WriterError):
        other.describe(replace(other.table, comments=((0, "late"),)))
    assert same(place.open(), stored)
    assert place.ids(place.open()) == [0, 1, 2]


def test_each_commit_has_its_own_identity(place: Place) -> None:
    stored = place.replace()
    heads = [stored.head]
    for lsn in (1000, 1001):
        stored.commit(place.files(range(lsn, lsn + 1)), [], Position(APP, Lsn(lsn)))
        heads.append(stored.head)
    assert len({head.commit for head in heads}) == 3
    opened = place.open()
    assert opened.head == heads[-1]
    for stored_table in (stored, opened):
        assert [stored_table.read_commit(head.version) for head in heads] == [head.commit for head in heads]
        assert stored_table.read_commit(stored.version + 1) is None
        assert stored_table.foreign_change(-1) is None


def test_files_are_replaced_and_never_changed_in_place(place: Place) -> None:
    """Another thread may read them beside a commit."""
    stored = place.replace()
    stored.commit(place.files(range(3)), [], Position(APP, Lsn(1000)))
    files, previous_files = stored.files, dict(stored.files)
    stored.commit(place.files(range(3, 6)), list(files.values()), Position(APP, Lsn(1001)))
    assert files == previous_files
    assert stored.files.keys().isdisjoint(previous_files)


# Tables of a destination


def test_a_load_replaces_the_table_once(place: Place) -> None:
    stored = place.replace()
    stored.commit(place.files(range(3)), [], Position(APP, Lsn(1000)))
    stored.write_stopped("since 0/3E8: why")
    old = stored.version
    new = place.replace("y", 2000, previous=stored)
    repeated = place.replace("y", 2000, previous=stored)
    assert (repeated.version, repeated.load) == (new.version, "y")
    opened = place.open()
    assert same(opened, new)
    assert (opened.load, opened.files, opened.applied("logicalrep/1/1/y")) == ("y", {}, Lsn(2000))
    assert last_application(opened, 1, 1) == "logicalrep/1/1/y"
    new.commit(place.files(range(7, 9)), [], Position("logicalrep/1/1/y", Lsn(2001)))
    assert place.ids(place.open()) == [7, 8]
    # The earlier version can be read; a version that never was is none.
    version = place.tables.open(FOLDER, old)
    assert version is not None
    assert place.ids(version) == [0, 1, 2]
    assert place.tables.open(FOLDER, 1000) is None
    for _ in range(5):
        new.maintain(0)
    assert data_files(place) == set(new.files)


def test_a_renamed_table_has_the_same_files(place: Place) -> None:
    stored = place.replace()
    (file,) = place.files(range(10))
    if place.abilities.row_marks is not None:
        file = replace(file, vector=DeletionVector.of(_FEW))
    stored.commit([file], [], Position(APP, Lsn(1000)))
    copied, name = Copied.of(stored), TableName("public", "u")
    new = copied.renamed(name, Position("logicalrep/1/1/u", Lsn(1000)), "u", 24)
    move(copied, place.tables, "public/u", new)
    place.tables.remove(FOLDER)
    opened = place.open("public/u")
    assert (opened.load, opened.table.relation.table) == ("u", name)
    assert place.ids(opened) == [0, *([] if file.vector else [1]), 2, *([] if file.vector else [3]), 4, 5, 6, 7, 8, 9]
    assert opened.applied("logicalrep/1/1/u") == Lsn(1000)


def test_tables_are_found_and_removed(place: Place) -> None:
    tables = place.tables
    assert (tables.open(FOLDER), tables.find_folders(), tables.is_own(FOLDER)) == (None, set(), False)
    place.replace().commit(place.files(range(3)), [], Position(APP, Lsn(1000)))
    assert (tables.find_folders(), tables.is_own(FOLDER)) == ({FOLDER}, True)
    tables.remove(FOLDER)
    assert (tables.open(FOLDER), tables.find_folders(), place.storage.list(FOLDER)) == (None, set(), [])


@pytest.mark.parametrize("has_files", [True, False])
def test_a_table_that_another_program_removes_is_made_by_the_next_load(place: Place, has_files: bool) -> None:
    stored = place.replace()
    stored.commit(place.files(range(3)), [], Position(APP, Lsn(1000)))
    for number in range(2):
        remove_table(place, has_files=has_files)
        changes: list[Callable[[], object]] = [
            partial(stored.commit, place.files(range(3, 5)), [], Position(APP, Lsn(1001))),
            partial(stored.write_stopped, "0/1: a reason"),
            partial(stored.describe, replace(stored.table, comments=((0, "a comment"),))),
            stored.refuse_unknown_commits,
        ]
        for change in changes[:1] if number else changes:
            with pytest.raises(DamagedError):
                change()
        assert place.tables.open(FOLDER) is None
        stored = place.replace(f"load{number}", 2000 + number, previous=stored)
        stored.commit(place.files(range(2)), [], Position(f"logicalrep/1/1/load{number}", Lsn(2001 + number)))
        assert same(place.open(), stored)
        assert place.ids(place.open()) == [0, 1]


def remove_table(place: Place, *, has_files: bool) -> None:
    """Remove a table as another program does, with its data files or without."""
    if has_files and place.catalog is not None:
        tables = place.tables
        assert isinstance(tables, IcebergTables)
        tables.versions(FOLDER).remove()
    elif has_files:
        for path in place.storage.list(FOLDER):
            if "/_delta_log/" in path or "/metadata/" in path:
                place.storage.delete(path)
    else:
        place.tables.remove(FOLDER)


def test_a_damaged_log_is_reported(place: Place) -> None:
    place.replace().commit(place.files(range(3)), [], Position(APP, Lsn(1000)))
    for path in place.storage.list(FOLDER):
        if not path.endswith(".parquet"):
            place.storage.write(path, b"{")
    with pytest.raises(LogDamagedError):
        place.tables.open(FOLDER)


# Upkeep


def test_upkeep_deletes_what_no_version_needs_and_nothing_else(place: Place) -> None:
    stored = place.replace()
    for number in range(3):
        stored.commit(place.files(range(number + 1)), list(stored.files.values()), Position(APP, Lsn(1000 + number)))
    stored.maintain(24)
    assert not stored.is_upkeep_due(24)
    assert stored.is_upkeep_due(0)
    assert data_files(place) > set(stored.files)
    opened = place.open()
    for _ in range(5):
        opened.maintain(0)
    assert not opened.is_upkeep_due(0)
    assert not opened.opens_slowly
    assert data_files(place) == set(opened.files)
    assert same(place.open(), opened)
    assert (place.ids(opened), opened.applied(APP)) == ([0, 1, 2], Lsn(1002))


def data_files(place: Place) -> set[str]:
    """Return the paths of the data files in the table's folder."""
    paths = (path.removeprefix(f"{FOLDER}/") for path in place.storage.list(FOLDER))
    return {path for path in paths if path.startswith("part-")}


def test_the_files_of_marks_are_needed_too(place: Place) -> None:
    if place.abilities.row_marks is None:
        pytest.skip("the format has no marks")
    stored = place.replace()
    (file,) = place.files(range(7_000))
    stored.commit([file], [], Position(APP, Lsn(1000)))
    for lsn, rows in ((1001, _MANY[::2]), (1002, _MANY)):
        marked = replace(file, vector=DeletionVector.of(rows))
        stored.commit([marked], list(stored.files.values()), Position(APP, Lsn(lsn)))
    opened = place.open()
    for _ in range(5):
        opened.maintain(0)
    last = place.open()
    assert len(place.ids(last)) == 7_000 - len(_MANY)
    paths = {path.removeprefix(f"{FOLDER}/") for path in place.storage.list(FOLDER)}
    assert set(file_sizes(last.files.values())) <= paths


# Abilities


def test_field_ids_are_in_the_files_of_formats_with_field_ids(place: Place) -> None:
    (file,) = place.files(range(3))
    with place.storage.open(f"{FOLDER}/{file.path}", file.size) as opened:
        metadata = pq.read_schema(opened).field("id").metadata or {}
    assert (b"PARQUET:field_id" in metadata) == place.abilities.has_field_ids


def test_hidden_partitions_are_no_columns(place: Place) -> None:
    spec = replace(place.spec(), partitions=(PartitionRule("bucket", 1, 4),))
    assert all((partition.own_field is None) == place.abilities.hides_partitions for partition in spec.file_partitions)


# The suite itself


def forgetting(**changes: object) -> Callable[[StoredTable], None]:
    """Return what forgets something of each file."""

    def forget(stored: StoredTable) -> None:
        stored.files = {path: replace(file, **changes) for path, file in stored.files.items()}  # type: ignore[arg-type]

    return forget


def forget_positions(stored: StoredTable) -> None:
    stored.applied = lambda application: None  # type: ignore[method-assign]


def forget_last_version(stored: StoredTable) -> None:
    stored.version -= 1


def forget_load(stored: StoredTable) -> None:
    stored.load = ""


def forget_skipped(stored: StoredTable) -> None:
    stored.table = replace(stored.table, skipped=())


def forget_comments(stored: StoredTable) -> None:
    stored.table = replace(stored.table, comments=())


FAULTS: dict[str, tuple[Callable[[StoredTable], None], Callable[[Place], None]]] = {
    "vectors": (forgetting(vector=None), test_marked_rows_survive),
    "vectors of a renamed table": (forgetting(vector=None), test_a_renamed_table_has_the_same_files),
    "partitions": (forgetting(partition=()), test_partition_values_survive),
    "constants": (forgetting(constants=()), test_constants_of_file_partitions_survive),
    "statistics": (forgetting(statistics=Statistics()), test_statistics_survive),
    "positions": (forget_positions, test_positions_survive),
    "positions of a load": (forget_positions, test_a_load_replaces_the_table_once),
    "version": (forget_last_version, test_what_is_stored_already_makes_no_commit),
    "load": (forget_load, test_a_load_replaces_the_table_once),
    "skipped commits": (forget_skipped, test_skipped_commits_survive),
    "descriptions": (forget_comments, test_descriptions_survive),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_format_that_forgets_something_fails_the_suite(fault: str, tmp_path: Path) -> None:
    forget, check = FAULTS[fault]
    whole, broken = (Place("delta", Storage(str(tmp_path / name)), forget=forget) for name in ("whole", "broken"))
    check(replace(whole, forget=lambda stored: None))
    with pytest.raises(AssertionError):
        check(broken)
