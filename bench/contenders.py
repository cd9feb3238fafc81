"""The contenders that several tables share: construct Structs, `parse` in Python, and pypgoutput if it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from logicalrep import v1

_NAMES = ("Begin", "Commit", "Relation", "Insert", "Update", "Delete")


def structs() -> dict[int, Any]:
    """Return the construct Structs of version 1 by tag."""
    return {ord(getattr(v1, name).tag): getattr(v1, name).struct for name in _NAMES}


def pypgoutput() -> dict[int, Callable[[bytes], object]]:
    """Return pypgoutput's classes by tag; empty if it is not installed."""
    try:
        from pypgoutput import decoders
    except ImportError:
        return {}
    return {ord(getattr(v1, name).tag): getattr(decoders, name) for name in _NAMES}


def in_python(run: Callable[[], object]) -> Callable[[], object]:
    """Return the same without the native reader and writer, whether they are installed or not."""
    module: Any = v1
    native = v1.native_read, v1.native_write

    def without() -> None:
        module.native_read = module.native_write = None
        try:
            run()
        finally:
            module.native_read, module.native_write = native

    return without
