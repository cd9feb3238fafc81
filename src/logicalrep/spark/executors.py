"""The check that the executors' Python workers have the driver's Python, package and libraries."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from pyspark.sql import SparkSession

from logicalrep.spark.quiet import is_python_mismatch
from logicalrep.spark.server_connection import log
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.native import native_module

Extra = Literal["spark", "replicate"]
_OURS = ("logicalrep", "logicalrep_protocol", "logicalrep_runtime", "construct")
_OF_SPARK = ("numpy", "pandas", "psycopg", "pyarrow")
NEEDED: dict[Extra, tuple[str, ...]] = {
    "spark": (*_OURS, *_OF_SPARK),
    "replicate": (*_OURS, *_OF_SPARK, "deltalake", "obstore", "pyroaring", "yaml"),
}
_NATIVE = "logicalrep_native"
LONGEST_WAIT = 30.0
"""Longest wait for an executor, in seconds."""
_ROWS = 512
"""Number of rows of the check, which Spark spreads over all parallel tasks of the executors."""
_TAG = "logicalrep-executors"


class ExecutorError(LogicalRepError, RuntimeError):
    """An executor cannot run tasks; the text names the executor and the missing or different module."""

    code = "PACKAGE_MISSING"


def is_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


def check_executors(spark: SparkSession, extra: Extra = "spark", warn: Callable[[str], object] = log.warning) -> None:
    """Raise ExecutorError if a Python worker of the present executors lacks a library or the driver's versions.

    If no executor answers within `LONGEST_WAIT`, `warn` is called instead.
    """
    add_tag: Callable[[str], None]
    remove_tag: Callable[[str], None]
    cancel: Callable[[str], object]
    if is_connect(spark):
        functions = importlib.import_module("pyspark.sql.connect.functions")
        add_tag, remove_tag, cancel = spark.addTag, spark.removeTag, spark.interruptTag
    elif workers_run_this_python(spark):
        return
    else:
        functions = importlib.import_module("pyspark.sql.functions")
        # Such a session's interruptTag reaches only jobs that the same thread began.
        context = spark.sparkContext
        add_tag, remove_tag, cancel = context.addJobTag, context.removeJobTag, context.cancelJobsWithTag
    names = NEEDED[extra] if native_module() is None else (*NEEDED[extra], _NATIVE)
    find_difference = functions.udf(difference_finder(names, installed_version()), "string", useArrow=False)
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
        differences = {row[0] for row in spark.range(_ROWS).select(find_difference("id")).collect()} - {""}
    except Exception as error:
        if is_python_mismatch(error):
            own = ".".join(map(str, sys.version_info[:2]))
            raise ExecutorError(
                f"the executors have another version of Python than the driver, which has {own}: name a Python {own} "
                "in PYSPARK_PYTHON of the executors, or run the driver with their version",
                code="PYTHON_DIFFERS",
            ) from error
        if not waited_enough.is_set():
            raise
        warn(f"no executor answered within {LONGEST_WAIT:g} seconds, so it is unknown whether they have logicalrep")
        return
    finally:
        answered.set()
        remove_tag(_TAG)
    slow = {difference for difference in differences if difference.endswith(f" has no {_NATIVE}")}
    if slow:
        warn(f"{'; '.join(sorted(slow))}, which the driver has, and is slow without: install the driver's wheel there")
    differences -= slow
    if differences:
        summary = "; ".join(sorted(differences))
        remedy = f"with its extra '{extra}' for all executors' Python, or set PYSPARK_PYTHON to a Python that has it"
        if all(" has logicalrep " in difference for difference in differences):
            raise ExecutorError(f"{summary}: install logicalrep {installed_version()} {remedy}", code="PACKAGE_DIFFERS")
        raise ExecutorError(f"{summary}: install logicalrep {remedy}", code="PACKAGE_MISSING")


def installed_version() -> str:
    """Return the version of the installed package; an empty text if it is imported from a folder of sources."""
    try:
        return version("logicalrep")
    except PackageNotFoundError:
        return ""


def workers_run_this_python(spark: SparkSession) -> bool:
    context = spark.sparkContext
    is_local = str(context.master).partition("[")[0] == "local"
    return is_local and context.pythonExec == sys.executable


def difference_finder(names: tuple[str, ...], driver_version: str) -> Callable[[object], str]:
    """Return the function with which a worker describes how it differs; local, so that it is pickled by value."""

    def find_difference(_: object) -> str:
        import importlib.metadata
        import importlib.util
        import socket
        import sys

        worker = f"the Python worker {sys.executable} on {socket.gethostname()}"
        missing = [name for name in names if importlib.util.find_spec(name) is None]
        if missing:
            return f"{worker} has no {', '.join(missing)}"
        try:
            worker_version = importlib.metadata.version("logicalrep")
        except importlib.metadata.PackageNotFoundError:
            return ""
        if driver_version in ("", worker_version):
            return ""
        return f"{worker} has logicalrep {worker_version}, and the driver {driver_version}"

    return find_difference
