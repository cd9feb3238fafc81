"""Extras of the package that are not installed, and the command that installs them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec


def installing(extra: str) -> str:
    """Return what installs an extra, in words: nothing is in an index of packages yet.

    Example:
        >>> installing("iceberg")
        "run pip install '.[iceberg]' in a clone of logicalrep"
    """
    return f"run pip install '.[{extra}]' in a clone of logicalrep"


def find_missing(libraries: Sequence[str]) -> str | None:
    """Return the first of some libraries that is not installed; None if all are. They are not imported."""
    return next((library for library in libraries if not _is_installed(library)), None)


def _is_installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:
        return False
