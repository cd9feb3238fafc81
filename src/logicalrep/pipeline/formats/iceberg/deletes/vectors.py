"""Deletion vectors in Puffin files, which mark deleted rows in tables of version 3: at most one for each data file.

pyiceberg has models of a Puffin file's footer, and writes no such files. Sources: "Deletion Vectors" in the Iceberg
Table Spec, and the Puffin Spec.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyiceberg.manifest import DataFile as ManifestDataFile
from pyiceberg.manifest import DataFileContent, FileFormat, ManifestEntry
from pyiceberg.table.puffin import MAGIC_BYTES, Footer, PuffinBlobMetadata
from pyiceberg.typedef import Record

from logicalrep.pipeline.formats.iceberg.manifests import entry_of, optional_value
from logicalrep.pipeline.storage.data_files import DataFile
from logicalrep.pipeline.storage.deletion_vectors import FRAME_BYTES, DeletionVector, VectorLocation, framed
from logicalrep.pipeline.storage.storage import Storage

_ROW_NUMBER = 2147483645
"""The field id of the column `_pos`."""
_UNKNOWN = -1
"""The snapshot and its sequence number in a Puffin file, which is written before the commit."""
_FOOTER_END = struct.Struct("<iI")
"""The size of the footer's JSON, and the flags of a footer that is not compressed."""


def write_vectors(storage: Storage, folder: str, files: Sequence[DataFile]) -> list[tuple[DataFile, ManifestDataFile]]:
    """Write the vectors of files into one durable Puffin file; return the files with the vectors' locations, and the
    vectors' entries for manifests."""
    path = storage.layout(folder).of_rows(f"deletes-{uuid.uuid4().hex}.puffin")
    data, blobs, placed = MAGIC_BYTES, list[PuffinBlobMetadata](), list[DataFile]()
    for file in files:
        vector = _in_memory(storage, folder, file)
        location = VectorLocation(path, len(data), len(vector.data))
        placed.append(replace(file, vector=DeletionVector(vector.count, location=location)))
        blob = framed(vector.data)
        blobs.append(_blob(storage.location(f"{folder}/{file.path}"), location, vector.count, len(blob)))
        data += blob
    footer = Footer(blobs=blobs, properties={"created-by": "logicalrep"}).model_dump_json().encode()
    data += MAGIC_BYTES + footer + _FOOTER_END.pack(len(footer), 0) + MAGIC_BYTES
    storage.write(f"{folder}/{path}", data)
    return [(file, _manifest_file(storage, folder, file, len(data))) for file in placed]


def _in_memory(storage: Storage, folder: str, file: DataFile) -> DeletionVector:
    assert file.vector is not None
    if file.vector.location is None:
        return file.vector
    return DeletionVector.of(file.vector.read_bitmap(storage, folder))


def _blob(uri: str, location: VectorLocation, count: int, size: int) -> PuffinBlobMetadata:
    return PuffinBlobMetadata.model_validate(
        {
            "type": "deletion-vector-v1",
            "fields": [_ROW_NUMBER],
            "snapshot-id": _UNKNOWN,
            "sequence-number": _UNKNOWN,
            "offset": location.offset,
            "length": size,
            "properties": {"referenced-data-file": uri, "cardinality": str(count)},
        }
    )


def _manifest_file(storage: Storage, folder: str, file: DataFile, size: int) -> ManifestDataFile:
    assert file.vector is not None
    location = file.vector.location
    assert location is not None
    return entry_of(
        content=DataFileContent.POSITION_DELETES,
        file_path=storage.location(f"{folder}/{location.path}"),
        file_format=FileFormat.PUFFIN,
        partition=Record(*file.partition),
        record_count=file.vector.count,
        file_size_in_bytes=size,
        referenced_data_file=storage.location(f"{folder}/{file.path}"),
        content_offset=location.offset,
        content_size_in_bytes=location.size + FRAME_BYTES,
    )


def is_vector(file: ManifestDataFile) -> bool:
    return bool(file.content == DataFileContent.POSITION_DELETES and file.file_format == FileFormat.PUFFIN)


def read_vectors(
    storage: Storage, folder: str, entries: Sequence[ManifestEntry], data: Mapping[str, ManifestEntry]
) -> dict[str, tuple[DeletionVector, ManifestDataFile]]:
    """Return the vectors with their entries, by the path of the data file; their bytes are read when they are needed.

    Args:
        storage: the destination.
        folder: the table's folder.
        entries: the entries of vectors.
        data: the entries of the data files, by their paths at the destination.

    Raises ValueError for an entry that the format does not allow.
    """
    vectors: dict[str, tuple[DeletionVector, ManifestDataFile]] = {}
    for entry in entries:
        file = entry.data_file
        names = ("referenced_data_file", "content_offset", "content_size_in_bytes")
        uri, offset, size = (optional_value(file, name) for name in names)
        source = storage.path_of(file.file_path)
        if uri is None or offset is None or size is None or not source.startswith(f"{folder}/"):
            raise ValueError(f"the deletion vector in {source} has no data file, no place, or is in another folder")
        path = storage.path_of(uri)
        target = data.get(path)
        if target is None or (target.sequence_number or 0) > (entry.sequence_number or 0):
            continue
        if path in vectors:
            raise ValueError(f"{path} has two deletion vectors")
        location = VectorLocation(source.removeprefix(f"{folder}/"), offset, size - FRAME_BYTES)
        vector = DeletionVector(file.record_count, location=location)
        vector.check(target.data_file.record_count)
        vectors[path] = vector, file
    return vectors
