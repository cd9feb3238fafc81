"""Tables in an object store: odd names, answers that are late, failures or lost, and what is never shown."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from urllib.parse import quote, unquote

import pytest

from logicalrep.pipeline.limits import Limits

pytest.importorskip("moto")

from deltalake import DeltaTable

import logicalrep
from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats import opening
from logicalrep.pipeline.formats.delta.delta_log import DeltaLog
from logicalrep.pipeline.formats.stored_table import Position
from logicalrep.pipeline.schema.names import table_folder
from logicalrep.pipeline.schema.table_formats import FormatName
from logicalrep.pipeline.storage.storage import InvalidDestinationError, Storage, StorageError
from logicalrep.pipeline.upkeep.merging import merge_next
from logicalrep.pipeline.verify.verifying import verify
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.comparison import find_differences
from tests.pipeline.histories import History
from tests.pipeline.odd_names import ODD_NAMES
from tests.pipeline.reading import read_iceberg
from tests.pipeline.replicating import TABLES, replicate_meanwhile, replicate_once
from tests.pipeline.storage.stores import Store, start_object_store
from tests.pipeline.storage.troubles import Failures
from tests.pipeline.stored import APP, WriteMode, new_stored, rows_at
from tests.postgres.servers import Database


@pytest.fixture
def store() -> Iterator[Store]:
    with start_object_store() as store:
        yield store


FORMATS: tuple[FormatName, ...] = ("delta", "iceberg")


@pytest.mark.parametrize("table_format", ["delta", pytest.param("iceberg", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("root", ["s3://lake/shop", "s3://lake/odd destination", "s3://lake/odd%20place"])
def test_odd_names_are_one_key_to_all(store: Store, root: str, table_format: FormatName) -> None:
    storage = Storage(root, store.options)
    for name in ODD_NAMES:
        folder = table_folder(TableName("Sch ema", name))
        log = new_stored(storage, ("id",), folder, table_format=table_format)
        history = History(("id",), random.Random(1))
        history.insert()
        apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
        opened = opening.table_format(storage, table_format).open(folder)
        assert opened is not None, name
        assert opened.files.keys() == log.files.keys()
        assert opened.applied(APP) == log.applied(APP)
        if isinstance(log, DeltaLog):
            log.write_checkpoint()
            assert len([path for path in storage.list(folder) if ".checkpoint." in path]) == 1, name
        for path in log.files:
            assert f"{unquote(root).removeprefix('s3://lake/')}/{folder}/{path}" in set(store.keys())
    names = {key.split("/")[2] for key in store.keys()}  # noqa: SIM118
    assert len(names) == len(ODD_NAMES)


@pytest.mark.parametrize("table_format", FORMATS)
@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_read_by_other_programs(store: Store, name: str, table_format: FormatName) -> None:
    storage = Storage("s3://lake/shop", store.options)
    folder = table_folder(TableName("Sch ema", name))
    log = new_stored(storage, ("id",), folder, table_format=table_format)
    history = History(("id",), random.Random(1))
    history.insert()
    apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    if table_format == "iceberg":
        # pyiceberg takes these for the end of a path.
        is_cut = any(character in name for character in "#?")
        with pytest.raises(FileNotFoundError) if is_cut else nullcontext():
            assert read_iceberg(f"s3://lake/shop/{folder}", store.options).num_rows == 1
        return
    uri = "s3://lake/shop/" + quote(folder)
    assert DeltaTable(uri, storage_options=store.options).to_pyarrow_table().num_rows == 1


@pytest.mark.parametrize(
    ("seed", "mode", "table_format"),
    [
        (0, "copy-on-write", "iceberg"),
        (1, "merge-on-read", "delta"),
        pytest.param(0, "copy-on-write", "delta", marks=pytest.mark.thorough),
        pytest.param(1, "merge-on-read", "iceberg", marks=pytest.mark.thorough),
        pytest.param(2, "merge-on-read", "delta", marks=pytest.mark.thorough),
        pytest.param(2, "merge-on-read", "iceberg", marks=pytest.mark.thorough),
    ],
)
def test_late_failing_and_lost_answers_change_nothing(
    store: Store, seed: int, mode: WriteMode, table_format: FormatName
) -> None:
    limits = Limits(
        small_file_bytes=0,
        marked_share=1,
        merged_files=2,
        log_checkpoint_commits=5,
        metadata_versions=2,
        metadata_seconds=0,
        upkeep_versions=2,
        store_retries=1,
    )
    # There are many small files, and merges of them.
    where = Storage("s3://lake/shop", store.options, limits=limits)
    log = new_stored(where, ("id",), mode=mode, table_format=table_format)
    history = History(("id",), random.Random(seed))
    store.trouble = troubles = Failures(seed, ["late", "fail", "fail", "lose", "lose", "lose"], 0.3)
    errors = merges = 0
    for _ in range(12):
        for _ in range(20):
            history.step()
        changes = history.take()
        for _ in range(50):
            try:
                apply(log, changes, Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
                merges += merge_next(log, SequentialEngine())
                log.maintain(24)
                break
            except StorageError:
                errors += 1
        else:
            pytest.fail("no try was successful")
    store.trouble = lambda method, path: None
    assert errors
    assert "lose" in troubles.seen
    assert rows_at(where) == history.truth()
    reopened = opening.table_format(where, table_format).open("public/t")
    assert reopened is not None
    assert (reopened.version, reopened.files) == (log.version, log.files)


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_commit_whose_answer_is_lost_is_not_another_writers(store: Store, table_format: FormatName) -> None:
    where = Storage("s3://lake/shop", store.options, Limits(store_retries=0))
    log = new_stored(where, ("id",), table_format=table_format)
    history = History(("id",), random.Random(1))
    for _ in range(20):
        history.step()
    changes = history.take()
    store.trouble = lambda method, path: "lose" if method == "PUT" and path.endswith(".json") else None
    with pytest.raises(StorageError):
        apply(log, changes, Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    store.trouble = lambda method, path: None
    with pytest.raises(StorageError, match="was lost"):
        apply(log, changes, Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    assert apply(log, changes, Position(APP, Lsn(history.lsn - 1)), SequentialEngine()) is False
    assert rows_at(where) == history.truth()
    log.commit([], [], Position(APP, Lsn(history.lsn)))


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_load_whose_answer_is_lost_is_committed(store: Store, table_format: FormatName) -> None:
    where = Storage("s3://lake/shop", store.options, Limits(store_retries=0))
    store.trouble = lambda method, path: "lose" if method == "PUT" and path.endswith(".json") else None
    with pytest.raises(StorageError):
        new_stored(where, ("id",), table_format=table_format)
    store.trouble = lambda method, path: None
    log = new_stored(where, ("id",), table_format=table_format)
    assert (log.version, log.applied(APP)) == (0 if table_format == "delta" else 1, 999)


def test_a_store_that_is_away_is_one_sentence(store: Store) -> None:
    options = store.options | {"aws_endpoint": "http://127.0.0.1:1", "timeout": "1s"}
    away = Storage("s3://lake/x", options, Limits(store_retries=0))
    with pytest.raises(StorageError) as error:
        away.read("a")
    assert "\n" not in str(error.value)


def test_secrets_are_in_no_text(store: Store) -> None:
    storage = Storage("s3://nowhere/shop", store.options)
    assert "secret" not in repr(storage)
    with pytest.raises(StorageError) as caught:
        storage.write("a", b"")
    assert "secret" not in str(caught.value)
    assert "s3://nowhere/shop/a" in str(caught.value)


def test_the_environment_goes_with_the_place(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in store.options.items():
        monkeypatch.setenv(name.upper().replace("AWS_ENDPOINT", "AWS_ENDPOINT_URL"), value)
    dumped = pickle.dumps(Storage("s3://lake/shop"))
    for name in store.options:
        monkeypatch.delenv(name.upper().replace("AWS_ENDPOINT", "AWS_ENDPOINT_URL"))
    elsewhere = pickle.loads(dumped)
    elsewhere.write("a", b"1")
    assert elsewhere.read("a") == b"1"


@pytest.mark.parametrize("uri", ["http://host/x", "s3://", "s3://lake/a?b", "memory:///", "az://c/x", "s3://lake/a#b"])
def test_other_uris_are_refused(uri: str) -> None:
    with pytest.raises(InvalidDestinationError, match="not a destination for tables"):
        Storage(uri)


def test_unknown_options_are_refused(store: Store) -> None:
    with pytest.raises(InvalidDestinationError, match="colour"):
        Storage("s3://lake/shop", store.options | {"aws_colour": "red"}).read("a")


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_database_is_replicated_into_a_store_with_troubles(
    shop: Database, store: Store, table_format: FormatName
) -> None:
    uri = "s3://lake/shop"
    replicate_once(shop, uri, storage_options=store.options, format=table_format)
    assert find_differences(shop.dsn, uri, TABLES, store.options) == {}
    store.trouble = Failures(1, ["late", "fail", "lose"], 0.2)
    with replicate_meanwhile(shop, uri, storage_options=store.options, format=table_format) as caught_up:
        for number in range(10):
            shop.execute(
                f"UPDATE customer SET city = 'city {number}' WHERE id % 10 = {number}",
                f"DELETE FROM orders WHERE id % 20 = {number}",
                f"INSERT INTO audit SELECT '2024-01-01', 'no. {number}' FROM generate_series(1, 3)",
            )
        caught_up()
        store.trouble = lambda method, path: None
        caught_up()
    assert find_differences(shop.dsn, uri, TABLES, store.options) == {}
    storage = Storage(uri, store.options)
    assert {verdict.result for verdict in verify(shop.settings, storage)} == {"equal"}
    for key in store.keys():  # noqa: SIM118
        assert b"the secret" not in store.client.get_object(Bucket="lake", Key=key)["Body"].read()


@pytest.mark.parametrize("table_format", FORMATS)
def test_tables_of_a_store_are_read_by_name_as_of_a_time(
    db18: Database, store: Store, table_format: FormatName
) -> None:
    limits = Limits(past_state_seconds=1e-6)
    db18.execute('CREATE TABLE "T 1" (id int PRIMARY KEY)', 'INSERT INTO "T 1" VALUES (1), (2)')
    uri, options = "s3://lake/shop 1", store.options
    replicate_once(db18, uri, limits=limits, storage_options=options, write_mode="merge-on-read", format=table_format)
    start = datetime.now(UTC)
    db18.execute('DELETE FROM "T 1" WHERE id = 1', 'INSERT INTO "T 1" VALUES (3)')
    replicate_once(db18, uri, limits=limits, storage_options=options, write_mode="merge-on-read", format=table_format)
    tables = logicalrep.at(uri, start, storage_options=options)
    assert sorted(tables['"T 1"'].polars()["id"]) == [1, 2]
    table = logicalrep.read(uri, '"T 1"', storage_options=options)
    assert sorted(table.arrow()["id"].to_pylist()) == [2, 3]
    assert options["aws_secret_access_key"] not in repr(tables)


def test_a_store_without_tls_is_allowed_by_an_option_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ALLOW_HTTP", raising=False)
    for name in ("aws_endpoint", "AWS_ENDPOINT_URL"):
        with pytest.raises(InvalidDestinationError, match="set AWS_ALLOW_HTTP=true, or add --storage-option"):
            Storage("s3://lake/shop", {name: "http://minio:9000"})
    Storage("s3://lake/shop", {"aws_endpoint": "http://minio:9000", "AWS_ALLOW_HTTP": "true"})
    Storage("s3://lake/shop", {"aws_endpoint": "https://minio:9000"})
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    Storage("s3://lake/shop", {"aws_endpoint": "http://minio:9000"})
