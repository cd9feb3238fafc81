"""A Delta table as a DataFrame, read by its log and without Delta's connector, which some Sparks lack."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from logicalrep.options.paths import below
from logicalrep.spark.frames.data_files import file_name, read_data_files

_FEATURES = {"timestampNtz", "deletionVectors"}
"""The features of Delta's protocol that `table` can read."""


def table(
    spark: SparkSession, path: str, version: int | None = None, *, storage_options: Mapping[str, str] | None = None
) -> DataFrame:
    """Return the rows of a Delta table that `logicalrep replicate` writes, at one version.

    `deltalake` (from the extra `local` or `replicate`) reads the log in this process; Spark reads the data files.
    The columns are the table's current columns, also for older files, and rows in deletion vectors are left out.
    Vacuuming removes the files of old versions: use the DataFrame soon, and do not hold it for hours.

    Args:
        spark: a session, also of Spark Connect; its executors reach the path.
        path: the table's folder, or its URI for Spark, unescaped.
        version: the version; None for the latest version.
        storage_options: the object store's options for the log, as in `replicate`.

    Raises:
        TableNotFoundError: `deltalake` finds no Delta table at the path.
        MalformedFileError: the log names a file outside of the table's folder.
        ValueError: the table needs a feature that this function does not support.

    Example:
        >>> table(spark, "lake/public/orders").groupBy("customer_id").count().show(5)
    """
    from deltalake import DeltaTable

    log = DeltaTable(path, version=version, storage_options=dict(storage_options or {}))
    protocol = log.protocol()
    features = set(protocol.reader_features or ())
    if protocol.min_reader_version not in (1, 3) or not features <= _FEATURES:
        raise ValueError(
            f"{path} needs features that this reader lacks: {sorted(features - _FEATURES) or 'column mapping'}"
        )
    schema = StructType.fromJson(json.loads(log.schema().to_json()))
    marked = _marked_rows(log.deletion_vectors()) if "deletionVectors" in features else {}
    files = pa.table(log.get_add_actions())["path"].to_pylist()
    # The log has percent-encoded paths, and Spark would read a file elsewhere that the log names.
    paths = {f"{path}/{below(unquote(file))}": marked.get(file_name(file)) for file in files}
    return read_data_files(spark, schema, paths)


def _marked_rows(vectors: pa.RecordBatchReader) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    deleted_rows = {}
    for batch in pa.RecordBatchReader.from_stream(vectors):
        for uri, selection in zip(batch.column("filepath"), batch.column("selection_vector"), strict=True):
            is_live = selection.values.to_numpy(zero_copy_only=False)
            deleted_rows[file_name(uri.as_py())] = np.flatnonzero(~is_live)
    return deleted_rows


__all__ = ["table"]
