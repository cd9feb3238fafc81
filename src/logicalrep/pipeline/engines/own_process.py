"""The start of a process that runs no code but ours: a command of `logicalrep`, or a worker of the local engine."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec

import pyarrow as pa


def leave_out_pandas() -> None:
    """Let pyarrow decide now that this process has no pandas.

    Before pyarrow converts its first value, it imports pandas once to see whether values may be pandas objects: 0.3
    CPU-seconds and 39 MiB. An explicit `to_pandas()` still imports pandas.
    """
    if "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _NoPandas())
    try:
        pa.array([None])
    finally:
        del sys.meta_path[0]


@contextmanager
def importing() -> Iterator[None]:
    """Import modules without collections of garbage, and exempt what they define from later collections."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


class _NoPandas:
    """An entry of `sys.meta_path` that hides pandas."""

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is left out", name=name)
        return None
