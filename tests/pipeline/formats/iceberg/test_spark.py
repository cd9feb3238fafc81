"""Iceberg tables read by Spark 4.1 with Iceberg's own runtime, which there is for no later Spark."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather
import pytest

from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.apply.setting_changes import upgrade
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.iceberg.iceberg_tables import IcebergTables
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import NewTable, Position
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.upkeep.merging import merge_next
from logicalrep_runtime.scalars import Lsn
from tests.conftest import ROOT
from tests.pipeline.changes import change_batch, relation
from tests.pipeline.formats.iceberg.tables import delete, insert, lineage, new_table, snapshot_of, update
from tests.pipeline.histories import NAMES, OID, table
from tests.pipeline.reading import read_iceberg
from tests.pipeline.stored import APP, MARKS_IN_SMALL_FILES, MODES, WriteMode
from tests.pipeline.typed_changes import TYPES, change_batches, table_spec

pytestmark = pytest.mark.thorough

_SPARK, _JARS = ROOT / "build/pyspark-4.1", ROOT / "build/jars"
_RUNTIME = "iceberg-spark-runtime-4.1_2.13"
_VERSION = "1.11.0"
_READ = """
import sys
import pyarrow.feather as feather
from pyspark.sql import SparkSession

jar, lake, *queries = sys.argv[1:]
extensions = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
settings = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": lake}
builder = SparkSession.builder.master("local[1]").config("spark.jars", jar).config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.sql.extensions", extensions)
for name, value in settings.items():
    builder = builder.config(f"spark.sql.catalog.lake{name}", value)
spark = builder.getOrCreate()
assert spark.version.startswith("4.1"), spark.version
for number, query in enumerate(queries):
    feather.write_feather(spark.sql(query).toArrow(), f"{lake}/{number}.feather")
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


def read_by_spark(runtime: str, lake: Path, *queries: str) -> list[pa.Table]:
    """Return the rows of queries, in the order of their first column; tables are in the catalog `lake`."""
    subprocess.run(
        [sys.executable, "-c", _READ, runtime, str(lake), *queries],
        env=os.environ | {"PYTHONPATH": str(_SPARK)},
        check=True,
    )
    tables = [feather.read_table(lake / f"{number}.feather") for number in range(len(queries))]
    return [table.sort_by(table.column_names[0]) for table in tables]


@pytest.mark.parametrize("version", [2, 3])
def test_spark_reads_marked_rows_an_old_snapshot_and_every_type(runtime: str, version: int, tmp_path: Path) -> None:
    limits = MARKS_IN_SMALL_FILES
    storage = Storage(str(tmp_path), limits=limits)
    stored = new_table(storage, mode="merge-on-read", version=version)
    insert(stored, 1000, range(100))
    delete(stored, 1001, range(10, 15))
    snapshot_id = str(snapshot_of(tmp_path).snapshot_id)
    delete(stored, 1002, range(20, 25))
    insert(stored, 1003, range(100, 103))
    assert any(file.vector is not None for file in stored.files.values())
    write_every_type(storage, "public/types", version)
    current, earlier, types = read_by_spark(
        runtime,
        tmp_path,
        "SELECT * FROM lake.public.t",
        f"SELECT * FROM lake.public.t VERSION AS OF {snapshot_id}",
        "SELECT * FROM lake.public.types",
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


@pytest.mark.parametrize("mode", MODES)
def test_ten_thousand_updated_rows_keep_their_ids(runtime: str, mode: WriteMode, tmp_path: Path) -> None:
    storage = Storage(str(tmp_path), limits=MARKS_IN_SMALL_FILES)
    stored = new_table(storage, mode=mode)
    insert(stored, 1000, range(12_000))
    # The table of version 2 has position deletes when it is upgraded.
    delete(stored, 1001, range(11_000, 11_010))
    upgrade(stored, SequentialEngine(), replace(stored.table.settings, format_version=3))
    first = snapshot_of(tmp_path).snapshot_id
    update(stored, 1002, range(10_000), "y")
    while merge_next(stored, SequentialEngine()):
        pass
    update(stored, 1003, range(500, 1500), "z")
    columns = "SELECT id, b, _row_id, _last_updated_sequence_number FROM lake.public.t"
    first_rows, last_rows = read_by_spark(runtime, tmp_path, f"{columns} VERSION AS OF {first}", columns)
    assert (first_rows.num_rows, last_rows["id"].to_pylist()) == (11_990, first_rows["id"].to_pylist())
    assert len(set(first_rows["_row_id"].to_pylist())) == 11_990
    assert last_rows["_row_id"].to_pylist() == first_rows["_row_id"].to_pylist()
    numbers = {
        text: set(last_rows.filter(pc.equal(last_rows["b"], text))["_last_updated_sequence_number"].to_pylist())
        for text in ("x", "y", "z")
    }
    assert all(len(of_text) == 1 for of_text in numbers.values())
    assert max(numbers["x"]) < max(numbers["y"]) < max(numbers["z"])
    assert {row["id"]: row["_row_id"] for row in last_rows.to_pylist()} == {
        key: row_id for key, (row_id, _) in lineage(stored).items()
    }


_LOG = "CALL lake.system.create_changelog_view(table => 'public.t', changelog_view => '{}', {})"


def test_the_changelog_of_spark_has_the_changes_of_the_server(runtime: str, tmp_path: Path) -> None:
    """Iceberg 1.11 and 1.12 read no changes of tables with marked rows."""
    storage = Storage(str(tmp_path), limits=Limits(small_file_bytes=1, merged_files=2))
    spec = table(("id",), TableSettings(format="iceberg", format_version=3, append=True))
    described = relation(NAMES, None, oid=OID)
    spec = replace(spec, relation=replace(spec.relation, replica_identity=described.replica_identity))
    tables = IcebergTables.in_folders(storage)
    stored, changes = (
        tables.replace(folder, NewTable(new_spec, [], Position(APP, Lsn(999)), load="x", keep_hours=24), None)
        for folder, new_spec in (("public/t", spec), ("public/c", replace(spec, companion="changes")))
    )
    snapshots, steps = [], [*_steps()]
    for number, step in enumerate(steps):
        for copied in (stored, changes):
            batch = change_batch(described, [{**change, "commit_lsn": 1000 + number} for change in step])
            apply(copied, [batch], Position(APP, Lsn(1000 + number)), SequentialEngine())
        snapshots.append(snapshot_of(tmp_path).snapshot_id)
    while merge_next(stored, SequentialEngine()):
        pass
    assert len({*snapshots, snapshot_of(tmp_path).snapshot_id}) == len(snapshots) + 1
    kinds = "CASE _change_type WHEN 'UPDATE_BEFORE' THEN 'update_preimage' WHEN 'UPDATE_AFTER' THEN 'update_postimage' "
    kinds += "ELSE lower(_change_type) END"
    row = "concat_ws('/', dense_rank() OVER (ORDER BY {}), {}, id, b, big)"
    since = f"options => map('start-snapshot-id', '{snapshots[2]}')"
    _, log, expected, _, net = read_by_spark(
        runtime,
        tmp_path,
        _LOG.format("log", "identifier_columns => array('id')"),
        f"SELECT {row.format('_change_ordinal', kinds)} FROM log",
        f"SELECT {row.format('_commit_version', '_change_type')} FROM lake.public.c",
        _LOG.format("net", f"net_changes => true, {since}"),
        "SELECT concat_ws('/', lower(_change_type), id, b, big) FROM net",
    )
    assert log.column(0).to_pylist() == expected.column(0).to_pylist()
    counts = Counter(text.split("/")[1] for text in log.column(0).to_pylist())
    assert counts == {"insert": 111, "update_preimage": 55, "update_postimage": 55, "delete": 21}
    # Net changes have no updates: Spark refuses identifier columns with them.
    first, last = (
        Counter("/".join((str(row["id"]), row["b"], row["big"])) for row in rows.to_pylist())
        for rows in (
            pa.Table.from_pylist([change["after"] for step in steps[:3] for change in step]),
            read_iceberg(storage.uri_of("public/t")),
        )
    )
    net_changes = [f"delete/{text}" for text in first - last] + [f"insert/{text}" for text in last - first]
    assert net.column(0).to_pylist() == sorted(net_changes)


def _steps() -> Iterator[list[dict[str, Any]]]:
    """Yield the changes of each commit, with old rows as REPLICA IDENTITY FULL sends them."""
    rows: dict[int, dict[str, str | None]] = {}

    def change(op: str, key: int, b: str = "") -> dict[str, Any]:
        old_row = rows.pop(key, None)
        after = None if op == "delete" else {"id": str(key), "b": b, "v": None, "big": f"big {key}"}
        if after is not None:
            rows[key] = after
        return {"op": op, "before": old_row, "after": after}

    # Three files, of which two are merged at the end.
    for start, end in ((0, 30), (30, 60), (60, 100)):
        yield [change("insert", key, "x") for key in range(start, end)]
    yield [change("update", key, "y") for key in range(50)]
    yield [change("delete", key) for key in range(40, 60)]
    yield [change("insert", key, "x") for key in range(200, 210)]
    # A commit of several kinds, and a row that comes back.
    yield [
        *(change("update", key, "z") for key in range(5)),
        change("delete", 99),
        change("insert", 50, "x"),
    ]


def write_every_type(storage: Storage, folder: str, version: int) -> None:
    """Make a table with a column of each type, and rows with all of their values."""
    key = ("id",)
    columns = {"id": (23, -1)} | {f"c{number}": TYPES[kind][:2] for number, kind in enumerate(TYPES)}
    spec = replace(table_spec(columns, key), settings=TableSettings(format="iceberg", format_version=version))
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
