"""The local Spark of one command. PySpark is imported late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*,4]"
"""All cores; a task whose worker has ended is retried."""
SETTINGS = {
    # Tasks of loads must not delay tasks of batches.
    "spark.scheduler.mode": "FAIR",
    # Python reads and writes files; Java only passes the locations of items. Spark accepts no less memory.
    "spark.driver.memory": "512m",
}


def start_apart(master: str, settings: Mapping[str, str]) -> SparkSession:
    """Return a new local session, whose Java does not receive this process's signals."""
    from logicalrep.spark.java import launch_apart
    from logicalrep.spark.sessions import start_session

    return start_session(master, settings, launch_apart)
