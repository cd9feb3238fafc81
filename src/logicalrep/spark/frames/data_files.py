"""Data files of one table as a DataFrame, without deleted rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, col
from pyspark.sql.types import StructType

_NAME, _NUMBER = "_logicalrep_file", "_logicalrep_row"


def read_data_files(
    spark: SparkSession, schema: StructType, files: Mapping[str, NDArray[np.integer] | None]
) -> DataFrame:
    """Return the rows of Parquet files; `files` has the numbers of deleted rows by unescaped path or URI."""
    whole = [_pattern(path) for path, deleted_rows in files.items() if deleted_rows is None]
    marked = {path: deleted_rows for path, deleted_rows in files.items() if deleted_rows is not None}
    rows = spark.read.schema(schema).parquet(*whole) if whole else spark.createDataFrame([], schema)
    if not marked:
        return rows
    numbered = spark.read.schema(schema).parquet(*map(_pattern, marked))
    numbered = numbered.select("*", col("_metadata.file_name").alias(_NAME), col("_metadata.row_index").alias(_NUMBER))
    names = [file_name(path) for path, deleted_rows in marked.items() for _ in range(len(deleted_rows))]
    numbers = np.concatenate([*marked.values()]).astype(np.int64)
    deleted = spark.createDataFrame(pa.table({_NAME: names, _NUMBER: numbers}))
    remaining = numbered.join(broadcast(deleted), [_NAME, _NUMBER], "left_anti").drop(_NAME, _NUMBER)
    return rows.unionByName(remaining) if whole else remaining


def file_name(path: str) -> str:
    return unquote(PurePosixPath(path).name)


def _pattern(path: str) -> str:
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)
