"""The return of freed memory to the system: allocators retain it, and many processes retain much."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pyarrow as pa


def release_memory() -> None:
    """Return freed memory to the system; call it after work on many bytes, as it takes milliseconds."""
    pa.default_memory_pool().release_unused()
    trim = _trim()
    if trim is not None:
        trim(0)


@contextmanager
def releasing_memory() -> Iterator[None]:
    """Return freed memory to the system when the context ends."""
    try:
        yield
    finally:
        release_memory()


@cache
def _trim() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
