"""Tables read by another program, also those with deletion vectors and position deletes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import polars
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.table import StaticTable

from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.operate.status import read_identity
from logicalrep.pipeline.storage.storage import Storage


def read_table(uri: str, storage_options: Mapping[str, str] | None = None) -> pa.Table:
    """Return the rows of a table in the format that it has."""
    read = read_iceberg if _newest(uri, storage_options) is not None else read_delta
    return read(uri, storage_options)


def open_stored(destination: Path | str, folder: str) -> StoredTable:
    """Return a table of a destination, in the format that the destination has."""
    storage = Storage(str(destination))
    stored = table_format(storage, read_identity(storage).table_format).open(folder)
    assert stored is not None, folder
    return stored


def read_properties(uri: str) -> Mapping[str, str]:
    """Return the properties of a table in the format that it has."""
    if _newest(uri) is not None:
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
    rows = pa.table(QueryBuilder().register("rows", reader).execute("SELECT * FROM rows").read_all())
    # It has views of texts, which Arrow does not filter.
    plain = [field.with_type(pa.string()) if field.type == pa.string_view() else field for field in rows.schema]
    return rows.cast(pa.schema(plain))


def read_iceberg(uri: str, storage_options: Mapping[str, str] | None = None) -> pa.Table:
    """Return the rows of an Iceberg table without a catalog by pyiceberg; the newest metadata is the last version."""
    metadata = newest_metadata(uri, storage_options)
    return StaticTable.from_metadata(metadata, pyiceberg_options(storage_options)).scan().to_arrow()


def pyiceberg_options(storage_options: Mapping[str, str] | None) -> dict[str, str]:
    """Return the options of an object store as pyiceberg calls them."""
    return (
        {name: storage_options[own] for own, name in _OPTIONS.items() if own in storage_options}
        if storage_options
        else {}
    )


_OPTIONS = {
    "aws_endpoint": "s3.endpoint",
    "aws_access_key_id": "s3.access-key-id",
    "aws_secret_access_key": "s3.secret-access-key",
    "aws_region": "s3.region",
}


def newest_metadata(uri: str, storage_options: Mapping[str, str] | None = None) -> str:
    """Return the last version of an Iceberg table's metadata."""
    path = _newest(uri, storage_options)
    assert path is not None, uri
    return path


def _newest(uri: str, storage_options: Mapping[str, str] | None = None) -> str | None:
    # A table's name may have characters that no destination has.
    root, _, folder = uri.rpartition("/")
    paths = Storage(root, dict(storage_options or {})).list(f"{folder}/metadata")
    names = (path.removeprefix(f"{folder}/") for path in paths)
    numbers = {int(match[1]): name for name in names if (match := _METADATA.fullmatch(name))}
    return f"{uri}/{numbers[max(numbers)]}" if numbers else None


_METADATA = re.compile(r"metadata/v?(\d+)(?:-.*)?\.metadata\.json")
"""The names of metadata files in a folder and with a catalog."""


def load_name(storage: Path, table: str) -> str:
    """Return the name of the load that a table's rows began with."""
    return read_properties(str(storage / table))["logicalrep.load"]
