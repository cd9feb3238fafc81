"""The session that a measurement runs in, and the sinks that it writes to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from logicalrep_pipeline.spark import session


def to_noop(frame: Any) -> Callable[[], None]:
    """What reads all of a frame and writes it nowhere."""
    return lambda: frame.write.format("noop").mode("overwrite").save()


def to_parquet(frame: Any, folder: Path) -> Callable[[], None]:
    """What writes all of a frame to a folder, each time in place of what is there."""
    return lambda: frame.write.mode("overwrite").parquet(str(folder))


@contextmanager
def quiet_session(master: str) -> Iterator[Any]:
    """A session that logs nothing."""
    spark = session(master, **{"spark.driver.memory": "2g"})
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()
