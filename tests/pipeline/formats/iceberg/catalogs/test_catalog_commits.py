"""Commits to tables in a catalog: their answers lost, a second writer, kills, and what readers see; over each kind."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pytest
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.formats.catalog_errors import CatalogError
from logicalrep.pipeline.formats.catalog_settings import CatalogNameError, CatalogSettings, refuse_same_names
from logicalrep.pipeline.formats.iceberg.catalogs import connecting
from logicalrep.pipeline.formats.iceberg.catalogs.catalog_versions import CatalogVersions
from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables
from logicalrep.pipeline.formats.iceberg.versions import MetadataVersion
from logicalrep.pipeline.formats.stored_table import ForeignTableError, NewTable, Position, WriterError
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.storage.storage import DamagedError, Storage, StorageError
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.formats.iceberg.catalogs.kinds import CatalogOfTests, catalog_of
from tests.pipeline.formats.iceberg.catalogs.tables import catalog_table, ids_at, new_table, open_table
from tests.pipeline.formats.iceberg.tables import delete, insert
from tests.pipeline.histories import History, Row
from tests.pipeline.storage.stores import Store, Trouble
from tests.pipeline.stored import APP, KEYS, MARKS_IN_SMALL_FILES, MODES, PicklingTasks, WriteMode, texts_of
from tests.postgres.proxy import start_proxy_to
from tests.postgres.servers import create_database

pytestmark = [
    pytest.mark.filterwarnings("ignore:Iceberg scan planning", "ignore:.*unclosed:ResourceWarning"),
    pytest.mark.slow,
]


class KilledError(BaseException):
    """The end of a process."""


def rows_at(catalog: CatalogOfTests) -> Counter[Row]:
    return texts_of(catalog_table(catalog).scan().to_arrow())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "key", [KEYS[0], *(pytest.param(key, marks=pytest.mark.thorough) for key in KEYS[1:])], ids=str
)
def test_batches_are_applied_as_they_are_without_a_catalog(
    sqlite: CatalogOfTests, key: tuple[str, ...] | None, mode: WriteMode
) -> None:
    sqlite = sqlite.with_limits(Limits(small_file_bytes=1, marked_share=1, small_manifests=2, snapshots=5))
    chance = random.Random(5)
    stored, history = new_table(sqlite.open(), key, mode), History(key, chance)
    for _ in range(8):
        for _ in range(chance.randrange(1, 60)):
            history.step()
        apply(stored, history.take(), Position(APP, Lsn(history.lsn - 1)), PicklingTasks())
        assert rows_at(sqlite) == history.truth()
        if chance.random() < 0.3:
            opened = open_table(sqlite.open())
            assert (opened.version, opened.table, opened.files) == (stored.version, stored.table, stored.files)
            assert opened.applied(APP) == stored.applied(APP)
            stored = opened
    by_location: pa.Table = polars.scan_iceberg(catalog_table(sqlite).metadata_location).collect().to_arrow()
    assert texts_of(by_location) == history.truth()


def test_a_table_is_created_replaced_and_read(catalog: CatalogOfTests) -> None:
    tables = catalog.open()
    assert tables.open("public/t") is None
    stored = new_table(tables)
    insert(stored, 1000, range(3))
    stored.describe(stored.table)
    stored.write_stopped("0/1: why")
    assert ids_at(catalog) == [0, 1, 2]
    assert catalog_table(catalog).properties["logicalrep.stopped"] == "0/1: why"
    opened = open_table(catalog.open())
    assert (opened.version, opened.applied(APP)) == (stored.version, Lsn(1000))
    assert opened.foreign_change(-1) is None
    content = NewTable(stored.table, [], Position(APP, Lsn(2000)), load="y", keep_hours=24)
    replaced = tables.replace("public/t", content, opened)
    assert tables.replace("public/t", content, opened).version == replaced.version
    assert ids_at(catalog) == []
    # A field's id is 16 times the number of its column, whatever ids a catalog would give.
    assert [field.field_id for field in catalog_table(catalog).schema().fields] == [16, 32, 48, 64]
    tables.remove("public/t")
    assert catalog.open().open("public/t") is None
    assert catalog.storage.list("public/t") == []


@pytest.mark.parametrize("is_made", [True, False], ids=["made", "not made"])
def test_a_commit_without_an_answer_is_applied_once(catalog: CatalogOfTests, is_made: bool) -> None:
    stored = new_table(catalog.open())
    catalog.fail_next_commit(is_made=is_made)
    if is_made:
        # The snapshot is there: the answer is found by its id.
        insert(stored, 1000, range(3))
    else:
        with pytest.raises(StorageError) as refused:
            insert(stored, 1000, range(3))
        assert refused.value.may_pass
        assert refused.value.code == "CATALOG_NOT_REACHED"
        insert(stored, 1000, range(3))
    insert(stored, 1001, range(3, 5))
    assert ids_at(catalog) == [0, 1, 2, 3, 4]
    assert open_table(catalog.open()).applied(APP) == Lsn(1001)


def test_a_commit_without_an_answer_is_found_before_its_files_are_deleted(
    catalog: CatalogOfTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = new_table(catalog.open())
    catalog.fail_next_commit(is_made=True)
    with monkeypatch.context() as away:
        find, numbers = CatalogVersions.find, count()

        def find_once(self: CatalogVersions, number: int | None = None) -> MetadataVersion | None:
            if next(numbers):
                raise StorageError("the catalog is away")
            return find(self, number)

        # It is there before the commit, and not after it.
        away.setattr(CatalogVersions, "find", find_once)
        with pytest.raises(StorageError, match="is away"):
            insert(stored, 1000, range(3))
        with pytest.raises(StorageError, match="is away"):
            stored.maintain(0)
    with pytest.raises(StorageError, match="the answer to an earlier commit was lost, but the commit exists"):
        stored.maintain(0)
    assert stored.applied(APP) == Lsn(1000)
    insert(stored, 1001, range(3, 5))
    assert ids_at(catalog) == [0, 1, 2, 3, 4]


def test_a_second_writer_is_refused(catalog: CatalogOfTests) -> None:
    stored = new_table(catalog.open())
    other = open_table(catalog.open())
    insert(stored, 1000, range(3))
    for _ in range(2):
        with pytest.raises(WriterError):
            insert(other, 1000, range(3))
    with pytest.raises(WriterError):
        other.write_stopped("0/1: a process that was stopped for a while")
    with pytest.raises(WriterError):
        other.refuse_unknown_commits()
    assert ids_at(catalog) == [0, 1, 2]
    insert(stored, 1001, range(3, 5))
    assert ids_at(catalog) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("is_made", [True, False], ids=["after the commit", "before it"])
def test_a_kill_between_the_files_and_the_commit_leaves_a_usable_table(
    catalog: CatalogOfTests, is_made: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = new_table(catalog.open())
    insert(stored, 1000, range(3))
    commit = CatalogVersions.commit

    def kill(self: CatalogVersions, *arguments: Any) -> Any:
        if is_made:
            commit(self, *arguments)
        raise KilledError

    with monkeypatch.context() as killing:
        killing.setattr(CatalogVersions, "commit", kill)
        with pytest.raises(KilledError):
            insert(stored, 1001, range(3, 5))
    reopened = open_table(catalog.open())
    assert reopened.applied(APP) == (Lsn(1001) if is_made else Lsn(1000))
    assert ids_at(catalog) == list(range(5 if is_made else 3))
    insert(reopened, 1001, range(3, 5)) if not is_made else None
    insert(reopened, 1002, range(5, 6))
    assert ids_at(catalog) == list(range(6))


def test_an_unresponsive_rest_catalog_is_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with catalog_of("rest", tmp_path, monkeypatch) as catalog:
        stored, server = new_table(catalog.open()), catalog.server
        assert server is not None
        assert server.seen["Authorization"] == "Bearer s3cret-token"
        send = HTTPAdapter.send

        def wait_less(
            adapter: HTTPAdapter, request: PreparedRequest, *, timeout: tuple[float, float], **named: Any
        ) -> Response:
            """Wait 3 s for the answer that does not come; other requests have as long as a busy machine needs."""
            assert timeout == (Limits().catalog_connect_seconds, Limits().catalog_answer_seconds)
            is_silent = server.fault == "silent after" and request.method == "POST"
            return send(adapter, request, timeout=(10.0, 3.0) if is_silent else timeout, **named)

        monkeypatch.setattr(HTTPAdapter, "send", wait_less)
        server.fault = "silent after"
        insert(stored, 1000, range(3))
        assert ids_at(catalog) == [0, 1, 2]
        server.fault = "409 before"
        with pytest.raises(StorageError, match="another change came first"):
            insert(stored, 1001, range(3, 5))
        insert(stored, 1001, range(3, 5))
        assert ids_at(catalog) == [0, 1, 2, 3, 4]


@pytest.mark.thorough
@pytest.mark.postgres
def test_an_unresponsive_postgresql_catalog_is_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with create_database(18) as database, start_proxy_to(database.connection.info.host, database.name) as proxy:
        # A URI for the proxy's address.
        uri = f"postgresql://postgres@/{database.name}?{proxy.dsn.replace(' ', '&')}"
        storage = Storage(str(tmp_path), limits=Limits(catalog_answer_seconds=5))
        tables = IcebergTables.in_catalog(storage, CatalogSettings(uri), creates=True)
        stored = new_table(tables)
        proxy.freeze(new=True)
        with pytest.raises(StorageError) as silent:
            insert(stored, 1000, range(3))
        assert silent.value.code == "CATALOG_NOT_REACHED"
        proxy.thaw()
        insert(stored, 1000, range(3))
        assert open_table(tables).applied(APP) == Lsn(1000)


@pytest.mark.thorough
def test_an_answer_of_glue_that_is_lost_on_the_way_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with catalog_of("glue", tmp_path, monkeypatch) as catalog:
        stored, store = new_table(catalog.open()), catalog.glue
        assert store is not None
        for number in range(6):
            # Each request of the commit in its turn is done, and answered as if it had failed.
            store.trouble = lose_one(number)
            for _ in range(4):
                with suppress(StorageError):
                    insert(stored, 1000 + number, range(number, number + 1))
            store.trouble = lambda method, path: None
            assert open_table(catalog.open()).applied(APP) == Lsn(1000 + number)
        assert ids_at(catalog) == list(range(6))


def lose_one(number: int) -> Callable[[str, str], Trouble]:
    """Return the trouble of one request, counted from 0."""
    numbers = count()
    return lambda method, path: "lose" if next(numbers) == number else None


def test_files_in_an_object_store_are_known_to_the_catalog(tmp_path: Path) -> None:
    store = Store()
    try:
        storage = Storage("s3://lake/shop", store.options)
        settings = CatalogSettings(f"sqlite:///{tmp_path}/catalog.db")
        stored = new_table(IcebergTables.in_catalog(storage, settings, creates=True))
        insert(stored, 1000, range(3))
        insert(open_table(IcebergTables.in_catalog(storage, settings)), 1001, range(3, 5))
        catalog = connecting.connect(settings, storage)
        table = catalog.load_table("public.t")
        assert table.metadata_location.startswith("s3://lake/shop/public/t/metadata/00002-")
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4]
    finally:
        store.close()


def test_commits_of_other_programs_are_reported(sqlite: CatalogOfTests) -> None:
    stored = new_table(sqlite.open())
    insert(stored, 1000, range(3))
    catalog_table(sqlite).transaction().set_properties(owner="somebody").commit_transaction()
    insert(stored, 1001, range(3, 5))
    assert catalog_table(sqlite).properties["owner"] == "somebody"
    row = catalog_table(sqlite).scan().to_arrow().slice(0, 1)
    catalog_table(sqlite).append(row)
    assert "has changed its rows" in str(open_table(sqlite.open()).foreign_change(-1))
    with pytest.raises(DamagedError, match="another program has changed its rows"):
        insert(stored, 1002, range(5, 6))
    # It is loaded again then, whatever is there.
    content = NewTable(stored.table, [], Position(APP, Lsn(2000)), load="y", keep_hours=24)
    stored = sqlite.open().replace("public/t", content, stored)
    assert ids_at(sqlite) == []
    insert(stored, 2001, range(2))
    snapshot = catalog_table(sqlite).current_snapshot()
    insert(stored, 2002, range(2, 4))
    assert snapshot is not None
    catalog_table(sqlite).manage_snapshots().rollback_to_snapshot(snapshot.snapshot_id).commit()
    assert "has changed its rows" in str(open_table(sqlite.open()).foreign_change(-1))
    with pytest.raises(DamagedError):
        insert(stored, 2003, range(5, 6))
    with catalog_table(sqlite).update_schema() as update:
        update.delete_column("v")
    assert open_table(sqlite.open()).foreign_change(-1) == "another program has changed its columns"
    sqlite.reader.drop_table("public.t")
    with pytest.raises(DamagedError, match="no longer in the catalog"):
        insert(stored, 2004, range(6, 7))


def test_upkeep_deletes_old_snapshots_and_unneeded_files(
    sqlite: CatalogOfTests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sqlite = sqlite.with_limits(Limits(snapshots=20, metadata_seconds=0, upkeep_versions=5))
    stored = new_table(sqlite.open(), mode="merge-on-read")
    for number in range(40):
        insert(stored, 1000 + number, range(number, number + 1))
        if number % 5 == 4:
            stored.maintain(1000)
    folder = tmp_path / "lake/public/t"
    assert len(list((folder / "metadata").glob("*.metadata.json"))) <= 25
    orphan = folder / "part-00000000000000000000000000000000.parquet"
    orphan.write_bytes(b"half")
    os.utime(orphan, (0, 0))
    reopened = open_table(sqlite.open())
    for _ in range(5):
        reopened.maintain(0)
    assert not reopened.is_upkeep_due(0)
    assert not orphan.exists()
    assert len(catalog_table(sqlite).metadata.snapshots) == 1
    assert {path.name for path in folder.glob("*.parquet")} == set(reopened.files)
    assert ids_at(sqlite) == list(range(40))


def test_tables_of_one_name_are_never_merged(sqlite: CatalogOfTests) -> None:
    with pytest.raises(CatalogNameError, match=re.escape("public/a.b and public/a b would both be public.a_b")):
        refuse_same_names(["public/a.b", "public/c", "public/a b"])
    with pytest.raises(CatalogNameError, match="longer"):
        refuse_same_names([f"public/{'x' * 300}"])
    refuse_same_names(["public/a", "public/a~history", "other/a"])
    insert(new_table(sqlite.open()), 1000, range(3))
    # A table that comes later, and another destination in the same catalog.
    elsewhere = IcebergTables.in_catalog(Storage(f"{sqlite.storage.uri}2"), sqlite.settings)
    for tables, folder in ((sqlite.open(), "public/T"), (elsewhere, "public/t")):
        with pytest.raises(ForeignTableError, match=r"two tables have one name there|is not the table of this"):
            tables.open(folder)
    assert ids_at(sqlite) == [0, 1, 2]


def test_secrets_of_a_catalog_are_never_shown(tmp_path: Path) -> None:
    settings = CatalogSettings("postgresql://lake:s3cret@127.0.0.1:1/catalog?sslmode=disable", {"token": "t0ken"})
    assert settings.shown == "postgresql://127.0.0.1:1/catalog"
    assert "s3cret" not in repr(settings)
    with pytest.raises(CatalogError) as away:
        connecting.connect(settings, Storage(str(tmp_path)))
    assert "s3cret" not in str(away.value)
    assert away.value.may_pass
    for query in ("token=s3cret", "x=s3cret&y=1", "sig=s%23cret"):
        settings = CatalogSettings(f"http://me:s3cret@127.0.0.1:1/api?{query}", {"token": "t0ken"})
        with pytest.raises(CatalogError) as away:
            connecting.connect(settings, Storage(str(tmp_path)))
        for text in (str(away.value), repr(settings), settings.shown):
            assert not re.search("s3cret|s%23cret|s#cret|t0ken", text), text


def test_marked_rows_are_positions(sqlite: CatalogOfTests) -> None:
    sqlite = sqlite.with_limits(MARKS_IN_SMALL_FILES)
    stored = new_table(sqlite.open(), mode="merge-on-read")
    insert(stored, 1000, range(100))
    for number in range(3):
        delete(stored, 1001 + number, range(10 * number, 10 * number + 5))
    assert len(ids_at(sqlite)) == 85
    assert open_table(sqlite.open()).files == stored.files
