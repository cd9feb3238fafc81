"""Adapters that let pyiceberg read and write files of a destination, whole and in memory."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream

from logicalrep.pipeline.storage.storage import DamagedError, Storage

ZIPPED = ".gz.metadata.json"
"""The suffix of metadata files that are compressed by gzip."""


def unzipped(data: bytes, most_bytes: int) -> bytes:
    """Return decompressed gzip data. Raises ValueError for damaged data, or for more than `most_bytes`."""
    unpacker = zlib.decompressobj(wbits=31)
    try:
        text = unpacker.decompress(data, most_bytes)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not unpacker.eof:
        raise ValueError(f"its compressed data is truncated, or has more than {most_bytes} bytes")
    return text


class FileToMemory(OutputFile):
    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.data = b""

    def __len__(self) -> int:
        return len(self.data)

    def exists(self) -> bool:
        return False

    def to_input_file(self) -> InputFile:
        return _FileInMemory(self.location, self.data)

    def create(self, overwrite: bool = False) -> OutputStream:
        return _StreamToMemory(self)


class _StreamToMemory(io.BytesIO):
    def __init__(self, file: FileToMemory, write: Callable[[bytes], None] = lambda data: None) -> None:
        super().__init__()
        self._file, self._write = file, write

    def close(self) -> None:
        if not self.closed:
            self._file.data = self.getvalue()
            super().close()
            self._write(self._file.data)


class FileToStorage(FileToMemory):
    def __init__(self, uri: str, storage: Storage, path: str) -> None:
        super().__init__(uri)
        self._storage, self._path = storage, path

    def create(self, overwrite: bool = False) -> OutputStream:
        return _StreamToMemory(self, lambda data: self._storage.write(self._path, data))


class _FileInMemory(InputFile):
    def __init__(self, uri: str, data: bytes) -> None:
        super().__init__(uri)
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def exists(self) -> bool:
        return True

    def open(self, seekable: bool = True) -> InputStream:
        return io.BytesIO(self._data)


class StorageFiles(FileIO):
    """The files of a destination, for reading.

    Raises:
        DamagedError: a file is missing.
        StorageError: a file cannot be read now.
    """

    def __init__(self, storage: Storage) -> None:
        super().__init__()
        self._storage = storage

    def new_input(self, location: str) -> InputFile:
        path = self._storage.path_of(location)
        data = self._storage.read(path, self._storage.limits.json_bytes)
        if data is None:
            raise DamagedError(f"{self._storage.uri_of(path)} does not exist")
        if path.endswith(ZIPPED):
            # pyiceberg would decompress data of any size.
            with self._storage.parsing(path):
                unzipped(data, self._storage.limits.json_bytes)
        return _FileInMemory(location, data)

    def new_output(self, location: str) -> OutputFile:
        return FileToMemory(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        raise NotImplementedError
