"""The actions of a Delta table's log: written for a table and its files, and read as data files.

Source: "Actions" in the Delta Transaction Log Protocol.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Schema

from logicalrep.pipeline.formats.delta.descriptors import descriptor
from logicalrep.pipeline.formats.delta.logged_paths import stored_path
from logicalrep.pipeline.formats.delta.vectors import read_vectors
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, count_rows, is_own_name
from logicalrep.pipeline.storage.statistics import LAST, Statistics, statistics_columns
from logicalrep.pipeline.storage.storage import Storage

Action = Mapping[str, object]
TABLE, LOAD, STOPPED = "logicalrep.table", "logicalrep.load", "logicalrep.stopped"
"""The properties with the table's description, the load that the rows began with, and the stop reason."""
_KEY = "logicalrep.key"
"""The property with the names of the key columns, for readers."""
VECTORS, _TIMES_WITHOUT_ZONE, _CHANGE_FEED = "deletionVectors", "timestampNtz", "changeDataFeed"
"""The features of the Delta protocol that replicate uses."""
_HARMLESS_FOR_READERS = {VECTORS, _TIMES_WITHOUT_ZONE, "vacuumProtocolCheck"}
_HARMLESS = _HARMLESS_FOR_READERS | {
    "allowColumnDefaults",
    "appendOnly",
    _CHANGE_FEED,
    "checkConstraints",
    "domainMetadata",
    "generatedColumns",
    "identityColumns",
    "invariants",
}
"""The features that do not concern the rows and files of a table with the schema that replicate wrote."""
_FEATURES_OF_VERSIONS = {3: {"checkConstraints"}, 4: {"checkConstraints", "changeDataFeed", "generatedColumns"}}
"""The features of old versions of the protocol for writers, beside `appendOnly` and `invariants`."""
_CONSTRAINT = "delta.constraints."
"""The start of the names of properties that forbid rows which the server may have."""
_WRITES_VECTORS, WRITES_FEED = "delta.enableDeletionVectors", "delta.enableChangeDataFeed"


def retention_properties(hours: float) -> dict[str, str]:
    duration = f"interval {int(hours * 3600)} seconds"
    return {"delta.deletedFileRetentionDuration": duration, "delta.logRetentionDuration": duration}


def features(table: TableSpec) -> set[str]:
    """Return the features of the Delta protocol that a table's files need."""
    return {
        *([VECTORS] if table.marks_rows else []),
        *([_TIMES_WITHOUT_ZONE] if _has_ntz_columns(table) else []),
        *([_CHANGE_FEED] if table.has_change_feed else []),
    }


def protocol(table: TableSpec, other: Collection[str] = ()) -> Action:
    """Return the lowest protocol that supports a table and `other` features."""
    needed = features(table).union(other)
    if not needed:
        return {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    for_readers = needed & _HARMLESS_FOR_READERS
    readers = {"minReaderVersion": 3, "readerFeatures": sorted(for_readers)} if for_readers else {"minReaderVersion": 1}
    return {"protocol": {**readers, "minWriterVersion": 7, "writerFeatures": sorted(needed)}}


def unsupported_features(reader: DeltaTable) -> list[str]:
    protocol = reader.protocol()
    if protocol.min_reader_version in (1, 3):
        return sorted(set(protocol.reader_features or ()) - _HARMLESS_FOR_READERS)
    return [f"version {protocol.min_reader_version} of the protocol"]


def other_features(reader: DeltaTable, table: TableSpec) -> set[str]:
    """Return the features that other programs gave to a table, beside the features that its files need."""
    protocol = reader.protocol()
    of_version = _FEATURES_OF_VERSIONS.get(protocol.min_writer_version, set())
    return of_version.union(protocol.writer_features or ()) - features(table)


def _has_ntz_columns(table: TableSpec) -> bool:
    return any(_has_ntz(field.type) for field in table.stored)


def _has_ntz(type_: pa.DataType) -> bool:
    if pa.types.is_timestamp(type_):
        return type_.tz is None
    return any(_has_ntz(type_.field(number).type) for number in range(type_.num_fields))


def metadata(table: TableSpec, id_: object, properties: Mapping[str, str], at: int) -> Action:
    """Return the metadata of a table: columns, comments, and properties including the description.

    Args:
        table: the description.
        id_: the Delta table's id, which never changes.
        properties: further properties.
        at: the time, in milliseconds since 1970.
    """
    own = ("delta.dataSkipping", _WRITES_VECTORS, _KEY)
    configuration = {name: value for name, value in properties.items() if not name.startswith(own)}
    if table.marks_rows:
        configuration[_WRITES_VECTORS] = "true"
    if table.has_change_feed:
        configuration[WRITES_FEED] = "true"
    if table.key is not None:
        configuration[_KEY] = json.dumps(table.key_names, ensure_ascii=False)
    return {
        "metaData": {
            "id": str(id_),
            **({} if table.comment is None else {"description": table.comment}),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema_string(table),
            "partitionColumns": [partition.name for partition in table.file_partitions],
            "configuration": {**configuration, **_statistics_properties(table), TABLE: table.to_json()},
            "createdTime": at,
        }
    }


def is_same_table(action: Mapping[str, Any], table: TableSpec, load: str) -> bool:
    """Return whether metadata, or a protocol, that another program wrote fits a table as replicate wrote it.

    Comments and properties of other programs may differ.
    """
    if "protocol" in action:
        return _is_harmless_protocol(action["protocol"], features(table))
    content, expected = action["metaData"], schema_string(table)
    properties = content["configuration"]
    return (
        (properties.get(TABLE), properties.get(LOAD)) == (table.to_json(), load)
        and _without_comments(json.loads(content["schemaString"])) == _without_comments(json.loads(expected))
        and content["partitionColumns"] == [partition.name for partition in table.file_partitions]
        and content["format"]["provider"] == "parquet"
        and not any(name.startswith(_CONSTRAINT) for name in properties)
    )


def _is_harmless_protocol(content: Mapping[str, Any], needed: set[str]) -> bool:
    readers, writers = (set(content.get(name) or ()) for name in ("readerFeatures", "writerFeatures"))
    needed_by_readers = needed & _HARMLESS_FOR_READERS
    is_for_readers = content["minReaderVersion"] == 3 or (content["minReaderVersion"] == 1 and not needed_by_readers)
    is_for_writers = content["minWriterVersion"] == 7 or (2 <= content["minWriterVersion"] <= 4 and not needed)
    has_features = needed_by_readers <= readers <= _HARMLESS_FOR_READERS and needed <= writers <= _HARMLESS
    return is_for_readers and is_for_writers and has_features


def _without_comments(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: _without_comments(value) for name, value in schema.items() if name != "comment"}
    return [_without_comments(value) for value in schema] if isinstance(schema, list) else schema


def other_properties(reader: DeltaTable) -> dict[str, str]:
    """Return the properties of other programs, without properties of Delta that need another protocol."""
    present = {*(reader.protocol().reader_features or ()), *(reader.protocol().writer_features or ())}
    is_same = present <= {VECTORS, _TIMES_WITHOUT_ZONE, _CHANGE_FEED} and reader.protocol().min_writer_version in (2, 7)
    other_prefixes = ("logicalrep.", _CONSTRAINT) if is_same else ("logicalrep.", "delta.")
    return {
        name: value for name, value in reader.metadata().configuration.items() if not name.startswith(other_prefixes)
    }


def schema_string(table: TableSpec) -> str:
    """Return the columns of a table, with their comments, as the JSON of the metadata's `schemaString`."""
    own = [partition.own_field for partition in table.file_partitions if partition.own_field is not None]
    text = Schema.from_arrow(pa.schema([*table.stored, *own])).to_json()
    if not (comments := table.column_comments):
        return text
    schema = json.loads(text)
    for field in schema["fields"]:
        if field["name"] in comments:
            field["metadata"]["comment"] = comments[field["name"]]
    return json.dumps(schema, ensure_ascii=False)


def _statistics_properties(table: TableSpec) -> dict[str, str]:
    """Return the properties that name the columns with bounds to all readers and writers of a table.

    Writers refuse a table whose property names a partition column.
    """
    partitions = {partition.name for partition in table.file_partitions}
    columns = [name for name in statistics_columns(table.stored) if name not in partitions]
    if not columns:
        return {"delta.dataSkippingNumIndexedCols": "0"}
    return {"delta.dataSkippingStatsColumns": ",".join("`" + name.replace("`", "``") + "`" for name in columns)}


def remove(table: TableSpec, file: DataFile, at: int, *, changes_data: bool) -> Action:
    return {
        "remove": {
            "path": file.logged_path or file.path,
            "deletionTimestamp": at,
            "dataChange": changes_data,
            "extendedFileMetadata": True,
            "partitionValues": _partition_values(table, file),
            "size": file.size,
            **_vector(file),
        }
    }


def add(table: TableSpec, file: DataFile, at: int, *, changes_data: bool) -> Action:
    return {
        "add": {
            "path": file.logged_path or file.path,
            "partitionValues": _partition_values(table, file),
            "size": file.size,
            "modificationTime": at,
            "dataChange": changes_data,
            "stats": stats(file, {partition.name for partition in table.file_partitions}),
            **_vector(file),
        }
    }


def change_file(table: TableSpec, file: DataFile) -> Action:
    """Return the action of a file of the change data feed."""
    return {
        "cdc": {
            "path": file.path,
            "partitionValues": _partition_values(table, file),
            "size": file.size,
            "dataChange": False,
        }
    }


def _partition_values(table: TableSpec, file: DataFile) -> Action:
    return {
        partition.name: partition.logged(value)
        for partition, value in zip(table.file_partitions, file.partition, strict=True)
    }


def _vector(file: DataFile) -> Action:
    return {} if file.vector is None else {"deletionVector": descriptor(file.vector)}


def stats(file: DataFile, partitions: Collection[str] = ()) -> str:
    statistics, content = (
        file.statistics,
        {"numRecords": file.rows, **({} if file.vector is None else {"tightBounds": False})},
    )
    if not statistics.nulls:
        return json.dumps(content)
    # delta-rs misreads escapes of characters beyond U+FFFF.
    bounds = {
        "minValues": {name: _logged(value) for name, value in statistics.least.items() if name not in partitions},
        "maxValues": {name: _logged(value) for name, value in statistics.greatest.items() if name not in partitions},
        "nullCount": {name: count for name, count in statistics.nulls.items() if name not in partitions},
    }
    return json.dumps({**content, **bounds}, ensure_ascii=False)


def _logged(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else value


def read_files(reader: DeltaTable, table: TableSpec, storage: Storage, folder: str) -> Iterator[DataFile]:
    """Yield the files of a table's version; a file is opened if the log lacks its number of rows."""
    has_vectors = VECTORS in (reader.protocol().reader_features or ())
    vectors = read_vectors(storage, folder, reader.version()) if has_vectors else {}
    actions, uri = pa.table(reader.get_add_actions(flatten=True)), storage.uri_of(folder)
    for row in actions.to_pylist():
        least, greatest, nulls = (
            {name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix)}
            for prefix in ("min.", "max.", "null_count.")
        )
        path = stored_path(row["path"], uri)
        is_own = is_own_name(path)
        if not is_own:
            # Bounds of other programs may be truncated texts or times.
            least, greatest = (
                {name: bound for name, bound in bounds.items() if type(bound) is int} for bounds in (least, greatest)
            )
        rows = row["num_records"]
        file = DataFile(
            path=path,
            size=row["size_bytes"],
            rows=0 if rows is None else rows,
            statistics=_statistics(
                least={name: _with_zone(value) for name, value in least.items() if value is not None},
                greatest={name: _with_zone(value) for name, value in greatest.items() if value is not None},
                nulls={name: value for name, value in nulls.items() if value is not None},
            ),
            vector=vectors.pop(path, None),
            logged_path=None if row["path"] == path else row["path"],
        )
        file = file if rows is not None else replace(file, rows=count_rows(storage, folder, file))
        if file.vector is not None:
            file.vector.check(file.rows)
        yield _with_partition(file, table, row, is_own=is_own)
    if vectors:
        raise ValueError(f"it has deletion vectors of files that the table does not have: {', '.join(vectors)}")


def _statistics(least: dict[str, Any], greatest: dict[str, Any], nulls: dict[str, int]) -> Statistics:
    """Return a file's statistics, which are empty if an upper bound is doubtful.

    delta-rs misreads some escapes of characters beyond U+FFFF, which other programs write, as lower characters: U+20000
    as U+10000, and U+10FFFF, the end of a truncated text, as U+FFFFF.
    """
    for name, value in greatest.items():
        if isinstance(value, str) and max(value, default="") > "\uffff":
            start, end = value[:-1], value[-1]
            if end not in (LAST, "\U000fffff") or max(start, default="") > "\uffff":
                return Statistics()
            greatest[name] = start + LAST
    return Statistics(least, greatest, nulls)


def _with_partition(file: DataFile, table: TableSpec, row: Mapping[str, Any], *, is_own: bool) -> DataFile:
    if not table.file_partitions:
        return file
    partition = [
        file_partition.value_of(row[f"partition.{file_partition.name}"]) for file_partition in table.file_partitions
    ]
    values = [
        (file_partition.name, file_partition.scalar(value))
        for file_partition, value in zip(table.file_partitions, partition, strict=True)
        if file_partition.transform == "value"
    ]
    least, greatest, nulls = dict(file.statistics.least), dict(file.statistics.greatest), dict(file.statistics.nulls)
    columns = {*statistics_columns(table.stored)}
    if nulls or columns <= {name for name, _ in values}:
        for name, value in values:
            if name in columns:
                nulls[name] = 0 if value.is_valid else file.rows
                least |= {name: value.as_py()} if value.is_valid else {}
                greatest |= {name: value.as_py()} if value.is_valid else {}
    return replace(
        file,
        statistics=Statistics(least, greatest, nulls),
        partition=tuple(partition),
        constants=() if is_own else tuple(values),
    )


def _with_zone(value: object) -> object:
    # Some readers of statistics take times without a zone as UTC.
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo is not None else value
