"""A stored table's rows as a DataFrame of Spark, in any format and without a connector."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import reduce

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.schema.field_ids import field_id, names_in_file
from logicalrep.pipeline.storage.data_files import DataFile
from logicalrep.pipeline.storage.storage import DamagedError, below
from logicalrep.spark.frames.data_files import read_data_files
from logicalrep.spark.frames.events import column

_AT_ONCE = 8
"""The most files whose schemas are read in parallel."""


def read_spark_rows(spark: SparkSession, stored: StoredTable, files: list[DataFile]) -> DataFrame:
    """Return the rows of files of a table. The executors read the rows, the driver the schemas, for earlier names.

    Raises DamagedError, StorageError.
    """
    schema = stored.table.stored
    if all(field_id(field) is None for field in schema):
        return _read(spark, stored, files, _spark_schema(schema))
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="logicalrep-read") as pool:
        columns = list(pool.map(lambda file: _columns(stored, file), files))
    # Equality of schemas ignores field ids.
    groups: dict[str, tuple[pa.Schema, list[DataFile]]] = {}
    for file, file_schema in zip(files, columns, strict=True):
        groups.setdefault(file_schema.to_string(show_field_metadata=True), (file_schema, []))[1].append(file)
    parts = [
        _renamed(_read(spark, stored, schema_files, _spark_schema(file_schema)), file_schema, schema)
        for file_schema, schema_files in groups.values()
    ]
    return reduce(DataFrame.unionAll, parts) if parts else spark.createDataFrame([], _spark_schema(schema))


def _renamed(rows: DataFrame, file_schema: pa.Schema, schema: pa.Schema) -> DataFrame:
    names = names_in_file(file_schema, schema, schema.names)
    columns = [
        (column(names[field.name]) if field.name in names else lit(None)).cast(field.dataType).alias(field.name)
        for field in _spark_schema(schema)
    ]
    return rows.select(*columns)


def _columns(stored: StoredTable, file: DataFile) -> pa.Schema:
    path = below(stored.folder, file.path)
    with stored.storage.open(path, file.size) as opened:
        try:
            file_schema = pq.read_schema(opened)
        except pa.ArrowInvalid as error:
            raise DamagedError(f"{stored.storage.uri_of(path)} is damaged: {error}") from None
    return file_schema.remove_metadata()


def _read(spark: SparkSession, stored: StoredTable, files: list[DataFile], schema: StructType) -> DataFrame:
    storage, folder = stored.storage, stored.folder
    deleted_rows = {file.path: None if file.vector is None else file.vector.read(storage, folder) for file in files}
    return read_data_files(
        spark, schema, {storage.location(f"{folder}/{path}"): rows for path, rows in deleted_rows.items()}
    )


def _spark_schema(schema: pa.Schema) -> StructType:
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)
