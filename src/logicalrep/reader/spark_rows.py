"""A stored table's rows as a DataFrame of Spark, in whatever format it is stored, and without a connector for it."""

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
"""The most files whose columns are looked up at the same time."""


def read_spark_rows(spark: SparkSession, stored: StoredTable) -> DataFrame:
    """Return the rows of a table, which Spark's executors read from its files.

    Columns with field ids may be called otherwise in older files, so that the end of each file is read here.

    Raises:
        DamagedError: a file is not there any more, or is damaged.
        StorageError: one cannot be read now.
    """
    schema, files = stored.table.stored, list(stored.files.values())
    if all(field_id(field) is None for field in schema):
        return _read(spark, stored, files, _spark_schema(schema))
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="logicalrep-read") as pool:
        columns = list(pool.map(lambda file: _columns(stored, file), files))
    # Two schemas are equal whatever field ids they have.
    groups: dict[str, tuple[pa.Schema, list[DataFile]]] = {}
    for file, there in zip(files, columns, strict=True):
        groups.setdefault(there.to_string(show_field_metadata=True), (there, []))[1].append(file)
    parts = [
        _renamed(_read(spark, stored, same, _spark_schema(there)), there, schema) for there, same in groups.values()
    ]
    return reduce(DataFrame.unionAll, parts) if parts else spark.createDataFrame([], _spark_schema(schema))


def _renamed(rows: DataFrame, there: pa.Schema, schema: pa.Schema) -> DataFrame:
    """Return rows of files in the columns of the table; NULL in one that the files do not have."""
    names = names_in_file(there, schema, schema.names)
    columns = [
        (column(names[wanted.name]) if wanted.name in names else lit(None)).cast(wanted.dataType).alias(wanted.name)
        for wanted in _spark_schema(schema)
    ]
    return rows.select(*columns)


def _columns(stored: StoredTable, file: DataFile) -> pa.Schema:
    """Return the columns of a file, as it calls them."""
    path = below(stored.folder, file.path)
    with stored.storage.open(path, file.size) as opened:
        try:
            there = pq.read_schema(opened)
        except pa.ArrowInvalid as error:
            raise DamagedError(f"{stored.storage.uri_of(path)} is damaged: {error}") from None
    return there.remove_metadata()


def _read(spark: SparkSession, stored: StoredTable, files: list[DataFile], schema: StructType) -> DataFrame:
    storage, folder = stored.storage, stored.folder
    gone = {file.path: None if file.vector is None else file.vector.read(storage, folder) for file in files}
    return read_data_files(spark, schema, {f"{storage.uri}/{folder}/{path}": rows for path, rows in gone.items()})


def _spark_schema(schema: pa.Schema) -> StructType:
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)
