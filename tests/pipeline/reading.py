"""Delta tables read by another program, also those with deletion vectors."""

from __future__ import annotations

from collections.abc import Mapping

import polars
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder


def read_delta(uri: str, storage_options: Mapping[str, str] | None = None, *, version: int | None = None) -> pa.Table:
    """Return the rows of a Delta table by delta-rs, whose engine for queries alone reads deletion vectors.

    That engine keeps Python's lock, and so an object store in this process from answering: Polars reads there.
    """
    reader = DeltaTable(uri, version=version, storage_options=dict(storage_options or {}))
    if "deletionVectors" not in (reader.protocol().reader_features or ()):
        return reader.to_pyarrow_table()
    if storage_options:
        return polars.read_delta(uri, version=version, storage_options=dict(storage_options)).to_arrow()
    return pa.table(QueryBuilder().register("rows", reader).execute("SELECT * FROM rows").read_all())
