"""Catalogs that own their tables: the catalog chooses the locations, and hands out the credentials."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from random import Random
from uuid import UUID

import pytest
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.snapshots import Operation, Snapshot

from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.iceberg.catalogs.connecting import connect
from logicalrep.pipeline.formats.stored_table import ForeignTableError, LogDamagedError
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import DamagedError, MalformedFileError, Storage, StorageError
from logicalrep.pipeline.upkeep.merging import merge_next
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.formats.iceberg.catalogs.owner import Owner
from tests.pipeline.formats.iceberg.catalogs.owner_server import Fault, Profile
from tests.pipeline.formats.iceberg.catalogs.services import compact, expire_all, expire_with_files, merge_files
from tests.pipeline.formats.iceberg.catalogs.tables import open_table
from tests.pipeline.formats.iceberg.tables import delete, insert
from tests.pipeline.histories import table
from tests.pipeline.stored import APP, MARKS_IN_SMALL_FILES, MODES, WriteMode

pytestmark = pytest.mark.filterwarnings("ignore:Iceberg scan planning", "ignore:.*unclosed:ResourceWarning")

WRITTEN: dict[WriteMode, set[str]] = {"copy-on-write": {"part"}, "merge-on-read": {"part", "deletes"}}
TABLE = "/namespaces/public/tables/t"


def test_a_table_is_where_the_catalog_has_put_it(owner: Owner, tmp_path: Path) -> None:
    stored = owner.new_table()
    insert(stored, 1000, range(3))
    assert owner.ids() == [0, 1, 2]
    location = owner.open_as_reader().location()
    assert location.startswith(f"{tmp_path}/warehouse/")
    assert list(Path(location).glob("data/*.parquet"))
    reopened = open_table(owner.open())
    assert (reopened.version, reopened.applied(APP), reopened.files) == (stored.version, Lsn(1000), stored.files)
    insert(reopened, 1001, range(3, 5))
    for _ in range(3):
        reopened.maintain(0)
    assert owner.ids() == [0, 1, 2, 3, 4]
    # replicate's own files stay at the destination.
    assert {path.parent for path in (tmp_path / "lake").rglob("*") if path.is_file()} <= {tmp_path / "lake/public/t"}
    assert not list(Path(location).glob("_*"))


def test_upkeep_deletes_no_file_of_the_catalog_or_its_services(owner: Owner) -> None:
    stored = owner.new_table()
    insert(stored, 1000, range(3))
    location = Path(owner.open_as_reader().location())
    foreign_files = [
        location / name for name in ("data/merged.parquet", "metadata/old.metadata.json", "metadata/x.stats")
    ]
    own_files = [location / f"data/part-{'0' * 32}.parquet", location / f"metadata/snap-1-{UUID(int=1)}.avro"]
    for path in (*foreign_files, *own_files):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    for path in location.rglob("*"):
        os.utime(path, (0, 0))
    metadata = set(location.rglob("*.metadata.json"))
    reopened = open_table(owner.open())
    for _ in range(3):
        reopened.maintain(0)
    assert [path.exists() for path in foreign_files] == [True, True, True]
    assert [path.exists() for path in own_files] == [False, False]
    assert metadata <= set(location.rglob("*.metadata.json"))


def test_a_load_that_did_not_end_leaves_a_table_that_the_next_load_uses(owner: Owner) -> None:
    spec = table(("id",), TableSettings(format="iceberg"))
    owner.open().prepare("public/t", spec)
    location = owner.open_as_reader().location()
    tables = owner.open()
    assert tables.open("public/t") is None
    stored = owner.new_table()
    insert(stored, 1000, range(3))
    assert owner.open_as_reader().location() == location
    assert owner.ids() == [0, 1, 2]
    tables.remove("public/t")
    assert owner.server.tables == {}
    assert not Path(location).exists() or not any(path.is_file() for path in Path(location).rglob("*"))


@pytest.mark.parametrize("version", [2, 3])
def test_a_load_that_did_not_end_leaves_the_next_load_the_choice_of_the_version(owner: Owner, version: int) -> None:
    spec = table(("id",), TableSettings(format="iceberg", format_version=version))
    other_spec = table(("id",), TableSettings(format="iceberg", format_version=5 - version))
    tables = owner.open()
    tables.prepare("public/t", spec)
    location = Path(owner.open_as_reader().location())
    tables.storage.write(f"public/t/data/part-{'0' * 32}.parquet", b"a part of the load")
    insert(owner.new_table(spec=other_spec), 1000, range(3))
    reader = owner.open_as_reader()
    assert (reader.format_version, owner.ids()) == (5 - version, [0, 1, 2])
    assert open_table(owner.open()).table.settings.format_version == 5 - version
    # No commit lowers a version, so replicate replaces the table, whose files go with it.
    assert (Path(reader.location()) == location) == (version == 2)
    assert version == 2 or not [path for path in location.rglob("*") if path.is_file()]


def test_rows_of_another_program_in_a_table_without_a_load_are_not_removed(owner: Owner) -> None:
    tables = owner.open()
    tables.prepare("public/t", table(("id",), TableSettings(format="iceberg", format_version=3)))
    foreign = owner.open_as_reader()
    snapshot = Snapshot.model_construct(
        snapshot_id=1, sequence_number=1, timestamp_ms=foreign.metadata.last_updated_ms, manifest_list="x", schema_id=0
    )
    entry = owner.server.tables["public", "t"]
    entry.metadata = entry.metadata.model_copy(update={"snapshots": [snapshot], "current_snapshot_id": 1})
    with pytest.raises(ForeignTableError, match=r"has format version 3, and not 2, and rows of another program"):
        owner.new_table()
    assert owner.server.tables["public", "t"] is entry


def test_a_catalog_that_chooses_the_format_version_is_refused_with_a_way_out(owner: Owner) -> None:
    owner.server.profile = Profile(version=3)
    with pytest.raises(
        ForeignTableError, match=r"has created .* with format version 3, and not 2: pass --format-version 3"
    ):
        owner.new_table()
    insert(owner.new_table(spec=table(("id",), TableSettings(format="iceberg", format_version=3))), 1000, range(3))
    assert owner.ids() == [0, 1, 2]


def test_a_dropped_table_leaves_no_file_of_a_commit_that_failed(owner: Owner) -> None:
    limits = Limits(upkeep_versions=1, marked_share=1, small_file_bytes=0)
    owner = replace(owner, storage=replace(owner.storage, limits=limits))
    stored = owner.new_table("merge-on-read")
    insert(stored, 1000, range(9))
    delete(stored, 1001, range(3))
    location = Path(owner.open_as_reader().location())
    owner.server.faults.append(Fault("POST", TABLE, 409))
    with pytest.raises(StorageError):
        delete(stored, 1002, range(3, 5))
    stored.maintain(0)
    tables = owner.open()
    tables.remove("public/t")
    assert owner.server.tables == {}
    assert not [path for path in location.rglob("*") if path.is_file()]


@pytest.mark.parametrize("has_other", [False, True])
def test_own_files_of_a_table_without_an_entry_are_removed(owner: Owner, tmp_path: Path, has_other: bool) -> None:
    limits = Limits(upkeep_versions=1, metadata_seconds=0)
    owner = replace(owner, storage=replace(owner.storage, limits=limits))
    stored = owner.new_table()
    for number in range(4):
        insert(stored, 1000 + number, range(number, number + 1))
        stored.maintain(24)
    assert [path.name for path in (tmp_path / "lake/public/t").iterdir()] == ["_removed.json"]
    # replicate writes this file once metadata leaves the catalog's log.
    (tmp_path / "lake/public/t/_versions.json").touch()
    owner.server.tables.clear()
    other = replace(owner, storage=Storage(str(tmp_path / "other")))
    if has_other:
        insert(other.new_table(), 1000, range(5))
    (tmp_path / "lake/public/u").mkdir()
    (tmp_path / "lake/public/u/_SUCCESS").touch()
    tables = owner.open()
    assert tables.find_folders() == {"public/t"}
    assert tables.is_own("public/t")
    assert not tables.is_own("public/u")
    tables.remove("public/t")
    assert not tables.find_folders()
    assert [path.name for path in (tmp_path / "lake").rglob("*") if path.is_file()] == ["_SUCCESS"]
    assert not has_other or other.ids() == [0, 1, 2, 3, 4]


def test_a_table_of_another_destination_is_refused(owner: Owner, tmp_path: Path) -> None:
    insert(owner.new_table(), 1000, range(3))
    other = Owner(owner.server, Storage(str(tmp_path / "other")))
    with pytest.raises(ForeignTableError, match="two tables have one name there"):
        other.new_table()
    assert not other.open().find_folders()
    assert owner.open().find_folders() == {"public/t"}


@pytest.mark.parametrize("does_upkeep", [True, False])
def test_upkeep_may_be_left_to_the_service(owner: Owner, does_upkeep: bool) -> None:
    limits = Limits(snapshots=4, small_manifests=2, merged_files=2, upkeep_versions=1, small_file_bytes=0)
    stored = replace(owner, storage=replace(owner.storage, limits=limits), does_upkeep=does_upkeep).new_table()
    paths: set[Path] = set()
    for number in range(8):
        insert(stored, 1000 + 10 * number, range(number, number + 1))
        if number % 2:
            delete(stored, 1005 + 10 * number, range(number, number + 1))
        location = Path(owner.open_as_reader().location())
        paths |= {path for path in location.rglob("*") if path.is_file()}
    while merge_next(stored, SequentialEngine()):
        pass
    for path in paths:
        os.utime(path, (0, 0))
    for _ in range(3):
        stored.maintain(0)
    assert owner.ids() == [0, 2, 4, 6]
    table_of_reader = owner.open_as_reader()
    manifests = len(table_of_reader.inspect.manifests())
    counts = len(table_of_reader.metadata.snapshots), len(stored.files), manifests
    is_whole = all(path.exists() for path in paths)
    if does_upkeep:
        assert max(counts) <= 3
        assert not is_whole
    else:
        assert counts == (13, 4, 5)
        assert is_whole
        assert not stored.is_upkeep_due(0)


@pytest.mark.parametrize("status", [500, 503])
def test_a_creation_without_an_answer_is_found(owner: Owner, status: int) -> None:
    owner.server.faults.append(Fault("POST", "/tables", status, is_done=True))
    insert(owner.new_table(), 1000, range(3))
    assert owner.ids() == [0, 1, 2]


@pytest.mark.parametrize("status", [429, 503])
def test_a_refused_request_is_reported_and_may_be_repeated(owner: Owner, status: int) -> None:
    for path in ("/namespaces", "/tables", TABLE):
        owner.server.faults.append(Fault("POST", path, status, headers={"Retry-After": "1"}))
        with pytest.raises(StorageError, match="the catalog") as refused:
            owner.new_table()
        assert refused.value.may_pass
    insert(owner.new_table(), 1000, range(3))
    assert owner.ids() == [0, 1, 2]


@pytest.mark.parametrize("status", [409, 500, 503])
@pytest.mark.parametrize("expires", [False, True])
def test_a_lost_answer_is_found_below_the_merge_of_a_service(owner: Owner, status: int, expires: bool) -> None:
    stored = owner.new_table()

    def serve() -> None:
        compact(connect(owner.settings, owner.server.warehouse))
        if expires:
            expire_all(connect(owner.settings, owner.server.warehouse))

    owner.server.faults.append(Fault("POST", TABLE, status, is_done=True, then=serve))
    with pytest.raises(StorageError, match="the answer to an earlier commit was lost, but the commit exists"):
        insert(stored, 1000, range(3))
    assert stored.applied(APP) == Lsn(1000)
    insert(stored, 1001, range(3, 5))
    assert owner.ids() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("is_stored", [False, True])
def test_the_last_version_is_read_from_merged_files(owner: Owner, is_stored: bool) -> None:
    owner = replace(owner, storage=replace(owner.storage, limits=Limits(upkeep_versions=0, metadata_seconds=0)))
    stored = owner.new_table()
    if is_stored:
        # The catalog names two metadata files, so that upkeep stores the facts of earlier versions.
        with owner.open_as_reader().transaction() as transaction:
            transaction.set_properties({"write.metadata.previous-versions-max": "1"})
    insert(stored, 1000, range(3))
    version = stored.version
    catalog = connect(owner.settings, owner.server.warehouse)
    merge_files(catalog, "public.t", Random(1))
    expire_with_files(catalog, "public.t", owner.server.warehouse)
    if is_stored:
        reopened = open_table(owner.open())
        reopened.maintain(24)
        assert '"versions": [[' in Path(owner.storage.uri, "public/t/_versions.json").read_text()
    read = owner.open().open("public/t", version)
    assert read is not None
    assert (read.files, read.head) == (open_table(owner.open()).files, stored.head)
    assert owner.open().open("public/t", version + 1) is None
    with pytest.raises(DamagedError):
        owner.open().open("public/t", version - 1)


def test_rows_of_another_program_after_a_lost_answer_are_reported(owner: Owner) -> None:
    stored = owner.new_table()

    def append() -> None:
        compact(connect(owner.settings, owner.server.warehouse), Operation.APPEND)

    owner.server.faults.append(Fault("POST", TABLE, 503, is_done=True, then=append))
    with pytest.raises(DamagedError, match="has changed its rows"):
        insert(stored, 1000, range(3))


def test_a_namespace_that_may_not_be_created_is_reported(owner: Owner) -> None:
    owner.server.profile = Profile(may_create_namespaces=False)
    with pytest.raises(StorageError, match="namespaces are not yours") as refused:
        owner.new_table()
    assert not refused.value.may_pass
    owner.server.namespaces["public"] = {}
    insert(owner.new_table(), 1000, range(3))
    assert owner.ids() == [0, 1, 2]


@pytest.mark.parametrize("mode", MODES)
def test_new_files_are_where_the_properties_say(owner: Owner, mode: WriteMode) -> None:
    stored = owner.new_table(mode)
    insert(stored, 1000, range(300))
    location = owner.open_as_reader().location()
    paths = {"write.data.path": f"{location}/rows/of", "write.metadata.path": f"{location}/lists/"}
    properties = {**paths, "write.object-storage.enabled": "true"}
    with owner.open_as_reader().transaction() as transaction:
        transaction.set_properties(properties)
    previous = {path for path in Path(location).rglob("*") if path.is_file()}
    stored = open_table(replace(owner, storage=replace(owner.storage, limits=MARKS_IN_SMALL_FILES)).open())
    delete(stored, 1001, range(1))
    insert(stored, 1002, range(300, 302))
    written = {path for path in Path(location).rglob("*") if path.is_file()} - previous
    assert {path.parent for path in written if path.suffix == ".avro"} == {Path(location, "lists")}
    files = {str(path) for path in written if path.suffix == ".parquet"}
    provider = load_location_provider(location, properties)
    assert files == {provider.new_data_location(Path(path).name) for path in files}
    assert {Path(path).name.partition("-")[0] for path in files} == WRITTEN[mode]
    reopened = open_table(owner.open())
    assert reopened.files == stored.files
    for _ in range(3):
        reopened.maintain(0)
    assert owner.ids() == list(range(1, 302))


@pytest.mark.parametrize("name", ["write.data.path", "write.metadata.path"])
@pytest.mark.parametrize("place", ["elsewhere", "t/../elsewhere", "_own"])
def test_a_table_whose_files_have_to_be_elsewhere_is_refused(owner: Owner, name: str, place: str) -> None:
    stored = owner.new_table()
    insert(stored, 1000, range(3))
    location = owner.open_as_reader().location()
    uri = f"{location}/_own" if place == "_own" else f"{owner.server.warehouse.uri}/{place}"
    with owner.open_as_reader().transaction() as transaction:
        transaction.set_properties({name: uri})
    with pytest.raises(ForeignTableError, match=f"has the property {name} with the location {uri}"):
        insert(open_table(owner.open()), 1001, range(3, 5))
    with pytest.raises(ForeignTableError, match=name):
        owner.open().prepare("public/t", stored.table)
    assert owner.ids() == [0, 1, 2]
    with owner.open_as_reader().transaction() as transaction:
        transaction.remove_properties(name)
    insert(open_table(owner.open()), 1001, range(3, 5))
    assert owner.ids() == [0, 1, 2, 3, 4]


def test_files_of_a_service_outside_of_the_location_are_refused_by_their_names(owner: Owner) -> None:
    stored = owner.new_table()
    insert(stored, 1000, range(3))
    place = f"{owner.server.warehouse.uri}/elsewhere"
    compact(connect(owner.settings, owner.server.warehouse), place=place)
    reason = f"{place}/metadata/snap-[^ ]* is outside of the locations of the tables"
    with pytest.raises(MalformedFileError, match=reason):
        insert(stored, 1001, range(3, 5))
    with pytest.raises(LogDamagedError, match=reason):
        owner.open().open("public/t")


def test_forced_and_reserved_properties_do_not_stop_a_table(owner: Owner) -> None:
    forced = {"write.object-storage.enabled": "true", "owner": "the catalog"}
    reserved = ("delta.", "gc.", "history.", "write.", "commit.")
    owner.server.profile = Profile(stages=False, forced=forced, reserved=reserved)
    stored = owner.new_table()
    stored.set_retention(48)
    insert(stored, 1000, range(3))
    stored.write_stopped("0/1: why")
    reopened = open_table(owner.open())
    assert reopened.foreign_change(-1) is None
    insert(reopened, 1001, range(3, 5))
    assert owner.ids() == [0, 1, 2, 3, 4]
    properties = owner.open_as_reader().properties
    assert forced.items() <= properties.items()
    assert {name for name in properties if not name.startswith("logicalrep.")} <= forced.keys() | {"format-version"}
