"""Counts of values and nulls in manifests: of every column, as some readers answer IS NULL from them alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table.snapshots import Operation

from logicalrep.pipeline.formats.iceberg.manifests import read_manifests
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import NewTable, Position
from logicalrep.pipeline.schema.field_ids import field_id
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.data_files import write_rows
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.formats.iceberg.tables import snapshot_of
from tests.pipeline.stored import APP
from tests.pipeline.typed_changes import TYPES, table_spec

COLUMNS = {"id": (23, -1)} | {f"n{number}": (23, -1) for number in range(40)}
COLUMNS |= {f"t{number}": TYPES[kind][:2] for number, kind in enumerate(TYPES)}


@pytest.mark.parametrize("first_day", [-800_000, 0], ids=["without bounds", "with bounds"])
def test_every_column_has_counts(tmp_path: Path, first_day: int) -> None:
    spec = replace(table_spec(COLUMNS, ("id",)), settings=TableSettings(format="iceberg"))
    storage, schema = Storage(str(tmp_path)), spec.stored
    day = next(field.name for field in schema if pa.types.is_date(field.type))
    values = {"id": pa.array(range(3)), day: pa.array([first_day, None, 1], pa.int32())}
    values |= {f"n{number}": pa.array([number, None, 1]) for number in range(40)}
    arrays = [
        values[field.name].cast(field.type) if field.name in values else pa.nulls(3, field.type) for field in schema
    ]
    files = write_rows(storage, "public/t", schema, pa.table(arrays, schema=schema))
    new = NewTable(spec, files, Position(APP, Lsn(1)), load="x", keep_hours=24)
    tables = table_format(storage, "iceberg")
    stored = tables.replace("public/t", new, None)
    (manifest,) = read_manifests(storage, storage.path_of(snapshot_of(tmp_path).manifest_list))
    counted = manifest.entries[0].data_file
    nulls = {field_id(field): array.null_count for field, array in zip(schema, arrays, strict=True)}
    assert counted.value_counts == dict.fromkeys(nulls, 3)
    assert counted.null_value_counts == nulls
    # Another process reads the same statistics.
    reopened = tables.open("public/t")
    assert reopened is not None
    assert reopened.files == stored.files
    for table in (stored, reopened):
        (file,) = table.files.values()
        assert {**file.statistics.nulls, **file.statistics.other_nulls} == {
            name: array.null_count for name, array in zip(schema.names, arrays, strict=True)
        }
    # A new column gets the counts of files that lack it, which is one commit that changes no row.
    wider = replace(table_spec(COLUMNS | {"last": (23, -1)}, ("id",)), settings=spec.settings)
    reopened.describe(wider)
    snapshot = snapshot_of(tmp_path)
    assert snapshot.summary is not None
    assert snapshot.summary.operation == Operation.REPLACE
    (manifest,) = read_manifests(storage, storage.path_of(snapshot.manifest_list))
    counted = manifest.entries[0].data_file
    nulls[field_id(wider.stored.field("last"))] = 3
    assert counted.value_counts == dict.fromkeys(nulls, 3)
    assert counted.null_value_counts == nulls
    assert manifest.entries[0].status == ManifestEntryStatus.EXISTING
