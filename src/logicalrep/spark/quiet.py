"""The output of a program that uses Spark: no lines of Java, and the source's error alone after a traceback."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from pyspark.errors import PySparkException


@contextmanager
def quiet_java() -> Iterator[None]:
    """Let a Java that is started in this context write its standard error into a file, also afterwards.

    Python's own standard error is that of before once the context ends. An exception in it shows the file.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with tempfile.TemporaryFile(prefix="logicalrep-spark-") as log:
            os.dup2(log.fileno(), 2)
            try:
                yield
            except BaseException:
                log.seek(0)
                os.write(kept, log.read())
                raise
            finally:
                os.dup2(kept, 2)
    finally:
        os.close(kept)


_OURS = re.compile(r"^(?:logicalrep[\w.]*|RuntimeError): ((?:\[[A-Z_]+\] .*\n?)+)", re.MULTILINE)
"""An error of the project as Python's traceback ends with it; several findings have a line each."""


def sentences(error: BaseException) -> list[str]:
    """Return the sentences of this project's errors, each with its code, from an error of Spark that passes them on.

    Example:
        >>> sentences(query.exception())
        ["[SLOT_MISSING] Replication slot 'spark' does not exist: …"]
    """
    return list(dict.fromkeys(line for text in _OURS.findall(str(error)) for line in text.splitlines()))


def end_with_our_sentence() -> None:
    """Let a program that ends with an error of Spark show the source's own sentence, alone, after the traceback."""
    if not getattr(sys.excepthook, "shows_sentence", False):
        sys.excepthook = _Hook(sys.excepthook)


class _Hook:
    """An excepthook that calls the one before, and adds the sentences."""

    shows_sentence = True

    def __init__(self, before: Callable[..., object]) -> None:
        self._before = before

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        self._before(kind, error, trace)
        if isinstance(error, PySparkException):
            for sentence in sentences(error):
                print(sentence, file=sys.stderr)
