"""`replicate` and the other commands with the tables in a catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import logicalrep
from logicalrep.options.kinds import OptionError
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.formats.catalog_settings import CatalogNameError, CatalogSettings
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.operate.dropping import drop
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.state.state import StateError
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.verify.verifying import verify
from logicalrep.postgres.connection import ConnectionSettings
from tests.documents import examples
from tests.pipeline.index.small_indexes import index_small_tables
from tests.pipeline.replicating import replicate_once
from tests.pipeline.storage.stores import Store
from tests.postgres.servers import Database

pytestmark = pytest.mark.filterwarnings("ignore:.*unclosed:ResourceWarning")


class Lake:
    """A destination, and an SQL catalog beside it."""

    def __init__(self, db: Database, folder: Path) -> None:
        self.db, self.to, self.uri = db, folder / "lake", f"sqlite:///{folder}/catalog.db"
        self.settings = CatalogSettings(self.uri)
        self.connection = ConnectionSettings(db.dsn)

    def replicate(self, **options: Any) -> None:
        replicate_once(self.db, self.to, **{"format": "iceberg", "catalog": self.uri, **options})

    def names(self) -> set[str]:
        """Return the names of the tables in the catalog."""
        catalog = SqlCatalog("default", uri=self.uri)
        tables = {".".join(name) for space in catalog.list_namespaces() for name in catalog.list_tables(space)}
        catalog.engine.dispose()
        return tables

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """Return a table's rows as a reader of the catalog has them."""
        catalog = SqlCatalog("default", uri=self.uri)
        table: pa.Table = catalog.load_table(name).scan().to_arrow()
        catalog.engine.dispose()
        return sorted(tuple(row.values()) for row in table.to_pylist())

    def is_equal(self) -> bool:
        verdicts = list(verify(self.connection, Storage(str(self.to)), catalog=self.settings))
        return {verdict.result for verdict in verdicts} == {"equal"}


def test_tables_follow_in_a_catalog_through_schema_changes_and_commands(db18: Database, tmp_path: Path) -> None:
    db18.execute('CREATE TABLE "Order lines" (id int PRIMARY KEY, a text, b int)')
    db18.execute("""INSERT INTO "Order lines" SELECT i, 'text ' || i, i FROM generate_series(1, 20) AS i""")
    lake = Lake(db18, tmp_path)
    lake.replicate(history=True)
    assert lake.names() == {"public.order_lines", "public.order_lines_history"}
    for statement in (
        'DELETE FROM "Order lines" WHERE id > 3',
        """ALTER TABLE "Order lines" ADD COLUMN c numeric(5, 2) DEFAULT 1.5""",
        'ALTER TABLE "Order lines" RENAME COLUMN a TO name',
        'ALTER TABLE "Order lines" DROP COLUMN b',
        'UPDATE "Order lines" SET c = 2 WHERE id = 2',
    ):
        db18.execute(statement)
        lake.replicate(history=True)
    assert [(number, name, str(c)) for number, name, c in lake.rows("public.order_lines")] == [
        (1, "text 1", "1.50"),
        (2, "text 2", "2.00"),
        (3, "text 3", "1.50"),
    ]
    assert lake.is_equal()
    resync(lake.connection, Storage(str(lake.to)), ())
    lake.replicate(history=True)
    assert lake.is_equal()
    db18.execute('ALTER TABLE "Order lines" RENAME TO lines')
    db18.execute("INSERT INTO lines VALUES (4, 'text 4', 3)")
    lake.replicate(history=True)
    assert len(lake.rows("public.lines")) == 4
    assert lake.is_equal()
    for command in (verify, drop):
        with pytest.raises(StateError, match="pass the --catalog of its first start"):
            list(
                command(lake.connection, Storage(str(lake.to)), **({"deletes_tables": True} if command is drop else {}))
            )  # type: ignore[operator]
    with pytest.raises(StateError, match="pass the --catalog of its first start"):
        replicate_once(db18, lake.to, format="iceberg")
    assert len(logicalrep.read(lake.to, "lines", catalog=lake.uri).arrow()) == 4
    with pytest.raises(StateError, match="pass the --catalog of its first start"):
        logicalrep.read(lake.to, "lines", catalog="sqlite:////elsewhere.db")
    drop(lake.connection, Storage(str(lake.to)), deletes_tables=True, catalog=lake.settings)
    assert lake.names() == set()
    assert not [path for path in lake.to.rglob("*") if path.is_file()]


def test_marked_rows_of_divided_tables_in_a_store_are_found_by_an_index_and_the_catalog(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = index_small_tables(Limits(small_file_bytes=1, marked_share=1, merged_share=1))
    # Files with marked rows are left as they are.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    db18.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, region text, v text)",
        "INSERT INTO orders SELECT i, 'r' || i % 3, 'v' FROM generate_series(1, 60) AS i",
    )
    store, uri = Store(), f"sqlite:///{tmp_path}/catalog.db"
    try:
        options: dict[str, Any] = {"storage_options": store.options, "catalog": uri, "format": "iceberg"}
        by = ["region", "bucket(2, id)"]
        options |= {"write_mode": "merge-on-read", "index_size": 64, "append": True}
        options["config"] = {"tables": {"orders": {"partition_by": by}}}
        replicate_once(db18, "s3://lake/shop", limits=limits, **options)
        db18.execute(
            "UPDATE orders SET region = 'moved' WHERE id % 5 = 0",
            "UPDATE orders SET id = id + 100 WHERE id % 7 = 0",
            "DELETE FROM orders WHERE id % 11 = 0",
        )
        replicate_once(db18, "s3://lake/shop", limits=limits, **options)
        orders = logicalrep.read("s3://lake/shop", "orders", storage_options=store.options, catalog=uri)
        assert sorted(map(tuple, orders.polars().rows())) == sorted(db18.rows("SELECT * FROM orders"))
        named: dict[str, Any] = {"storage_options": store.options, "catalog": uri}
        changes = logicalrep.read("s3://lake/shop", "orders~changes", **named).arrow()
        assert changes.num_rows > 20
        stored = table_format(orders.storage, "iceberg", CatalogSettings(uri)).open("public/orders")
        assert stored is not None
        assert any(file.vector is not None for file in stored.files.values())
        assert len({file.partition for file in stored.files.values()}) == 8
        (verdict,) = verify(ConnectionSettings(db18.dsn), orders.storage, catalog=CatalogSettings(uri))
        assert verdict.result == "equal"
        assert any((tmp_path / "cache").rglob("*.run"))
    finally:
        store.close()


def test_two_tables_of_one_name_are_refused_at_the_start(db18: Database, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    db18.execute('CREATE TABLE "Orders" (id int PRIMARY KEY)')
    db18.execute('CREATE TABLE "order.s" (id int PRIMARY KEY)')
    db18.execute('CREATE TABLE "order s" (id int PRIMARY KEY)')
    lake = Lake(db18, tmp_path)
    with pytest.raises(CatalogNameError, match=r"would both be public\.order_s in the catalog"):
        lake.replicate()
    assert db18.value("SELECT count(*) FROM pg_replication_slots WHERE database = current_database()") == 0
    assert lake.names() == set()
    lake.replicate(exclude_tables=['public."order s"', 'public."Orders"'])
    assert lake.names() == {"public.orders", "public.order_s"}


def test_a_catalog_among_the_replicated_tables_is_refused(db18: Database, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    info = db18.connection.info
    uri = f"postgresql://{info.user}@/{info.dbname}?host={info.host}&port={info.port}"
    with pytest.raises(StateError, match="each commit would cause another"):
        replicate_once(db18, tmp_path / "lake", format="iceberg", catalog=uri)
    replicate_once(db18, tmp_path / "lake", format="iceberg", catalog=uri, exclude_tables=["public.iceberg_*"])
    assert db18.value("SELECT count(*) FROM iceberg_tables WHERE table_name = 'orders'") == 1


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"catalog": "sqlite:////tmp/c.db"}, "for Iceberg tables, with --format iceberg"),
        ({"format": "iceberg", "catalog_options": {"warehouse": "x"}}, "'catalog' names none"),
    ],
)
def test_options_of_a_catalog_that_do_not_fit_are_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        ReplicateSettings("", "lake", **options)


@pytest.mark.parametrize("uri", ["mysql://host/db", "catalog.db", "http://catalog.example.org/v1"])
def test_what_is_no_catalog_is_refused(uri: str) -> None:
    with pytest.raises(OptionError, match="option 'catalog' is"):
        CatalogSettings(uri)


def test_tables_are_read_and_registered_as_the_page_says(db18: Database, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE orders (id int PRIMARY KEY)", "INSERT INTO orders VALUES (1)")
    reading, registering = examples("docs/reference/catalogs.md", "python")
    lake, of_page = Lake(db18, tmp_path), "sqlite:////lake/catalog.db"
    lake.replicate()
    assert of_page in reading
    names: dict[str, Any] = {}
    exec(reading.replace(of_page, lake.uri), names)
    assert names["orders"].scan().to_arrow().to_pylist() == [{"id": 1}]
    names["catalog"].engine.dispose()
    replicate_once(db18, tmp_path / "plain", format="iceberg")
    newest = max(
        (tmp_path / "plain/public/orders/metadata").glob("v*.metadata.json"), key=lambda path: path.stat().st_mtime
    )
    of_page = "/lake/public/orders/metadata/v7.metadata.json"
    assert of_page in registering
    catalog = SqlCatalog("other", uri=f"sqlite:///{tmp_path}/other.db")
    exec(registering.replace(of_page, str(newest)), {"catalog": catalog})
    assert catalog.load_table("public.orders").scan().to_arrow().to_pylist() == [{"id": 1}]
    catalog.engine.dispose()
