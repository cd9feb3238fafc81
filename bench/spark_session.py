"""The session that a measurement runs in, and the sinks that it writes to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from logicalrep.spark import session


def to_noop(frame: Any) -> Callable[[], None]:
    """What reads all of a frame and writes it nowhere."""
    return lambda: frame.write.format("noop").mode("overwrite").save()


def to_parquet(frame: Any, folder: Path) -> Callable[[], None]:
    """What writes all of a frame to a folder, each time in place of what is there."""
    return lambda: frame.write.mode("overwrite").parquet(str(folder))


@contextmanager
def quiet_session(master: str, memory: str = "2g") -> Iterator[Any]:
    """A session that logs nothing, with so much memory for the JVM."""
    spark = session(master, **{"spark.driver.memory": memory})
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()
