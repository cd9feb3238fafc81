"""Properties, comments and partitions that other programs change: replicate follows them, or replaces the table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")

from deltalake import DeltaTable
from pyiceberg.table import StaticTable
from pyiceberg.transforms import IdentityTransform

from logicalrep.pipeline.formats.delta.actions import is_same_table
from logicalrep.pipeline.formats.delta.foreign_commits import LoggedCommit
from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import NewTable, Position, StoredTable
from logicalrep.pipeline.schema.table_formats import FormatName
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import DamagedError, Storage, StorageError
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.formats.iceberg.catalogs.kinds import catalog_of
from tests.pipeline.formats.iceberg.tables import insert
from tests.pipeline.histories import table
from tests.pipeline.reading import newest_metadata, read_properties

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
    properties = content["configuration"] | changes.pop("configuration", {})
    actions = [{"commitInfo": {"operation": "SET"}}, {"metaData": content | changes | {"configuration": properties}}]
    path = folder / f"_delta_log/{reader.version() + 1:020}.json"
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))


def commit_iceberg(folder: Path, number: int, **changes: Any) -> None:
    metadata = json.loads(Path(newest_metadata(str(folder))).read_text())
    metadata["properties"] |= changes.pop("properties", {})
    (folder / f"metadata/v{number}.metadata.json").write_text(json.dumps(metadata | changes))


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
        assert "logicalrep.stopped" not in properties or form == "iceberg"


@pytest.mark.parametrize(
    "changes",
    [
        {"schemaString": '{"type": "struct", "fields": []}'},
        {"partitionColumns": ["b"]},
        {"configuration": {"logicalrep.load": "y"}},
        {"configuration": {"logicalrep.table": "{}"}},
        {"format": {"provider": "orc"}},
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
