"""Iceberg tables read by Spark 4.1 with Iceberg's own runtime, which there is for no later Spark."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pytest

from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import NewTable, Position
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn
from tests.conftest import ROOT
from tests.pipeline.formats.iceberg.tables import delete, insert, new_table, snapshot_of
from tests.pipeline.reading import read_iceberg
from tests.pipeline.stored import APP, MARKS_IN_SMALL_FILES
from tests.pipeline.typed_changes import TYPES, change_batches, table_spec

pytestmark = pytest.mark.thorough

_SPARK, _JARS = ROOT / "build/pyspark-4.1", ROOT / "build/jars"
_RUNTIME = "iceberg-spark-runtime-4.1_2.13"
_VERSION = "1.11.0"
_READ = """
import sys
import pyarrow.feather as feather
from pyspark.sql import SparkSession

jar, lake, *reads = sys.argv[1:]
settings = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": lake}
builder = SparkSession.builder.master("local[1]").config("spark.jars", jar).config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.session.timeZone", "UTC")
for name, value in settings.items():
    builder = builder.config(f"spark.sql.catalog.lake{name}", value)
spark = builder.getOrCreate()
assert spark.version.startswith("4.1"), spark.version
for number, (table, snapshot) in enumerate(zip(reads[::2], reads[1::2])):
    reader = spark.read.option("versionAsOf", snapshot) if snapshot else spark.read
    feather.write_feather(reader.table(f"lake.{table}").toArrow(), f"{lake}/{number}.feather")
"""


@pytest.fixture(scope="module")
def runtime() -> str:
    """Return the path of Iceberg's jar, once it and Spark 4.1 are in build/."""
    jar = _JARS / f"{_RUNTIME}-{_VERSION}.jar"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(_SPARK)]
    fetch = ["mvn", "-q", "-B", "dependency:copy", f"-DoutputDirectory={_JARS}"]
    wanted = {
        _SPARK / "pyspark": [*install, "pyspark==4.1.*", "py4j"],
        jar: [*fetch, f"-Dartifact=org.apache.iceberg:{_RUNTIME}:{_VERSION}"],
    }
    for path, command in wanted.items():
        if not path.exists() and (
            shutil.which(command[0]) is None or subprocess.run(command, check=False, capture_output=True).returncode
        ):
            pytest.skip(f"{path.name} cannot be had here, so that Spark 4.1 does not read Iceberg tables")
    return str(jar)


def read_by_spark(runtime: str, lake: Path, *reads: tuple[str, str]) -> list[pa.Table]:
    """Return the rows of tables, each with the id of a snapshot; an empty one for the last."""
    arguments = [text for read in reads for text in read]
    subprocess.run(
        [sys.executable, "-c", _READ, runtime, str(lake), *arguments],
        env=os.environ | {"PYTHONPATH": str(_SPARK)},
        check=True,
    )
    return [feather.read_table(lake / f"{number}.feather").sort_by("id") for number in range(len(reads))]


def test_spark_reads_marked_rows_an_old_snapshot_and_every_type(runtime: str, tmp_path: Path) -> None:
    limits = MARKS_IN_SMALL_FILES
    storage = Storage(str(tmp_path), limits=limits)
    stored = new_table(storage, mode="merge-on-read")
    insert(stored, 1000, range(100))
    delete(stored, 1001, range(10, 15))
    snapshot_id = str(snapshot_of(tmp_path).snapshot_id)
    delete(stored, 1002, range(20, 25))
    insert(stored, 1003, range(100, 103))
    assert any(file.vector is not None for file in stored.files.values())
    write_every_type(storage, "public/types")
    current, earlier, types = read_by_spark(
        runtime, tmp_path, ("public.t", ""), ("public.t", snapshot_id), ("public.types", "")
    )
    expected = read_iceberg(storage.uri_of("public/t")).sort_by("id")
    assert expected.num_rows == 93
    assert current.to_pylist() == expected.to_pylist()
    assert earlier["id"].to_pylist() == [*range(10), *range(15, 100)]
    expected = read_iceberg(storage.uri_of("public/types")).sort_by("id")
    assert types.column_names == expected.column_names
    for name in expected.column_names:
        # NaN is not equal to itself, and Python has fewer dates.
        column = types[name].cast(expected[name].type).combine_chunks()
        assert column.to_string(window=10) == expected[name].combine_chunks().to_string(window=10), name


def write_every_type(storage: Storage, folder: str) -> None:
    """Make a table with a column of each type, and rows with all of their values."""
    key = ("id",)
    columns = {"id": (23, -1)} | {f"c{number}": TYPES[kind][:2] for number, kind in enumerate(TYPES)}
    spec = replace(table_spec(columns, key), settings=TableSettings(format="iceberg"))
    content = NewTable(spec, [], Position(APP, Lsn(1)), load="x", keep_hours=24)
    stored = table_format(storage, "iceberg").replace(folder, content, None)
    for number in range(7):
        row = {"id": str(number)}
        row |= {f"c{index}": texts[number % len(texts)] for index, (_, _, texts) in enumerate(TYPES.values())}
        apply(
            stored,
            change_batches([("insert", None, row)], 10 + number, key),
            Position(APP, Lsn(10 + number)),
            SequentialEngine(),
        )
