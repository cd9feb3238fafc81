"""Spark's own lines kept off a program's standard error."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


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


__all__ = ["quiet_java"]
