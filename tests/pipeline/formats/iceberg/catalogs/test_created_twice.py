"""Namespaces, tables and an SQL catalog's own tables, created by two threads or processes at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog, SqlCatalogBaseTable
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table
from sqlalchemy import Connection, event

from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables
from logicalrep.pipeline.formats.stored_table import NewTable, Position, WriterError
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.formats.iceberg.catalogs.kinds import CatalogOfTests, catalog_of
from tests.pipeline.histories import table
from tests.pipeline.stored import APP

TABLES = ["iceberg_tables", "iceberg_namespace_properties"]

pytestmark = pytest.mark.filterwarnings("ignore:.*unclosed:ResourceWarning")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)])
def sql_catalog(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[CatalogOfTests]:
    with catalog_of(request.param, tmp_path, monkeypatch) as catalog:
        yield catalog


def create(tables: IcebergTables, folder: str) -> None:
    spec = table(("id",), TableSettings(format="iceberg"))
    tables.replace(folder, NewTable(spec, [], Position(APP, Lsn(999)), load=folder, keep_hours=24), None)


@pytest.mark.parametrize("are_processes", [True, False], ids=["processes", "threads"])
def test_two_processes_can_create_one_namespace_at_once(
    sql_catalog: CatalogOfTests, monkeypatch: pytest.MonkeyPatch, are_processes: bool
) -> None:
    """Both look for the namespace, and look again, before either creates it."""
    tables = sql_catalog.open()
    exists, barrier = SqlCatalog.namespace_exists, Barrier(2)

    def look(self: SqlCatalog, namespace: Any) -> bool:
        if exists(self, namespace):
            return True
        barrier.wait(60)
        return False

    monkeypatch.setattr(SqlCatalog, "namespace_exists", look)
    both = [tables, sql_catalog.open() if are_processes else tables]
    folders = ["public/t", "public/u"]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(create, both, folders))
    assert all(sql_catalog.open().open(folder) is not None for folder in folders)


def test_of_two_processes_that_create_one_table_one_is_refused(
    sql_catalog: CatalogOfTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both look for the table before either creates it: one of them is a second writer."""
    load_table, barrier = SqlCatalog.load_table, Barrier(2)

    def look(self: SqlCatalog, name: Any) -> Table:
        try:
            return load_table(self, name)
        except NoSuchTableError:
            barrier.wait(60)
            raise

    both = [sql_catalog.open(), sql_catalog.open()]
    monkeypatch.setattr(SqlCatalog, "load_table", look)
    with ThreadPoolExecutor(2) as pool:
        creations = [pool.submit(create, tables, "public/t") for tables in both]
        errors = [creation.exception(60) for creation in creations]
    assert [type(error) for error in errors if error is not None] == [WriterError]
    assert sql_catalog.open().open("public/t") is not None


@pytest.mark.parametrize("foreign", [TABLES[:1], TABLES[1:], [*TABLES]], ids=["first", "second", "one after another"])
def test_two_processes_can_start_with_an_empty_catalog(sql_catalog: CatalogOfTests, foreign: list[str]) -> None:
    """Another process creates the catalog's own tables after this one has looked for them."""
    metadata, remaining = SqlCatalogBaseTable.metadata, [*foreign]

    def create_elsewhere(target: object, connection: Connection, **arguments: object) -> None:
        if remaining:
            with connection.engine.begin() as other:
                metadata.tables[remaining.pop(0)].create(other, checkfirst=False)

    event.listen(metadata, "before_create", create_elsewhere)
    try:
        tables = sql_catalog.open()
    finally:
        event.remove(metadata, "before_create", create_elsewhere)
    assert not remaining
    create(tables, "public/t")
    assert sql_catalog.open().open("public/t") is not None
