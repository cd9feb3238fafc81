"""The local Spark that a command starts for itself. PySpark is imported late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*,4]"
"""All cores; a task whose worker has ended is tried again."""
SETTINGS = {
    # A load's tasks must not keep those of a batch waiting.
    "spark.scheduler.mode": "FAIR",
    # Files are read and written by Python; Java only passes on where tasks find their items. Spark takes no less.
    "spark.driver.memory": "512m",
}


def start_apart(master: str, settings: Mapping[str, str]) -> SparkSession:
    """Return a new local session, whose Java signals to end do not reach."""
    from logicalrep.spark.java import launch_apart
    from logicalrep.spark.sessions import start_session

    return start_session(master, settings, launch_apart)
