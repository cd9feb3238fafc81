"""Delta's change data feed, as delta-rs reads it: the exact rows before and after each commit."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from logicalrep.options.kinds import OptionError
from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.apply.setting_changes import change_feed
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.delta.delta_log import DeltaLog
from logicalrep.pipeline.formats.stored_table import Position
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.forms import ReservedColumnError
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.histories import NAMES, History, table
from tests.pipeline.reading import read_delta
from tests.pipeline.stored import APP, KEYS, MARKS_IN_SMALL_FILES, MODES, WriteMode, new_stored_table, texts_of
from tests.pipeline.upkeep.foreign.spark_server import SparkNotInstalledError, start

_SHARES = replace(MARKS_IN_SMALL_FILES, matched_bytes=1000)
"""Changes are compared in many shares, and rows are marked."""
Change = tuple[str | None, ...]
"""The texts of the type and the values of a row."""


def new_log(storage: Storage, spec: TableSpec) -> DeltaLog:
    log = new_stored_table(storage, spec)
    assert isinstance(log, DeltaLog)
    return log


def feed_of(log: DeltaLog, version: int) -> Counter[Change]:
    reader = DeltaTable(log.storage.uri_of(log.folder)).load_cdf(version, version)
    rows = pa.table(reader.read_all())
    plain = [field.with_type(pa.string()) if field.type == pa.string_view() else field for field in rows.schema]
    return texts_of(rows.cast(pa.schema(plain)).select(["_change_type", *NAMES]))


def differences(log: DeltaLog, version: int, key: tuple[str, ...] | None) -> Counter[Change]:
    """Return the changes between a version and the version before, from the rows of both."""
    old, new = (
        texts_of(read_delta(log.storage.uri_of(log.folder), version=number)) for number in (version - 1, version)
    )
    old, new = old - new, new - old
    changes: Counter[Change] = Counter()
    numbers = [NAMES.index(name) for name in key or ()]

    def keys_of(rows: Counter[Any]) -> set[Change]:
        return {tuple(row[number] for number in numbers) for row in rows}

    both = keys_of(old) & keys_of(new) if key else set()
    for rows, alone, paired in ((old, "delete", "update_preimage"), (new, "insert", "update_postimage")):
        for row, count in rows.items():
            changes[(paired if tuple(row[number] for number in numbers) in both else alone, *row)] += count
    return changes


@pytest.mark.slow
@pytest.mark.parametrize("limits", [Limits(), _SHARES], ids=["whole files", "shares"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_each_commit_has_its_net_changes(
    tmp_path: Path, key: tuple[str, ...] | None, mode: WriteMode, limits: Limits
) -> None:
    storage = Storage(str(tmp_path), limits=limits)
    log = new_log(storage, table(key, TableSettings(write_mode=mode, change_data_feed=True)))
    history = History(key, random.Random(f"{key} {mode}"))
    for _ in range(8):
        for _ in range(20):
            history.step()
        changes = history.take()
        apply(log, changes, Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
        assert feed_of(log, log.version) == differences(log, log.version, key)
    assert list(tmp_path.rglob("_change_data/*.parquet"))


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES)
def test_spark_reads_the_net_changes_of_each_commit(tmp_path: Path, mode: WriteMode) -> None:
    try:
        spark = start()
    except SparkNotInstalledError as error:
        pytest.skip(str(error))
    spark.begin({})
    log = new_log(
        Storage(str(tmp_path), limits=MARKS_IN_SMALL_FILES),
        table(("id",), TableSettings(write_mode=mode, change_data_feed=True)),
    )
    history = History(("id",), random.Random(mode))
    columns = ", ".join(f"CAST({name} AS STRING) AS {name}" for name in NAMES if name != "v")
    for _ in range(4):
        for _ in range(20):
            history.step()
        apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
        changes = f"table_changes('delta.`{tmp_path}/public/t`', {log.version}, {log.version})"
        rows = spark.run(f"SELECT _change_type, {columns} FROM {changes}")
        expected: Counter[Change] = Counter()
        for (kind, id_, b, _, big), count in differences(log, log.version, ("id",)).items():
            expected[kind, id_, b, big] += count
        assert Counter(tuple(row.values()) for row in rows) == expected


def test_a_commit_without_a_net_change_has_no_rows_in_the_feed(tmp_path: Path) -> None:
    log = new_log(Storage(str(tmp_path)), table(("id",), TableSettings(change_data_feed=True)))
    history = History(("id",), random.Random(1))
    for _ in range(5):
        history.insert()
    apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    (row, *_) = history.rows
    history.add_change("update", None, row, ())
    apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    assert feed_of(log, log.version) == Counter()
    assert log.applied(APP) == history.lsn - 1


def test_the_feed_begins_and_ends_without_a_reload(tmp_path: Path) -> None:
    log = new_log(Storage(str(tmp_path)), table(("id",)))
    history = History(("id",), random.Random(2))
    for _ in range(20):
        history.step()
    apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), SequentialEngine())

    def protocol() -> set[str]:
        return set(DeltaTable(log.storage.uri_of(log.folder)).protocol().writer_features or ())

    for is_wanted in (True, False, True):
        assert change_feed(log, SequentialEngine(), is_wanted=is_wanted) == 0
        reopened = DeltaLog.open(log.storage, log.folder)
        assert reopened is not None
        log = reopened
        configuration = DeltaTable(log.storage.uri_of(log.folder)).metadata().configuration
        assert ("delta.enableChangeDataFeed" in configuration) == is_wanted
        assert ("changeDataFeed" in protocol()) == is_wanted
        files = len(list(tmp_path.rglob("_change_data/*")))
        for _ in range(20):
            history.step()
        history.insert()
        history.update()
        apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
        assert (len(list(tmp_path.rglob("_change_data/*"))) > files) == is_wanted


def test_the_files_of_the_feed_expire_with_the_old_versions(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    log = new_log(storage, table(("id",), TableSettings(change_data_feed=True)))
    history = History(("id",), random.Random(3))
    for _ in range(3):
        for _ in range(20):
            history.step()
        history.insert()
        history.update()
        apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    reopened = DeltaLog.open(storage, log.folder)
    assert reopened is not None
    for opened in (log, reopened):
        opened.maintain(keep_hours=1)
        assert {path.name for path in tmp_path.rglob("_change_data/*")} <= {
            file.path.rpartition("/")[2] for file in opened.removed
        }
    assert list(tmp_path.rglob("_change_data/*"))
    reopened.maintain(keep_hours=0)
    assert not list(tmp_path.rglob("_change_data/*"))
    assert Counter(texts_of(read_delta(storage.uri_of(log.folder)))) == Counter(history.rows)


def test_a_column_of_the_feed_is_refused(tmp_path: Path) -> None:
    spec = table(("id",), TableSettings(change_data_feed=True))
    columns = [
        replace(column, name="_commit_version") if column.name == "v" else column for column in spec.relation.columns
    ]
    with pytest.raises(ReservedColumnError, match="_commit_version"):
        new_log(Storage(str(tmp_path)), replace(spec, relation=replace(spec.relation, columns=tuple(columns))))


def test_iceberg_tables_have_no_feed() -> None:
    with pytest.raises(OptionError, match="change_data_feed"):
        TableSettings(format="iceberg", change_data_feed=True)
