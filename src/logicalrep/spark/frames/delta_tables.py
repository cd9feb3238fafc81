"""A Delta table as a DataFrame, by its log and without Delta's connector, of which there is none for some Sparks."""

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
"""The features of the protocol that are read here."""


def table(
    spark: SparkSession, path: str, version: int | None = None, *, storage_options: Mapping[str, str] | None = None
) -> DataFrame:
    """Return the rows of a Delta table that `logicalrep replicate` keeps, as they are at one version.

    The log is read in this process, by `deltalake` of the extra `local` or `replicate`; Spark reads the data files. The
    columns are those of the table now, whatever older files have, and rows that are marked in deletion vectors are left
    out. Files of old versions go in time: a DataFrame is for use soon after, and not to be kept for hours.

    Args:
        spark: a session, also of Spark Connect; its executors reach the path.
        path: the table's folder, or its URI as Spark takes it, with the characters of names as they are.
        version: the version; None for the last one.
        storage_options: what reading the log of an object store takes, as in `replicate`.

    Raises:
        TableNotFoundError: `deltalake` finds no Delta table there.
        MalformedFileError: the log names a file outside of the table's folder.
        ValueError: the table needs a feature that is not known here.

    Example:
        >>> table(spark, "lake/public/orders").groupBy("customer_id").count().show(5)
    """
    from deltalake import DeltaTable

    log = DeltaTable(path, version=version, storage_options=dict(storage_options or {}))
    protocol = log.protocol()
    features = set(protocol.reader_features or ())
    if protocol.min_reader_version not in (1, 3) or not features <= _FEATURES:
        raise ValueError(f"{path} asks its readers for {sorted(features - _FEATURES) or 'column mapping'}")
    schema = StructType.fromJson(json.loads(log.schema().to_json()))
    marked = _marked_rows(log.deletion_vectors()) if "deletionVectors" in features else {}
    files = pa.table(log.get_add_actions())["path"].to_pylist()
    # The log has percent-encoded paths, and Spark would read a file elsewhere that the log names.
    paths = {f"{path}/{below(unquote(file))}": marked.get(file_name(file)) for file in files}
    return read_data_files(spark, schema, paths)


def _marked_rows(vectors: pa.RecordBatchReader) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Return the numbers of the rows that are there no more, by the names of their files."""
    deleted_rows = {}
    for batch in pa.RecordBatchReader.from_stream(vectors):
        for uri, selection in zip(batch.column("filepath"), batch.column("selection_vector"), strict=True):
            is_live = selection.values.to_numpy(zero_copy_only=False)
            deleted_rows[file_name(uri.as_py())] = np.flatnonzero(~is_live)
    return deleted_rows


__all__ = ["table"]
