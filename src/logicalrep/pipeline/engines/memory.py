"""The memory that a process gives back to the system: allocators keep what is freed, and many processes keep much."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pyarrow as pa


def release_memory() -> None:
    """Give back what this process has freed; to be called after work of many bytes, as it takes milliseconds."""
    pa.default_memory_pool().release_unused()
    trim = _trim()
    if trim is not None:
        trim(0)


@contextmanager
def releasing_memory() -> Iterator[None]:
    """Give back what this process has freed once this context ends, whether by an error or not."""
    try:
        yield
    finally:
        release_memory()


@cache
def _trim() -> Any:
    """Return the C library's function that gives memory back; None if it has none."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
