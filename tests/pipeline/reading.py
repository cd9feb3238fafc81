"""Tables read by another program, also those with deletion vectors and position deletes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.table import StaticTable


def read_table(uri: str, storage_options: Mapping[str, str] | None = None) -> pa.Table:
    """Return the rows of a table in the format that it has."""
    return read_iceberg(uri) if Path(uri, "metadata").is_dir() else read_delta(uri, storage_options)


def read_properties(uri: str) -> Mapping[str, str]:
    """Return the properties of a table in the format that it has."""
    if Path(uri, "metadata").is_dir():
        return StaticTable.from_metadata(newest_metadata(uri)).properties
    return DeltaTable(uri).metadata().configuration


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


def read_iceberg(uri: str) -> pa.Table:
    """Return the rows of an Iceberg table in a folder by pyiceberg; the newest metadata is the last version."""
    return StaticTable.from_metadata(newest_metadata(uri)).scan().to_arrow()


def newest_metadata(uri: str) -> str:
    """Return the last version of an Iceberg table's metadata."""
    found = Path(uri, "metadata").glob("v*.metadata.json")
    return str(max(found, key=lambda path: int(path.name[1:].partition(".")[0])))
