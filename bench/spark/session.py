"""The Spark session of a benchmark, and its sinks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from logicalrep.spark import session
from logicalrep.spark.quiet import silence_java


def to_noop(frame: Any) -> Callable[[], None]:
    """Return a function that reads a whole frame and drops it."""
    return lambda: frame.write.format("noop").mode("overwrite").save()


def to_parquet(frame: Any, folder: Path) -> Callable[[], None]:
    """Return a function that writes a whole frame to a folder, replacing its contents."""
    return lambda: frame.write.mode("overwrite").parquet(str(folder))


@contextmanager
def start_quiet_session(master: str, memory: str = "2g") -> Iterator[Any]:
    """Yield a session that logs nothing, and reports all batches; `memory` is the JVM's."""
    settings = {"spark.driver.memory": memory, "spark.sql.streaming.numRecentProgressUpdates": "100000"}
    # pip compiles what it installs; a folder of sources would cost each of Spark's Python processes a second.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Its Python processes write a line for each batch.
    with silence_java():
        spark = session(master, **settings)
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()
