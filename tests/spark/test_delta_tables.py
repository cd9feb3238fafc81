"""`logicalrep.spark.table`: the rows of Delta tables by their log, in both write modes."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake")

import logicalrep.spark
from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.apply.reshaping import reshape
from logicalrep.pipeline.catalog.evolution import Evolution
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import NewTable, Position, StoredTable
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.apply.evolutions import evolved
from tests.pipeline.changes import change_batch, relation
from tests.pipeline.histories import NAMES, OID, table
from tests.pipeline.stored import MARKS_IN_SMALL_FILES, MODES, WriteMode

APP = "logicalrep/1/1/x"
FOLDER = "of a [shop]/1{2}*"


def new_table(storage: Storage, mode: WriteMode) -> StoredTable:
    spec = table(("id",), TableSettings(write_mode=mode))
    return table_format(storage).replace(
        FOLDER, NewTable(spec, [], Position(APP, Lsn(1)), load="x", keep_hours=24), None
    )


def change(stored: StoredTable, lsn: int, op: str, ids: range, text: str | None = None) -> None:
    """Insert, update or delete rows."""
    rows = [(str(key), {"id": str(key), "b": text, "v": None, "big": "big"}) for key in ids]
    changes: list[dict[str, Any]] = [
        {"op": op, "after": row, "commit_lsn": lsn}
        if op != "delete"
        else {"op": op, "before": {"id": id_}, "commit_lsn": lsn}
        for id_, row in rows
    ]
    apply(stored, [change_batch(relation(NAMES, oid=OID), changes)], Position(APP, Lsn(lsn)), SequentialEngine())


def rows_of(spark: Any, path: Path) -> list[tuple[Any, ...]]:
    frame = logicalrep.spark.table(spark, str(path)).orderBy("id")
    return [tuple(row) for row in frame.collect()]


@pytest.mark.parametrize("mode", MODES)
def test_rows_through_updates_and_schema_changes(spark: Any, tmp_path: Path, mode: WriteMode) -> None:
    folder = tmp_path / FOLDER
    stored = new_table(Storage(str(tmp_path), limits=MARKS_IN_SMALL_FILES), mode)
    assert logicalrep.spark.table(spark, str(folder)).columns == list(NAMES)
    assert rows_of(spark, folder) == []
    change(stored, 2, "insert", range(1000), "old")
    change(stored, 3, "update", range(0, 1000, 100), "new")
    change(stored, 4, "delete", range(1, 1000, 100))
    expected = [
        (number, "new" if number % 100 == 0 else "old", None, "big") for number in range(1000) if number % 100 != 1
    ]
    assert any(file.vector is not None for file in stored.files.values()) == (mode == "merge-on-read")
    assert rows_of(spark, folder) == expected
    assert logicalrep.spark.table(spark, str(folder)).count() == len(expected)
    # A version of before.
    assert logicalrep.spark.table(spark, str(folder), stored.version - 2).filter("b = 'new'").count() == 0

    # ADD COLUMN: no file is written anew for a column without a default.
    old_table = stored.table
    added = evolved(old_table, None)
    added = replace(added, table=replace(added.table, relation=replace(added.table.relation, columns=(
        *old_table.relation.columns, added.table.relation.columns[-1]))))  # fmt: skip
    reshape(stored, Evolution(added.table, {name: name for name in NAMES}, {}), SequentialEngine())
    assert logicalrep.spark.table(spark, str(folder)).columns == [*NAMES, "new"]
    assert rows_of(spark, folder) == [(*row, None) for row in expected]
    # DROP COLUMN: the files still have it.
    relation_ = stored.table.relation
    without = replace(
        stored.table,
        relation=replace(relation_, columns=relation_.columns[:3], types=relation_.types[:3]),
        attnums=stored.table.attnums[:3],
        dropped_columns=("big", "new"),
    )
    reshape(stored, Evolution(without, {name: name for name in NAMES[:3]}, {}), SequentialEngine())
    assert rows_of(spark, folder) == [row[:3] for row in expected]


PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
from pyspark.sql.connect.session import SparkSession as ConnectSession
from logicalrep.spark import table

spark = SparkSession.builder.remote("local[2]").getOrCreate()
assert isinstance(spark, ConnectSession)
rows = table(spark, sys.argv[1]).orderBy("id").collect()
print(json.dumps([row["id"] for row in rows if row["b"] == "new"] + [len(rows)]))
spark.stop()
"""


@pytest.mark.skipif(importlib.util.find_spec("grpc") is None, reason="the extra pipelines is not installed")
@pytest.mark.thorough
@pytest.mark.usefixtures("spark")
def test_a_session_of_spark_connect(tmp_path: Path) -> None:
    stored = new_table(Storage(str(tmp_path), limits=MARKS_IN_SMALL_FILES), "merge-on-read")
    change(stored, 2, "insert", range(1000), "old")
    change(stored, 3, "update", range(0, 1000, 500), "new")
    change(stored, 4, "delete", range(1, 1000, 100))
    environment = os.environ | {"SPARK_TESTING": "1", "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / FOLDER)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [0, 500, 990]
