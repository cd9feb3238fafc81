"""The output of a program that uses Spark: no lines of Java, and the source's error alone after a traceback."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import pyspark
from pyspark.errors import PySparkException


@contextmanager
def silence_java() -> Iterator[None]:
    """Send the standard error of a Java that starts here to a file, for good; an exception in the context shows it."""
    sys.stderr.flush()
    standard_error = os.dup(2)
    try:
        with tempfile.TemporaryFile(prefix="logicalrep-spark-") as log:
            os.dup2(log.fileno(), 2)
            try:
                yield
            except BaseException:
                log.seek(0)
                os.write(standard_error, log.read())
                raise
            finally:
                os.dup2(standard_error, 2)
    finally:
        os.close(standard_error)


_PYSPARK = Path(pyspark.__file__).parent
_OURS = re.compile(r"^(?:logicalrep[\w.]*|RuntimeError): ((?:\[[A-Z_]+\] .*\n?)+)", re.MULTILINE)
"""An error of the project at the end of Python's traceback; several findings have a line each."""


def sentences(error: BaseException) -> list[str]:
    """Return the sentences, with codes, of this project's errors from an error that Spark passes on."""
    return list(dict.fromkeys(line for text in _OURS.findall(str(error)) for line in text.splitlines()))


def is_python_mismatch(error: BaseException) -> bool:
    """Return whether an error of Spark reports a worker's other version of Python, which comes as the worker's text."""
    return "PYTHON_VERSION_MISMATCH" in str(error)


def install_error_hooks() -> None:
    """Let a program or notebook that ends with an error of this project show its own lines and the error alone.

    Ctrl-C while Spark works shows the program's own lines too, without the lines of PySpark. Other handlers of
    exceptions get the exception unchanged, and the error's sentence follows.
    """
    if not isinstance(sys.excepthook, _Hook):
        sys.excepthook = _Hook(sys.excepthook)
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((PySparkException, KeyboardInterrupt), _end_of_cell)


class _Hook:
    def __init__(self, previous: Callable[..., object]) -> None:
        self._previous = previous

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        lines = sentences(error) if isinstance(error, PySparkException) else []
        is_interrupted = isinstance(error, KeyboardInterrupt) and _passes_spark(trace)
        if (lines or is_interrupted) and self._previous is sys.__excepthook__:
            lines = _short_traceback(error, lines, trace)
        else:
            self._previous(kind, error, trace)
        for line in lines:
            print(line, file=sys.stderr)


def _end_of_cell(
    shell: Any, kind: type[BaseException], error: Any, trace: TracebackType, tb_offset: int | None = None
) -> None:
    lines = sentences(error)
    if lines or (isinstance(error, KeyboardInterrupt) and _passes_spark(trace)):
        # IPython asks an exception for its text in this way.
        error._render_traceback_ = lambda: _short_traceback(error, lines, trace)
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def _short_traceback(error: BaseException, errors: list[str], trace: TracebackType | None) -> list[str]:
    own = []
    for frame in traceback.extract_tb(trace):
        if _is_of_spark(frame):
            break
        if "IPython" not in Path(frame.filename).parts:
            own.append(frame)
    lines = "".join(traceback.format_list(own)).splitlines()
    if isinstance(error, KeyboardInterrupt):
        last_line = "KeyboardInterrupt: interrupted while Spark worked"
    else:
        last_line = f"{type(error).__module__}.{type(error).__qualname__}: Spark's log has the whole text"
    return ["Traceback (most recent call last):", *lines, last_line, *errors]


def _passes_spark(trace: TracebackType | None) -> bool:
    return any(map(_is_of_spark, traceback.extract_tb(trace)))


def _is_of_spark(frame: traceback.FrameSummary) -> bool:
    path = Path(frame.filename)
    return path.is_relative_to(_PYSPARK) or "py4j" in path.parts
