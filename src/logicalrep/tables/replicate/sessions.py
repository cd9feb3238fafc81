"""The Spark session that `logicalrep replicate` runs on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from logicalrep.tables.delta.place import Place
from logicalrep.tables.follow.state import StateError
from logicalrep.tables.tasks import SparkTasks, Tasks, spark_errors

_LOCAL = "local[*,4]"
"""All cores; a task whose worker has ended is tried again."""
_SETTINGS = {
    # A load's tasks must not keep those of a batch waiting.
    "spark.scheduler.mode": "FAIR",
    # Files are read and written by Python; Java only passes tasks on.
    "spark.driver.memory": "1g",
}


@contextmanager
def spark_tasks(place: Place) -> Iterator[Tasks]:
    """Yield a runner on the active session, on that of `spark-submit`, or on a new local one, which ends with it.

    Raises:
        StateError: the place is a local folder, and the executors elsewhere would write into folders of their own.
        TasksError: Spark does not start.
    """
    from pyspark.sql import SparkSession

    from logicalrep.spark.quiet import quiet_java
    from logicalrep.spark.sessions import session

    is_ours = False
    with spark_errors("Spark does not start"):
        spark = SparkSession.getActiveSession()
        if spark is None and "PYSPARK_GATEWAY_PORT" in os.environ:
            spark = SparkSession.builder.getOrCreate()
        if spark is None:
            with quiet_java():
                spark, is_ours = session(_LOCAL, **_SETTINGS), True
        master = str(spark.sparkContext.master)
    try:
        if place.is_local and not master.startswith("local"):
            raise StateError(
                f"{place.uri} is a folder, which the executors of {master} do not share: name an object store",
                code="PLACE_NOT_SHARED",
            )
        yield SparkTasks(spark)
    finally:
        if is_ours:
            with suppress(Exception):  # Java may have ended, which the tasks have told.
                spark.stop()
