"""Expectations of errors of ours that reach the driver inside of Spark's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.errors import PySparkException


@contextmanager
def fails(code: str, match: str) -> Iterator[pytest.ExceptionInfo[PySparkException]]:
    """Expect an error by its code and a pattern of its text, which is all that Spark passes on from its workers.

    >>> with fails("SLOT_MISSING", "'spark' does not exist"):
    ...     stream.run()
    """
    with pytest.raises(PySparkException, match=rf"\[{code}\](?s:.*?)(?:{match})") as caught:
        yield caught
