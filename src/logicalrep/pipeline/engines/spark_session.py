"""The Spark session that `logicalrep replicate` runs on."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from logicalrep.pipeline.engines.tasks import JavaEndedError, SparkTasks, Tasks, TasksError, spark_errors
from logicalrep.pipeline.errors import Ended
from logicalrep.pipeline.state.state import StateError
from logicalrep.pipeline.storage.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL = "local[*,4]"
"""All cores; a task whose worker has ended is tried again."""
_SETTINGS = {
    # A load's tasks must not keep those of a batch waiting.
    "spark.scheduler.mode": "FAIR",
    # Files are read and written by Python; Java only passes tasks on.
    "spark.driver.memory": "1g",
}
_CHECK_AGAIN = 0.1
"""The longest time until the start of Spark sees that it is to end, in seconds."""


@contextmanager
def start_spark_tasks(storage: Storage, stop: threading.Event) -> Iterator[Tasks]:
    """Yield a runner on the active session, on that of `spark-submit`, or on a new local one, which ends with it.

    Raises:
        StateError: the destination is a local folder, and the executors elsewhere would write into folders of their
            own.
        TasksError: Spark does not start.
        JavaEndedError: the Java of the local session has ended; another call starts another one.
        Ended: `stop` was set before Spark had started.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from logicalrep.spark.java import forget, quiet_end

    is_ours = False
    with spark_errors("Spark does not start"):
        spark = SparkSession.getActiveSession()
        is_there = SparkContext._active_spark_context is not None or "PYSPARK_GATEWAY_PORT" in os.environ
        if spark is None and is_there:
            spark = SparkSession.builder.getOrCreate()
        if spark is None:
            spark, is_ours = _start_session(stop), True
        master = str(spark.sparkContext.master)
    with quiet_end():
        try:
            if storage.is_local and not master.startswith("local"):
                raise StateError(
                    f"{storage.uri} is a folder, which the executors of {master} do not share: name an object store",
                    code="DESTINATION_NOT_SHARED",
                )
            yield SparkTasks(spark)
        except JavaEndedError as error:
            if not is_ours:
                # The session belongs to the program, which has to make another one.
                raise TasksError(error.description) from error
            forget()
            raise
        finally:
            if is_ours:
                with suppress(Exception):  # Java may have ended, which the tasks have told.
                    spark.stop()


def _start_session(stop: threading.Event) -> SparkSession:
    """Return a new local session. Raises Ended as soon as `stop` is set, however long the start takes."""
    from logicalrep.spark.java import launch_apart
    from logicalrep.spark.sessions import start_session

    made: Future[SparkSession] = Future()

    def start() -> None:
        try:
            made.set_result(start_session(_LOCAL, _SETTINGS, launch_apart))
        except BaseException as error:
            made.set_exception(error)

    # PySpark started by the main thread would take over its handling of Ctrl-C.
    threading.Thread(target=start, name="logicalrep-spark", daemon=True).start()
    while not made.done():
        if stop.wait(_CHECK_AGAIN):
            raise Ended
    return made.result()
