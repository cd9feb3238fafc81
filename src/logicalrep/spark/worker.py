"""Support for Python workers: readers whose tasks start fast, and a clear report of a missing package."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import TypeVar

from pyspark import cloudpickle

from logicalrep_runtime.errors import LogicalRepError

_Batch = TypeVar("_Batch")

_LONGEST_SEGMENT = 1 << 16
_modules = 0


class PickledForWorkers:
    """Base class of objects that Spark pickles for its workers: a missing package is reported in one sentence."""

    def __reduce__(self) -> tuple[Callable[[bytes], object], tuple[bytes]]:
        return _loading(), (cloudpickle.dumps((type(self), self.__dict__)),)  # type: ignore[no-untyped-call]


def _loading() -> Callable[[bytes], object]:
    """Return the function that unpickles an object; the function is local, so that it is pickled by value."""

    def load(data: bytes) -> object:
        import pickle
        import socket
        import sys

        try:
            kind, state = pickle.loads(data)
        except ImportError as error:
            raise RuntimeError(
                f"[PACKAGE_MISSING] the Python worker {sys.executable} on {socket.gethostname()} cannot import the "
                f"source ({error}): install logicalrep with its extra 'spark' for all executors' Python, or set "
                "PYSPARK_PYTHON to a Python that has it"
            ) from None
        instance = object.__new__(kind)
        instance.__dict__.update(state)
        return instance

    return load


class PromptReader(PickledForWorkers):
    """A reader with a pickle longer than a TCP segment: behind a short one its partition would wait 40 ms for TCP."""

    def __init__(self) -> None:
        self._filling = bytes(_LONGEST_SEGMENT)


def collect_garbage_once(batches: Iterator[_Batch]) -> Iterator[_Batch]:
    """After the last, exempt loaded objects from garbage collection, which costs each task a tenth of a second."""
    try:
        yield from batches
    except LogicalRepError as error:
        # Spark repeats the traceback; the sentence is the whole cause.
        raise error.with_traceback(None) from None
    global _modules
    if len(sys.modules) != _modules:
        gc.collect()
        gc.freeze()
        _modules = len(sys.modules)
