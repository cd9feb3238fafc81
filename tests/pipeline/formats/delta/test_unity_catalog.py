"""The entries of Delta tables in Unity Catalog: a server of the tests, and with UNITY_SERVER a real one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from logicalrep.options.kinds import OptionError
from logicalrep.pipeline.formats.catalog_errors import CatalogError, InvalidCatalogError
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.formats.delta.unity_catalog import UnityCatalog
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import ForeignTableError
from logicalrep.pipeline.schema.file_partitions import PartitionRule
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.storage import Storage
from tests.pipeline.formats.delta.unity_server import Unity, UnityServer, start_unity_server
from tests.pipeline.histories import table

FOLDER, TOKEN = "public/Order lines", "the-secret-token"


def catalog_of(server: UnityServer, **options: str) -> UnityCatalog:
    return UnityCatalog(CatalogSettings(f"unity+{server.url}/lake", options), Storage("s3://lake/shop"))


def described() -> TableSpec:
    """Return a table with comments, deletion vectors, and a partition by its second column."""
    settings = TableSettings(write_mode="merge-on-read", partition_by=("b",))
    comments = ((0, "all lines"), (1, 'the "id"'))
    return replace(table(("id",), settings), comments=comments, partitions=(PartitionRule("value", 2),))


def test_an_entry_has_the_location_and_the_columns(unity: Unity, tmp_path: Path) -> None:
    UnityCatalog(unity.settings(), Storage(str(tmp_path / "a lake"))).register(FOLDER, described())
    ((name, entry),) = unity.tables().items()
    assert name == "public.order_lines"
    assert entry["storage_location"] == f"file://{tmp_path}/a%20lake/public/Order%20lines"
    assert (entry["table_type"], entry["data_source_format"], entry["comment"]) == ("EXTERNAL", "DELTA", "all lines")
    columns = [json.loads(column["type_json"]) for column in entry["columns"]]
    assert {column["name"]: column["type"] for column in columns} == {
        "id": "integer", "b": "string", "v": "double", "big": "string",
    }  # fmt: skip
    assert [column["comment"] for column in entry["columns"]] == ['the "id"', None, None, None]
    assert [column["partition_index"] for column in entry["columns"]] == [None, 0, None, None]
    assert entry["properties"]["delta.feature.deletionVectors"] == "supported"
    assert not any(name.startswith("logicalrep.table") for name in entry["properties"])


def test_an_entry_follows_the_columns_and_stays_the_same_entry(unity: Unity) -> None:
    catalog = UnityCatalog(unity.settings(), Storage("s3://lake/shop"))
    catalog.register(FOLDER, described())
    created = unity.tables()["public.order_lines"]
    catalog.register(FOLDER, described())
    assert unity.tables()["public.order_lines"] == created
    catalog.register(FOLDER, table(("id",)))
    changed = unity.tables()["public.order_lines"]
    assert changed["table_id"] == created["table_id"]
    assert not changed["comment"]
    assert {(column["comment"], column["partition_index"]) for column in changed["columns"]} == {(None, None)}
    assert "delta.feature.deletionVectors" not in changed["properties"]


def test_columns_of_arrays_and_structs_have_the_names_of_the_api(unity: Unity) -> None:
    whole = table(("id",))
    relation = replace(
        whole.relation,
        columns=tuple(
            replace(column, type_id=1007) if column.name == "v" else column for column in whole.relation.columns
        ),
    )
    UnityCatalog(unity.settings(), Storage("s3://lake/shop")).register(FOLDER, replace(whole, relation=relation))
    entry = unity.tables()["public.order_lines"]
    type_ = {column["name"]: json.loads(column["type_json"])["type"] for column in entry["columns"]}["v"]
    # The server of the tests keeps the API's name, and Unity Catalog stores Spark's.
    assert (type_["type"], type_.get("elementType", type_.get("element-type"))) == ("array", "integer")


def test_another_table_of_the_name_stays_and_is_an_error(unity: Unity, tmp_path: Path) -> None:
    catalog = UnityCatalog(unity.settings(), Storage(str(tmp_path)))
    unity.create("order_lines", storage_location="s3://lake/elsewhere")
    unity.create("files", storage_location="s3://lake/files", data_source_format="CSV")
    entries = unity.tables()
    for folder in (FOLDER, "public/files"):
        with pytest.raises(ForeignTableError, match="has another table public") as refused:
            catalog.register(folder, described())
        assert refused.value.code == "DESTINATION_DIFFERS"
    catalog.remove(FOLDER)
    assert unity.tables() == entries


def test_a_removed_table_leaves_the_catalog(unity: Unity, tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    tables = table_format(storage, "delta", unity.settings())
    tables.register(FOLDER, described())
    storage.write(f"{FOLDER}/file", b"")
    for _ in range(2):
        tables.remove(FOLDER)
        assert (unity.tables(), storage.list("")) == ({}, [])


def test_a_missing_catalog_and_another_api_are_errors(unity: Unity) -> None:
    for uri, reason in (
        (f"unity+{unity.url}/absent", "it does not exist at this server"),
        (f"unity+{unity.url}/prefix/{unity.name}", "its answer is none of Unity Catalog's API"),
    ):
        with pytest.raises(InvalidCatalogError, match=reason) as refused:
            UnityCatalog(CatalogSettings(uri), Storage("s3://lake/shop")).register(FOLDER, described())
        assert refused.value.code == "CATALOG_INVALID"


def test_a_name_that_the_server_refuses_is_an_error_of_the_table(unity: Unity) -> None:
    with pytest.raises(InvalidCatalogError, match=r"Name cannot .* for the table public\.größe"):
        UnityCatalog(unity.settings(), Storage("s3://lake/shop")).register("public/Größe", described())


def test_a_managed_table_at_the_location_is_not_removed(server: UnityServer) -> None:
    catalog = catalog_of(server)
    catalog.register(FOLDER, described())
    entry = server.catalogs["lake"]["public"]["order_lines"]
    entry["table_type"] = "MANAGED"
    catalog.remove(FOLDER)
    assert server.catalogs["lake"]["public"]["order_lines"] is entry


def test_a_token_is_sent_and_never_shown(server: UnityServer) -> None:
    server.token = TOKEN
    catalog_of(server, token=TOKEN).register(FOLDER, described())
    assert {authorization for _, _, authorization in server.requests} == {f"Bearer {TOKEN}"}
    catalog_of(server, token=TOKEN).remove(FOLDER)
    catalog_of(server, token=TOKEN).remove(FOLDER)
    absent = CatalogSettings(f"unity+{server.url}/absent", {"token": TOKEN})
    with pytest.raises(InvalidCatalogError, match="it does not exist at this server"):
        UnityCatalog(absent, Storage("s3://lake/shop")).register(FOLDER, described())
    server.token = "another"
    with pytest.raises(InvalidCatalogError, match=r"\(HTTP 401\); correct --catalog-option token") as refused:
        catalog_of(server, token=TOKEN).register(FOLDER, described())
    assert TOKEN not in str(refused.value) + repr(CatalogSettings(f"unity+{server.url}/lake", {"token": TOKEN}))


def test_a_token_does_not_follow_a_redirect(server: UnityServer) -> None:
    with start_unity_server() as other:
        server.fault, server.redirect = "redirect", other.url
        with pytest.raises(InvalidCatalogError):
            catalog_of(server, token=TOKEN).register(FOLDER, described())
        assert other.requests == []


@pytest.mark.parametrize(
    ("fault", "error"), [("503", CatalogError), ("503 after", CatalogError), ("html", InvalidCatalogError)]
)
def test_a_lost_or_strange_answer_is_an_error_and_a_repetition_registers(
    server: UnityServer, fault: Any, error: type[CatalogError]
) -> None:
    server.fault = fault
    for _ in range(3):
        with pytest.raises(CatalogError) as failed:
            catalog_of(server).register(FOLDER, described())
        assert type(failed.value) is error
    server.fault = None
    catalog_of(server).register(FOLDER, described())
    assert [*server.catalogs["lake"]["public"]] == ["order_lines"]


def test_a_server_that_is_away_is_an_error() -> None:
    settings = CatalogSettings("unity+http://127.0.0.1:1/lake")
    with pytest.raises(CatalogError, match="refused") as away:
        UnityCatalog(settings, Storage("s3://lake/shop")).register(FOLDER, described())
    assert away.value.code == "CATALOG_NOT_REACHED"


@pytest.mark.parametrize(
    ("uri", "options", "reason"),
    [
        ("unity+http://unity.example.org/lake", {}, r"not encrypted: write unity\+https://"),
        ("unity+https://unity.example.org", {}, "is not a catalog of Unity Catalog"),
        ("unity+https:///lake", {}, "is not a catalog of Unity Catalog"),
        ("unity+https://user:secret@unity.example.org/lake", {}, "is not a catalog of Unity Catalog"),
        ("unity+https://unity.example.org:port/lake", {}, "is not a catalog of Unity Catalog"),
        ("unity+https://unity.example.org/lake", {"warehouse": "x"}, "has warehouse: the options of Unity Catalog are"),
        ("unity+https://unity.example.org/lake", {"token": "a secret\n"}, "characters that a token cannot have"),
    ],
)
def test_invalid_settings_are_refused_without_secrets(uri: str, options: dict[str, str], reason: str) -> None:
    with pytest.raises(OptionError, match=reason) as refused:
        CatalogSettings(uri, options)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("uri", "name"), [("unity+https://h/lake", "iceberg"), ("https://h/", "delta"), ("sqlite:///f", "delta")]
)
def test_a_catalog_of_another_format_is_refused(uri: str, name: Any, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="is for Delta tables, and all other catalogs are for Iceberg tables"):
        table_format(Storage(str(tmp_path)), name, CatalogSettings(uri))


def test_the_server_is_in_the_uri() -> None:
    settings = CatalogSettings("unity+https://h:8443/a%20proxy/lake/")
    assert (settings.server_of_unity, settings.name_in_unity) == ("https://h:8443/a%20proxy", "lake")
