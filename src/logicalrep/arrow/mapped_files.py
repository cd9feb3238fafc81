"""Files that are mapped into memory; only recently read pages count as memory of this process."""

from __future__ import annotations

import mmap
import sys
from typing import IO
from weakref import WeakSet

import pyarrow as pa

_MAPPED: WeakSet[mmap.mmap] = WeakSet()


def map_file(file: IO[bytes], size: int) -> pa.Buffer:
    if not size:
        return pa.py_buffer(b"")
    mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    _MAPPED.add(mapped)
    return pa.py_buffer(mapped)


def forget_read_pages() -> None:
    """Release the pages of mapped files that were read; a later read takes them from the file."""
    if sys.platform == "win32":
        # Windows trims the pages of a process itself.
        return
    for mapped in list(_MAPPED):
        mapped.madvise(mmap.MADV_DONTNEED)
