"""Position deletes: files that list deleted rows of data files by path and row number, in tables of version 2.

A table that was upgraded to version 3 keeps them until a deletion vector replaces them. Source: "Position Delete Files"
in the Iceberg Table Spec.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyiceberg.manifest import DataFile as ManifestDataFile
from pyiceberg.manifest import DataFileContent, FileFormat, ManifestEntry
from pyiceberg.typedef import Record

from logicalrep.pipeline.formats.iceberg.manifests import EntryKey, entry_of, key_of
from logicalrep.pipeline.storage.data_files import DataFile
from logicalrep.pipeline.storage.parquet_files import ParquetFile
from logicalrep.pipeline.storage.storage import Storage

_PATH, _POSITION = 2147483546, 2147483545
"""The field ids of the two columns."""
_SCHEMA = pa.schema(
    [
        pa.field("file_path", pa.string(), False, {b"PARQUET:field_id": str(_PATH).encode()}),
        pa.field("pos", pa.int64(), False, {b"PARQUET:field_id": str(_POSITION).encode()}),
    ]
)


def write_deletes(storage: Storage, folder: str, files: Sequence[DataFile]) -> ManifestDataFile:
    rows = {storage.location(f"{folder}/{file.path}"): _numbers(storage, folder, file) for file in files}
    names = sorted(rows)
    paths = pa.array(names).take(pa.array(np.repeat(np.arange(len(names)), [len(rows[uri]) for uri in names])))
    positions = np.concatenate([rows[uri] for uri in names])
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table([paths, positions], schema=_SCHEMA), sink, compression="zstd", write_page_checksum=True)
    data = sink.getvalue().to_pybytes()
    path = f"{folder}/{storage.layout(folder).of_rows(f'deletes-{uuid.uuid4().hex}.parquet')}"
    storage.write(path, data)
    return entry_of(
        content=DataFileContent.POSITION_DELETES,
        file_path=storage.location(path),
        file_format=FileFormat.PARQUET,
        partition=Record(*files[0].partition),
        record_count=len(positions),
        file_size_in_bytes=len(data),
        lower_bounds={_PATH: names[0].encode()},
        upper_bounds={_PATH: names[-1].encode()},
    )


def _numbers(storage: Storage, folder: str, file: DataFile) -> NDArray[np.int64]:
    assert file.vector is not None
    return file.vector.read(storage, folder)


@dataclass(frozen=True)
class Deleted:
    rows: NDArray[np.int64]
    sources: frozenset[EntryKey]
    """The keys of the delete files that together list these rows."""


def read_deletes(
    storage: Storage, entries: Sequence[ManifestEntry], data: Mapping[str, ManifestEntry]
) -> dict[str, Deleted]:
    """Return the deleted rows by the path of the data file.

    Args:
        storage: the destination.
        entries: the entries of delete files.
        data: the entries of the data files, by their paths at the destination.

    Raises:
        MalformedFileError: a delete file has an unsupported kind, or is damaged.
        DamagedError: a delete file is missing.
        StorageError: a delete file cannot be read now.
    """
    deleted: dict[str, Deleted] = {}
    for entry in sorted(entries, key=lambda entry: entry.sequence_number or 0):
        source, key = storage.path_of(entry.data_file.file_path), key_of(entry.data_file)
        for path, positions in _read_positions(storage, source, entry, data).items():
            previous = deleted.get(path, Deleted(np.zeros(0, np.int64), frozenset()))
            all_positions = np.union1d(previous.rows, positions)
            # replicate's last delete file lists all rows of the earlier ones.
            has_all = len(all_positions) == len(positions)
            deleted[path] = Deleted(all_positions, frozenset((key,)) if has_all else previous.sources | {key})
    return deleted


def _read_positions(
    storage: Storage, source: str, entry: ManifestEntry, data: Mapping[str, ManifestEntry]
) -> dict[str, NDArray[np.int64]]:
    """Return the distinct deleted rows in a delete file, in ascending order, by the path of the data file."""
    file, by_path = entry.data_file, dict[str, NDArray[np.int64]]()
    with storage.open(source, file.file_size_in_bytes) as opened, storage.decoding(source):
        if file.content != DataFileContent.POSITION_DELETES or file.file_format != FileFormat.PARQUET:
            raise ValueError(f"it has deletes of another kind, {file.content!r} in {file.file_format}")
        parquet = ParquetFile(opened)
        if parquet.rows != file.record_count:
            raise ValueError(f"it has {parquet.rows} rows, and its manifest says {file.record_count}")
        # Few bytes may have many rows, of which each batch leaves at most the rows of the data files.
        for batch in parquet.batches(["file_path", "pos"]):
            for uri in pc.unique(batch["file_path"]).to_pylist():
                path = storage.path_of(uri)
                target = data.get(path)
                if target is None or (target.sequence_number or 0) > (entry.sequence_number or 0):
                    continue
                positions = batch.filter(pc.equal(batch["file_path"], uri))["pos"].to_numpy()
                if positions.min() < 0 or positions.max() >= target.data_file.record_count:
                    raise ValueError(f"it deletes rows that {path} does not have")
                by_path[path] = np.union1d(by_path.get(path, np.zeros(0, np.int64)), positions)
    return by_path
