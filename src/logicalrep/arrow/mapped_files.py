"""Files that are mapped into memory, of which only what was read just now counts as memory of this process."""

from __future__ import annotations

import mmap
from typing import IO
from weakref import WeakSet

import pyarrow as pa

_MAPPED: WeakSet[mmap.mmap] = WeakSet()


def map_file(file: IO[bytes], size: int) -> pa.Buffer:
    """Return the first bytes of a file, which may be closed then."""
    if not size:
        return pa.py_buffer(b"")
    mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    _MAPPED.add(mapped)
    return pa.py_buffer(mapped)


def forget_read_pages() -> None:
    """Let go of the pages of mapped files that were read: who reads them again gets them from the file."""
    for mapped in list(_MAPPED):
        mapped.madvise(mmap.MADV_DONTNEED)
