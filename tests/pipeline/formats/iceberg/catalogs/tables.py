"""Iceberg tables in a catalog."""

from __future__ import annotations

from pyiceberg.table import Table

from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables
from logicalrep.pipeline.formats.stored_table import NewTable, Position, StoredTable
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.formats.iceberg.catalogs.kinds import CatalogOfTests
from tests.pipeline.histories import table
from tests.pipeline.stored import APP, WriteMode


def new_table(
    tables: IcebergTables, key: tuple[str, ...] | None = ("id",), mode: WriteMode = "copy-on-write"
) -> StoredTable:
    spec = table(key, TableSettings(write_mode=mode, format="iceberg"))
    content = NewTable(spec, [], Position(APP, Lsn(999)), load="x", keep_hours=24)
    return tables.replace("public/t", content, tables.open("public/t"))


def open_table(tables: IcebergTables) -> StoredTable:
    stored = tables.open("public/t")
    assert stored is not None
    return stored


def catalog_table(catalog: CatalogOfTests) -> Table:
    return catalog.reader.load_table("public.t")


def ids_at(catalog: CatalogOfTests) -> list[int]:
    return sorted(catalog_table(catalog).scan().to_arrow()["id"].to_pylist())
