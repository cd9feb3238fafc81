"""What makes tasks start sooner in the Python workers that Spark keeps from task to task."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any

_LONGEST_SEGMENT = 1 << 16
_modules = 0


class PromptReader:
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
