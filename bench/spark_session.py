"""The session that a measurement runs in, and the sink that it writes to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from logicalrep_pipeline.spark import session


def to_noop(frame: Any) -> Callable[[], None]:
    """What reads all of a frame and writes it nowhere."""
    return lambda: frame.write.format("noop").mode("overwrite").save()


@contextmanager
def quiet_session(master: str) -> Iterator[Any]:
    """A session that logs nothing."""
    spark = session(master, **{"spark.driver.memory": "2g"})
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()
