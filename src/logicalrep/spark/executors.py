"""The check of the executors' Python workers, which need the package as the driver does."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable

from pyspark.sql import SparkSession

from logicalrep.spark.server_connection import log
from logicalrep_runtime.errors import LogicalRepError

_NEEDED = (
    "logicalrep",
    "logicalrep_protocol",
    "logicalrep_runtime",
    "construct",
    "numba",
    "numpy",
    "pandas",
    "psycopg",
    "pyarrow",
)
LONGEST_WAIT = 30.0
"""The longest wait for an executor, in seconds."""
_ROWS = 512
"""The number of rows, which are spread over all parallel tasks of the executors."""
_TAG = "logicalrep-executors"


class ExecutorError(LogicalRepError, RuntimeError):
    """An executor that cannot run the source's tasks; the text names it and the missing packages."""

    code = "PACKAGE_MISSING"


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def check_executors(spark: SparkSession) -> None:
    """Raise ExecutorError if a Python worker of the present executors lacks a package for the source's tasks."""
    add_tag: Callable[[str], None]
    remove_tag: Callable[[str], None]
    cancel: Callable[[str], object]
    if is_connect(spark):
        functions = importlib.import_module("pyspark.sql.connect.functions")
        add_tag, remove_tag, cancel = spark.addTag, spark.removeTag, spark.interruptTag
    elif are_of_this_python(spark):
        return
    else:
        functions = importlib.import_module("pyspark.sql.functions")
        # Such a session's interruptTag reaches only jobs that the same thread began.
        context = spark.sparkContext
        add_tag, remove_tag, cancel = context.addJobTag, context.removeJobTag, context.cancelJobsWithTag
    find_missing = functions.udf(_finder(_NEEDED), "string", useArrow=False)
    answered, waited_enough = threading.Event(), threading.Event()

    def give_up() -> None:
        # Cancelling repeats, because Spark does not cancel tasks that it has yet to begin.
        pause = LONGEST_WAIT
        while not answered.wait(pause):
            waited_enough.set()
            cancel(_TAG)
            pause = 0.5

    add_tag(_TAG)
    threading.Thread(target=give_up, name=_TAG, daemon=True).start()
    try:
        found = {row[0] for row in spark.range(_ROWS).select(find_missing("id")).collect()} - {""}
    except Exception:
        if not waited_enough.is_set():
            raise
        log.warning(
            "no executor answered within %g seconds, so it is unknown whether they have logicalrep", LONGEST_WAIT
        )
        return
    finally:
        answered.set()
        remove_tag(_TAG)
    if found:
        raise ExecutorError(
            f"{'; '.join(sorted(found))}: install logicalrep with its extra 'spark' for the Python of all executors, "
            "or name one that has it in PYSPARK_PYTHON"
        )


def are_of_this_python(spark: SparkSession) -> bool:
    """Return whether the driver is the only executor, and its workers run this interpreter."""
    context = spark.sparkContext
    is_local = str(context.master).partition("[")[0] == "local"
    return is_local and context.pythonExec == sys.executable


def _finder(names: tuple[str, ...]) -> Callable[[object], str]:
    """Return the function that lists a worker's missing modules; it is local, so that it is pickled by value."""

    def find_missing(_: object) -> str:
        import importlib.util
        import socket
        import sys

        missing = [name for name in names if importlib.util.find_spec(name) is None]
        return (
            f"the Python worker {sys.executable} on {socket.gethostname()} has no {', '.join(missing)}"
            if missing
            else ""
        )

    return find_missing
