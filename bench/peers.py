"""What the project is measured beside: its own construct Structs, and pypgoutput where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from logicalrep import v1

_NAMES = ("Begin", "Commit", "Relation", "Insert", "Update", "Delete")


def structs() -> dict[int, Any]:
    """The construct Structs of version 1 by tag."""
    return {ord(getattr(v1, name).tag): getattr(v1, name).struct for name in _NAMES}


def pypgoutput() -> dict[int, Callable[[bytes], object]]:
    """pypgoutput's classes by tag; empty where it is not installed."""
    try:
        from pypgoutput import decoders
    except ImportError:
        return {}
    return {ord(getattr(v1, name).tag): getattr(decoders, name) for name in _NAMES}
