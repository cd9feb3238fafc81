"""Names of columns and partitions in Iceberg tables: names that the format, or its readers, cannot have are changed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest
from pyiceberg.avro.file import AvroFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestEntry
from pyiceberg.table import StaticTable

from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import NewTable, Position
from logicalrep.pipeline.schema.file_partitions import PartitionRule
from logicalrep.pipeline.schema.forms import ADDED_COLUMNS
from logicalrep.pipeline.schema.table_formats import FORMATS
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.data_files import write_rows
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.reading import newest_metadata
from tests.pipeline.stored import APP
from tests.pipeline.typed_changes import table_spec

RESERVED = FORMATS["iceberg"].reserved_columns
_AVRO_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_FEED = {"_change_type"}
"""The names of the change feed that replicate's tables have, although they are reserved: Spark reads them."""


def test_replicates_own_columns_have_no_reserved_name() -> None:
    own = {field.name for fields in ADDED_COLUMNS.values() for field in fields}
    assert own & RESERVED == _FEED


def test_columns_with_reserved_names_and_dots_get_other_names() -> None:
    names = ["id", "_file", "_FILE_2", "_Deleted", "a.b", "a_b", "_change_type", "file"]
    settings = TableSettings(format="iceberg")
    spec = table_spec(dict.fromkeys(names, (23, -1)), ("_file", "a.b"))
    assert replace(spec, settings=TableSettings(format="delta")).names == tuple(names)
    spec = replace(spec, settings=settings)
    assert spec.names == ("id", "_file_3", "_FILE_2", "_Deleted_2", "a_b_2", "a_b", "_change_type_2", "file")
    assert spec.key_names == ("_file_3", "a_b_2")
    # A history, soft deletes and changes add their own columns beside these.
    companions: tuple[Literal["history", "changes"] | None, ...] = (None, "history", "changes")
    for companion in companions:
        whole = replace(spec, companion=companion, settings=replace(settings, deletes="soft"))
        assert len({name.casefold() for name in whole.stored.names}) == len(whole.stored)


@pytest.mark.parametrize("column", ["größe", "a-b", "1", "a.b", "数", "_file", "plain", "🙂"])
@pytest.mark.parametrize("transform", ["value", "bucket"])
def test_names_in_manifests_are_names_of_avro(tmp_path: Path, column: str, transform: Any) -> None:
    settings = TableSettings(format="iceberg", partition_by=(column,))
    spec = replace(table_spec({"id": (23, -1), column: (23, -1)}, ("id",)), settings=settings)
    spec = replace(spec, partitions=(PartitionRule(transform, 2, 4 if transform == "bucket" else 0),))
    storage, stored_name = Storage(str(tmp_path)), spec.names[1]
    rows = pa.table([pa.array([1, 2], pa.int32()), pa.array([7, 7], pa.int32())], schema=spec.stored)
    files = write_rows(storage, "public/t", spec.stored, rows, spec.file_partitions)
    new = NewTable(spec, files, Position(APP, Lsn(1)), load="x", keep_hours=24)
    tables = table_format(storage, "iceberg")
    stored = tables.replace("public/t", new, None)
    (path,) = (tmp_path / "public/t/metadata").glob("*-m.avro")
    header = AvroFile[ManifestEntry](PyArrowFileIO().new_input(str(path)))
    with header:
        names = set(_names_in(json.loads(header.header.meta["avro.schema"])))
    assert all(_AVRO_NAME.fullmatch(name) for name in names), names
    reader = StaticTable.from_metadata(newest_metadata(str(tmp_path / "public/t")))
    (field,) = reader.spec().fields
    assert field.name in names
    assert reader.scan(row_filter=f'"{stored_name}" = 7').to_arrow().num_rows == 2
    reopened = tables.open("public/t")
    assert reopened is not None
    assert reopened.files == stored.files


def _names_in(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("name"), str):
            yield schema["name"]
        for value in schema.values():
            yield from _names_in(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _names_in(value)
