"""What readers do for the Python workers that their tasks run in: start soon, and say what is missing there."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

from pyspark import cloudpickle

_LONGEST_SEGMENT = 1 << 16
_modules = 0


class Shipped:
    """What Spark pickles for its workers: where the package is missing, that is said in one sentence."""

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        return _loading(), (cloudpickle.dumps((type(self), self.__dict__)),)  # type: ignore[no-untyped-call]


def _loading() -> Callable[[bytes], Any]:
    """Make what loads it; this is pickled by value, as it is no module's, and needs nothing of ours."""

    def load(data: bytes) -> Any:
        import pickle
        import socket
        import sys

        try:
            kind, state = pickle.loads(data)
        except ImportError as error:
            raise RuntimeError(
                f"[PACKAGE_MISSING] the Python worker {sys.executable} on {socket.gethostname()} cannot import the "
                f"source ({error}): install logicalrep with its extra 'spark' for the Python of all executors, or name "
                "one that has it in PYSPARK_PYTHON"
            ) from None
        made = object.__new__(kind)
        made.__dict__.update(state)
        return made

    return load


class PromptReader(Shipped):
    """A reader that does not keep its partition waiting.

    Spark writes a task's reader to the worker's socket, and then its partition. TCP holds the partition back until the
    reader is acknowledged, and the worker's side acknowledges a short one after 40 ms. What is longer than a segment
    it acknowledges at once.
    """

    def __init__(self) -> None:
        self._filling = bytes(_LONGEST_SEGMENT)


def collected_once(batches: Iterator[Any]) -> Iterator[Any]:
    """The same batches; after the last one, the garbage collector looks for the last time at what is loaded by then.

    Spark's worker collects garbage after each task, and the next one waits for it: a tenth of a second, with all the
    objects that numba and Arrow keep.
    """
    yield from batches
    global _modules
    if len(sys.modules) != _modules:
        gc.collect()
        gc.freeze()
        _modules = len(sys.modules)
