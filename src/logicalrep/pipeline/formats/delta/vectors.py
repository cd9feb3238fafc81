"""The deletion vectors of a Delta table's files: read from the log, and written to the table's folder.

delta-rs reads vectors but does not return a file's descriptor. The removal of a file has to repeat the descriptor, as
path and vector identify a file. Sources: "Deletion Vectors" and "Checkpoints" in the Delta Transaction Log Protocol.
"""

from __future__ import annotations

import io
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from logicalrep.pipeline.formats.delta.descriptors import read_descriptor, vector_path
from logicalrep.pipeline.formats.delta.logged_paths import removed_path, stored_path
from logicalrep.pipeline.formats.delta.removed_files import commit_path
from logicalrep.pipeline.storage.data_files import DataFile
from logicalrep.pipeline.storage.deletion_vectors import DeletionVector, VectorLocation, framed
from logicalrep.pipeline.storage.parquet_files import ParquetFile
from logicalrep.pipeline.storage.storage import DamagedError, Storage

_VERSION = b"\x01"
"""The first byte of a file of vectors."""
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")


def read_vectors(storage: Storage, folder: str, version: int) -> dict[str, DeletionVector]:
    """Return the vectors of a table's version by the paths of the data files.

    Raises:
        MalformedFileError: the log is damaged.
        DamagedError: an entry of the log is missing.
        StorageError: the log cannot be read.
    """
    descriptors: dict[str, Mapping[str, Any] | None] = {}
    uri = storage.uri_of(folder)
    first, checkpoint = _last_checkpoint(storage, folder, version)
    for path in checkpoint:
        with storage.decoding(path):
            file = ParquetFile(io.BytesIO(storage.read(path) or b""))
            rows = file.read(["add.path", "add.deletionVector"])
            for add in rows.column("add").to_pylist():
                if add is not None:
                    descriptors[stored_path(add["path"], uri)] = add.get("deletionVector")
    for number in range(first, version + 1):
        path = commit_path(folder, number)
        data = storage.read(path)
        if data is None:
            raise DamagedError(f"{storage.uri_of(path)} does not exist")
        with storage.parsing(path):
            actions = [json.loads(line) for line in data.splitlines() if line.strip()]
            # A commit that marks more rows of a file removes and adds the file.
            for kind in ("remove", "add"):
                for action in (action[kind] for action in actions if kind in action):
                    if kind == "add":
                        descriptors[stored_path(action["path"], uri)] = action.get("deletionVector")
                    else:
                        descriptors.pop(removed_path(action["path"], uri) or "", None)
    with storage.parsing(f"{folder}/_delta_log"):
        return {path: read_descriptor(fields, uri) for path, fields in descriptors.items() if fields is not None}


def _last_checkpoint(storage: Storage, folder: str, version: int) -> tuple[int, list[str]]:
    parts: dict[tuple[int, int], list[str]] = {}
    for path in storage.list(f"{folder}/_delta_log"):
        match = _CHECKPOINT.fullmatch(path.rpartition("/")[2])
        if match and int(match[1]) <= version:
            parts.setdefault((int(match[1]), int(match[2] or 1)), []).append(path)
    whole = [key for key, paths in parts.items() if len(paths) == key[1]]
    return (max(whole)[0] + 1, sorted(parts[max(whole)])) if whole else (0, [])


def write_vectors(storage: Storage, folder: str, files: Sequence[DataFile]) -> list[DataFile]:
    """Write the vectors of files that no file has to one durable file; return the files with the vectors' locations.

    Delta Kernel 4.0 cannot read vectors in the log itself, which other programs may have written.
    """
    path = vector_path(uuid.uuid4())
    data, placed = _VERSION, []
    for file in files:
        vector = file.vector
        if vector is not None and vector.location is None:
            location = VectorLocation(path, len(data), len(vector.data))
            data += framed(vector.data)
            file = replace(file, vector=DeletionVector(vector.count, location=location))
        placed.append(file)
    if data != _VERSION:
        storage.write(f"{folder}/{path}", data)
    return placed
