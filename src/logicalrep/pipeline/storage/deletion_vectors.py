"""Deletion vectors: the deleted rows of a data file, by their numbers in the file.

The table formats share the bytes of a vector: a magic number, and a 64-bit Roaring bitmap in its portable form. A file
of vectors has the length before each vector and a checksum behind it. Sources: "Deletion Vector Format" in the Delta
Transaction Log Protocol, and `deletion-vector-v1` in Iceberg's Puffin specification. `pyroaring` wraps CRoaring, whose
portable form the formats name.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap64

from logicalrep.pipeline.storage.storage import DamagedError, Storage, below

_MAGIC = struct.pack("<I", 1681511377)
_FRAME = struct.Struct(">I")
"""The length before a vector in a file, and the checksum behind it."""
FRAME_BYTES = 2 * _FRAME.size

_LEAST_SIZE, _ROW_SIZE = 256, 64
"""The most bytes of an empty vector, and the most bytes of a row: the row's own container has 20 bytes."""


@dataclass(frozen=True, slots=True)
class VectorLocation:
    """The location of a vector in a file of the table's folder."""

    path: str
    offset: int
    size: int
    """The bytes of the vector, without its length and its checksum."""
    uri: str = ""
    """The URI of the file in the table's log; empty if the log has the path."""

    @property
    def end(self) -> int:
        """The offset behind the checksum."""
        return self.offset + self.size + FRAME_BYTES


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """The deleted rows of a data file.

    Example:
        >>> vector = DeletionVector.of(np.array([0, 7]))
        >>> vector.count, vector.read(storage, "public/orders")
        (2, array([0, 7]))
    """

    count: int
    """The number of deleted rows."""
    data: bytes = field(default=b"", repr=False)
    """The bytes of the vector; empty if they are in a file."""
    location: VectorLocation | None = None

    @classmethod
    def of(cls, rows: NDArray[np.integer] | BitMap64) -> DeletionVector:
        """Return the vector of rows, by their numbers from 0; a bitmap is optimized in place."""
        bitmap = rows if isinstance(rows, BitMap64) else bitmap_of(rows)
        bitmap.run_optimize()
        return cls(len(bitmap), _MAGIC + bitmap.serialize())

    def check(self, rows: int) -> None:
        """Raise ValueError for a vector that a file of `rows` rows cannot have: few bytes may name billions of rows."""
        size = len(self.data) if self.location is None else self.location.size
        if not 0 <= self.count <= rows or size > _LEAST_SIZE + _ROW_SIZE * self.count:
            raise ValueError(f"a deletion vector has {self.count} rows in {size} bytes, of a file of {rows} rows")

    def read(self, storage: Storage, folder: str) -> NDArray[np.int64]:
        """Return the rows' numbers in ascending order. Takes the arguments, and raises the errors, of `read_bitmap`."""
        return numbers_of(self.read_bitmap(storage, folder))

    def read_bitmap(self, storage: Storage, folder: str) -> BitMap64:
        """Return the rows as a bitmap: to add rows to it costs much less than to sort the numbers of all rows.

        Args:
            storage: the destination.
            folder: the table's folder.

        Raises:
            DamagedError: the file of the vector is missing, or the bytes of the vector changed.
            StorageError: the destination cannot be read.
        """
        path, data = folder, self.data
        if self.location is not None:
            path = below(folder, self.location.path)
            data = _read_framed(storage, path, self.location)
        bitmap = None
        if data.startswith(_MAGIC):
            try:
                bitmap = BitMap64.deserialize(data[len(_MAGIC) :])
            except ValueError:
                bitmap = None
        if bitmap is None or len(bitmap) != self.count:
            raise _damaged(storage, path)
        return bitmap


def bitmap_of(rows: NDArray[np.integer]) -> BitMap64:
    # pyroaring reads an array's memory, and takes each number of other arrays as an object.
    return BitMap64(array("Q", rows.astype(np.uint64).tobytes()))


def numbers_of(rows: BitMap64) -> NDArray[np.int64]:
    """Return the rows' numbers in ascending order."""
    return np.frombuffer(rows.to_array(), np.uint64).astype(np.int64)


def framed(data: bytes) -> bytes:
    """Return a vector's bytes with their length and their checksum, for a file of vectors."""
    return _FRAME.pack(len(data)) + data + _FRAME.pack(zlib.crc32(data))


def _read_framed(storage: Storage, path: str, location: VectorLocation) -> bytes:
    with storage.open(path, location.end) as file:
        file.seek(location.offset)
        frame = file.read(location.end - location.offset)
    data = frame[_FRAME.size : -_FRAME.size]
    if framed(data) != frame or len(data) != location.size:
        raise _damaged(storage, path)
    return data


def _damaged(storage: Storage, path: str) -> DamagedError:
    return DamagedError(f"{storage.uri_of(path)}: a deletion vector is damaged")
