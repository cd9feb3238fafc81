"""Properties, comments and partitions that other programs change: replicate follows them, or replaces the table."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars
import pytest

pytest.importorskip("sqlalchemy")

from deltalake import DeltaTable
from pyiceberg.table import StaticTable
from pyiceberg.table import Table as PyIcebergTable
from pyiceberg.transforms import IdentityTransform

from logicalrep.pipeline.formats.delta.actions import is_same_table
from logicalrep.pipeline.formats.delta.foreign_commits import LoggedCommit
from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import NewTable, Position, StoredTable, UnsupportedTableError
from logicalrep.pipeline.schema.table_formats import FormatName
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.data_files import read_rows
from logicalrep.pipeline.storage.storage import DamagedError, Storage, StorageError
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.comparison import find_differences
from tests.pipeline.formats.iceberg.catalogs.kinds import catalog_of
from tests.pipeline.formats.iceberg.tables import delete, insert
from tests.pipeline.histories import table
from tests.pipeline.observed_loads import LoadReasons, stored_load
from tests.pipeline.reading import newest_metadata, read_properties
from tests.pipeline.replicating import replicate_meanwhile, replicate_once
from tests.pipeline.upkeep.foreign.folder_catalog import FolderCatalog
from tests.postgres.servers import Database
from tests.waiting import eventually

pytestmark = pytest.mark.filterwarnings("ignore:.*unclosed:ResourceWarning")
_PROPERTY = {"delta": ("delta.checkpointInterval", "7"), "iceberg": ("read.split.target-size", "7")}


def new_table(form: FormatName, load: str = "x") -> NewTable:
    spec = table(("id",), TableSettings(format=form))
    return NewTable(spec, [], Position(f"logicalrep/1/1/{load}", Lsn(999)), load=load, keep_hours=24)


def commit_delta(folder: Path, **changes: Any) -> None:
    """Commit metadata with changes, as other programs do."""
    reader = DeltaTable(str(folder))
    logs = sorted((folder / "_delta_log").glob("*.json"), reverse=True)
    lines = [json.loads(line) for path in logs for line in path.read_text().splitlines()]
    content = next(line["metaData"] for line in lines if "metaData" in line)
    previous = {} if changes.pop("replaces_configuration", False) else content["configuration"]
    properties = previous | changes.pop("configuration", {})
    actions = [{"commitInfo": {"operation": "SET"}}, {"metaData": content | changes | {"configuration": properties}}]
    path = folder / f"_delta_log/{reader.version() + 1:020}.json"
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))


def commit_iceberg(folder: Path, number: int, **changes: Any) -> None:
    metadata = json.loads(Path(newest_metadata(str(folder))).read_text())
    metadata["properties"] |= changes.pop("properties", {})
    (folder / f"metadata/v{number}.metadata.json").write_text(json.dumps(metadata | changes))


def commit_protocol(folder: Path, protocol: dict[str, Any]) -> None:
    actions = [{"commitInfo": {"operation": "UPGRADE PROTOCOL"}}, {"protocol": protocol}]
    path = folder / f"_delta_log/{DeltaTable(str(folder)).version() + 1:020}.json"
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))


def features(*names: str, reader: tuple[str, ...] = ()) -> dict[str, Any]:
    lists = {"readerFeatures": list(reader), "writerFeatures": [*names, *reader]}
    return {"minReaderVersion": 3, "minWriterVersion": 7, **lists}


def set_property(form: FormatName, stored: StoredTable, folder: Path) -> None:
    name, value = _PROPERTY[form]
    if form == "delta":
        commit_delta(folder, configuration={name: value, "somebody.else": "x"}, description="a comment")
    else:
        commit_iceberg(folder, stored.version + 1, properties={name: value, "somebody.else": "x"})


def set_comment(form: FormatName, stored: StoredTable, folder: Path) -> None:
    if form == "delta":
        schema = json.loads(DeltaTable(str(folder)).schema().to_json())
        schema["fields"][0]["metadata"]["comment"] = "a comment"
        commit_delta(folder, schemaString=json.dumps(schema))
        return
    schemas = json.loads(Path(newest_metadata(str(folder))).read_text())["schemas"]
    commented = json.loads(json.dumps(schemas[-1])) | {"schema-id": len(schemas)}
    commented["fields"][0]["doc"] = "a comment"
    schema_id = commented["schema-id"]
    commit_iceberg(folder, stored.version + 1, schemas=[*schemas, commented], **{"current-schema-id": schema_id})


@pytest.mark.parametrize("change", [set_property, set_comment])
@pytest.mark.parametrize("form", ["delta", "iceberg"])
@pytest.mark.parametrize("is_running", [True, False], ids=["running", "started"])
def test_properties_and_comments_of_others_are_upkeep(
    form: FormatName, change: Any, is_running: bool, tmp_path: Path
) -> None:
    tables, folder = table_format(Storage(str(tmp_path)), form), tmp_path / "public/t"
    stored = tables.replace("public/t", new_table(form), None)
    insert(stored, 1000, range(3))
    for number in range(2):
        change(form, stored, folder)
        if is_running:
            with pytest.raises(StorageError, match="without changing rows"):
                insert(stored, 1001 + number, range(3 + number, 4 + number))
        else:
            proven, opened = stored.version, tables.open("public/t")
            assert opened is not None
            stored = opened
            assert stored.foreign_change(proven) is None
            assert stored.foreign_change(-1) is None
        insert(stored, 1001 + number, range(3 + number, 4 + number))
    assert sum(file.rows for file in stored.files.values()) == 5
    properties: Mapping[str, str] = read_properties(str(folder))
    if change is set_property:
        name, value = _PROPERTY[form]
        # A reload for another reason keeps them too, and so does a stop.
        stored.write_stopped("0/1: a reason")
        for _ in range(2):
            assert (properties[name], properties["somebody.else"]) == (value, "x")
            tables.replace("public/t", new_table(form, "y"), stored)
            properties = read_properties(str(folder))
        assert "logicalrep.stopped" not in properties


@pytest.mark.parametrize(
    "changes",
    [
        {"schemaString": '{"type": "struct", "fields": []}'},
        {"partitionColumns": ["b"]},
        {"configuration": {"logicalrep.load": "y"}},
        {"configuration": {"logicalrep.table": "{}"}},
        {"format": {"provider": "orc"}},
        {"configuration": {"delta.constraints.positive": "id > 0"}},
    ],
    ids=str,
)
def test_other_changes_of_metadata_are_changes(changes: dict[str, Any], tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    stored = table_format(storage, "delta").replace("public/t", new_table("delta"), None)
    insert(stored, 1000, range(3))
    folder = tmp_path / "public/t"
    commit_delta(folder, **changes)
    data = max((folder / "_delta_log").glob("*.json")).read_bytes()
    is_same = partial(is_same_table, table=stored.table, load=stored.load)
    assert LoggedCommit.of(data, is_same).changes is not None


def test_removed_properties_are_upkeep(tmp_path: Path) -> None:
    stored = table_format(Storage(str(tmp_path)), "delta").replace("public/t", new_table("delta"), None)
    insert(stored, 1000, range(3))
    folder = tmp_path / "public/t"
    own = ("logicalrep.table", "logicalrep.load")
    properties = {name: value for name, value in read_properties(str(folder)).items() if name in own}
    commit_delta(folder, replaces_configuration=True, configuration=properties)
    with pytest.raises(StorageError, match="without changing rows"):
        insert(stored, 1001, range(3, 4))
    insert(stored, 1001, range(3, 4))
    assert sum(file.rows for file in stored.files.values()) == 4


@pytest.mark.parametrize(
    "protocol",
    [
        features("appendOnly", "invariants", "domainMetadata"),
        features("checkConstraints", reader=("deletionVectors",)),
        features(reader=("vacuumProtocolCheck",)),
        {"minReaderVersion": 1, "minWriterVersion": 4},
    ],
    ids=str,
)
def test_features_that_do_not_concern_rows_are_upkeep(protocol: dict[str, Any], tmp_path: Path) -> None:
    stored = table_format(Storage(str(tmp_path)), "delta").replace("public/t", new_table("delta"), None)
    insert(stored, 1000, range(3))
    commit_protocol(tmp_path / "public/t", protocol)
    with pytest.raises(StorageError, match="without changing rows"):
        insert(stored, 1001, range(3, 4))
    insert(stored, 1001, range(3, 4))
    marked = replace(stored.table, settings=replace(stored.table.settings, write_mode="merge-on-read"))
    stored.describe(marked)
    delete(stored, 1002, range(2))
    current = DeltaTable(str(tmp_path / "public/t")).protocol()
    expected = {"deletionVectors", *protocol.get("writerFeatures", ["changeDataFeed", "checkConstraints"])}
    assert expected <= set(current.writer_features or ())
    assert (current.min_reader_version, current.min_writer_version) == (3, 7)
    opened = table_format(Storage(str(tmp_path)), "delta").open("public/t")
    assert opened is not None
    assert (opened.foreign_change(-1), opened.files) == (None, stored.files)
    # Not every reader knows each of these features.
    files = opened.files.values()
    rows = [read_rows(opened.storage, "public/t", file, opened.table.stored, ["id"])["id"] for file in files]
    assert sorted(id_ for ids in rows for id_ in ids.to_pylist()) == [2, 3]


@pytest.mark.parametrize(
    "protocol",
    [
        features("rowTracking", "domainMetadata"),
        features("unknown"),
        features(reader=("columnMapping",)),
        features(reader=("v2Checkpoint",)),
        {"minReaderVersion": 2, "minWriterVersion": 5},
    ],
    ids=str,
)
@pytest.mark.parametrize("is_running", [True, False], ids=["running", "started"])
def test_other_features_are_replaced_by_a_reload(protocol: dict[str, Any], is_running: bool, tmp_path: Path) -> None:
    tables, folder = table_format(Storage(str(tmp_path)), "delta"), tmp_path / "public/t"
    stored = tables.replace("public/t", new_table("delta"), None)
    insert(stored, 1000, range(3))
    commit_protocol(folder, protocol)
    if is_running:
        with pytest.raises(DamagedError, match="UPGRADE PROTOCOL"):
            insert(stored, 1001, range(3, 4))
    else:
        opened, reason = tables.open_to_replace("public/t")
        assert opened is not None
        stored = opened
        assert reason or stored.foreign_change(-1)
    replaced = tables.replace("public/t", new_table("delta", "y"), stored)
    insert(replaced, 1002, range(2))
    current = DeltaTable(str(folder)).protocol()
    assert (current.min_reader_version, current.min_writer_version) == (1, 2)
    assert sorted(polars.read_delta(str(folder))["id"]) == [0, 1]


def test_properties_that_deltalake_sets_are_upkeep(tmp_path: Path) -> None:
    stored = table_format(Storage(str(tmp_path)), "delta").replace("public/t", new_table("delta"), None)
    insert(stored, 1000, range(3))
    DeltaTable(str(tmp_path / "public/t")).alter.set_table_properties({"delta.checkpointInterval": "7"})
    with pytest.raises(StorageError, match="without changing rows"):
        insert(stored, 1001, range(3, 4))
    insert(stored, 1001, range(3, 4))


@pytest.mark.parametrize("place", ["folder", "sqlite"])
def test_other_partitions_are_replaced_by_a_reload(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with catalog_of("sqlite", tmp_path, monkeypatch) as catalog:
        tables = IcebergTables.in_folders(catalog.storage) if place == "folder" else catalog.open()
        stored = tables.replace("public/t", new_table("iceberg"), None)
        insert(stored, 1000, range(3))
        if place == "folder":
            field = {"source-id": 32, "field-id": 1000, "name": "b", "transform": "identity"}
            specs = [{"spec-id": 0, "fields": []}, {"spec-id": 1, "fields": [field]}]
            changes = {"partition-specs": specs, "default-spec-id": 1, "last-partition-id": 1000}
            commit_iceberg(tmp_path / "lake/public/t", stored.version + 1, **changes)
        else:
            program = catalog.reader.load_table("public.t")
            program.update_spec().add_field("b", IdentityTransform(), "b").commit()
        with pytest.raises(DamagedError, match="partitions"):
            insert(stored, 1001, range(3, 4))
        opened = tables.open("public/t")
        assert opened is not None
        assert "partitions" in (opened.foreign_change(-1) or "")
        replaced = tables.replace("public/t", new_table("iceberg", "y"), opened)
        insert(replaced, 1002, range(2))
        opened = tables.open("public/t")
        assert opened is not None
        assert opened.foreign_change(-1) is None
        assert opened.files == replaced.files
        if place == "folder":
            reader = StaticTable.from_metadata(newest_metadata(str(tmp_path / "lake/public/t")))
            assert reader.spec().fields == ()


def upgrade_in_catalog(database: Path) -> None:
    """Change a catalog's only table to format version 3, which pyiceberg cannot write."""
    with closing(sqlite3.connect(database)) as connection, connection:
        ((place,),) = connection.execute("SELECT metadata_location FROM iceberg_tables").fetchall()
        metadata = json.loads(Path(place).read_text())
        path = Path(place).with_name(f"upgraded-{metadata['table-uuid']}.metadata.json")
        path.write_text(json.dumps({**metadata, "format-version": 3, "next-row-id": 3}))
        connection.execute("UPDATE iceberg_tables SET metadata_location = ?", (str(path),))


@pytest.mark.parametrize("place", ["folder", "sqlite", "rest"])
@pytest.mark.parametrize("is_running", [True, False], ids=["running", "started"])
def test_another_format_version_is_replaced_by_a_reload(
    place: str, is_running: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with catalog_of("sqlite" if place == "folder" else place, tmp_path, monkeypatch) as catalog:
        tables = IcebergTables.in_folders(catalog.storage) if place == "folder" else catalog.open()
        folder = tmp_path / "lake/public/t"
        stored = tables.replace("public/t", new_table("iceberg"), None)
        insert(stored, 1000, range(3))
        if place == "folder":
            changes = {"properties": {"somebody.else": "x"}, "format-version": 3, "next-row-id": 3}
            commit_iceberg(folder, stored.version + 1, **changes)
        else:
            program = catalog.reader.load_table("public.t")
            program.transaction().set_properties({"somebody.else": "x"}).commit_transaction()
            upgrade_in_catalog(tmp_path / ("catalog.db" if place == "sqlite" else "behind.db"))
        with pytest.raises(UnsupportedTableError, match="format version to 3"):
            tables.open("public/t")
        assert tables.is_own("public/t")
        if is_running:
            for _ in range(2):
                with pytest.raises(DamagedError, match="format version to 3"):
                    insert(stored, 1001, range(3, 4))
        else:
            opened, reason = tables.open_to_replace("public/t")
            assert opened is not None
            assert "format version to 3" in (reason or "")
            stored = opened
            # Neither destroys the rows that readers have until the load.
            stored.set_retention(1)
            stored.write_stopped("0/1: a reason")
        stored.maintain(24)
        version = stored.version
        replaced = tables.replace("public/t", new_table("iceberg", "y"), stored)
        insert(replaced, 1002, range(2))
        assert replaced.version > version
        opened = tables.open("public/t")
        assert opened is not None
        assert opened.foreign_change(-1) is None
        assert opened.files == replaced.files
        reader: PyIcebergTable
        if place == "folder":
            reader = StaticTable.from_metadata(newest_metadata(str(folder)))
        else:
            reader = catalog.reader.load_table("public.t")
        assert reader.metadata.format_version == 2
        assert reader.properties["somebody.else"] == "x"
        assert sorted(reader.scan().to_arrow()["id"].to_pylist()) == [0, 1]


@pytest.mark.parametrize("place", ["folder", "sqlite"])
def test_deletes_that_replicate_cannot_read_are_replaced_by_a_reload(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other programs delete rows by equality deletes, or by vectors in Puffin files."""
    with catalog_of("sqlite", tmp_path, monkeypatch) as catalog:
        tables = IcebergTables.in_folders(catalog.storage) if place == "folder" else catalog.open()
        stored = tables.replace("public/t", new_table("iceberg"), None)
        insert(stored, 1000, range(3))
        folder = tmp_path / "lake/public/t"
        if place == "folder":
            program = FolderCatalog(tmp_path / "lake").load_table(("public/t",))
        else:
            program = catalog.reader.load_table("public.t")
        program.append(program.scan().to_arrow().slice(0, 1))
        newest = max((folder / "metadata").glob("snap-*.avro"), key=lambda path: path.stat().st_mtime_ns)
        newest.write_bytes(b"Obj")
        with pytest.raises(UnsupportedTableError, match="another program has changed its rows"):
            tables.open("public/t")
        with pytest.raises(DamagedError, match="another program has changed its rows"):
            insert(stored, 1001, range(3, 4))
        replaced = tables.replace("public/t", new_table("iceberg", "y"), stored)
        insert(replaced, 1002, range(2))
        opened = tables.open("public/t")
        assert opened is not None
        assert opened.files == replaced.files
        assert len(opened.files) == 1


def change_to_unreadable(form: FormatName, folder: Path) -> None:
    if form == "delta":
        commit_protocol(folder, features(reader=("columnMapping",)))
        return
    number = max(int(path.name[1:].partition(".")[0]) for path in (folder / "metadata").glob("v*.metadata.json"))
    commit_iceberg(folder, number + 1, **{"format-version": 3, "next-row-id": 3})


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_replicate_loads_a_table_that_it_cannot_read(form: FormatName, db18: Database, tmp_path: Path) -> None:
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t SELECT i, 'x' FROM generate_series(1, 9) i"
    )
    folder, loads = tmp_path / "public/t", LoadReasons()
    with replicate_meanwhile(db18, tmp_path, loads, format=form) as caught_up:
        caught_up()
        load = stored_load(tmp_path)
        change_to_unreadable(form, folder)
        db18.execute("UPDATE t SET v = 'later' WHERE id = 1")
        eventually(lambda: stored_load(tmp_path) != load)
        caught_up()
    assert len(loads.reasons) == 2
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}
    change_to_unreadable(form, folder)
    db18.execute("UPDATE t SET v = 'last' WHERE id = 2")
    replicate_once(db18, tmp_path, format=form)
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}
