"""Missing extras of the package, and the command that installs them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec


def installing(extra: str) -> str:
    """Return the instruction that installs an extra: pip takes an installed `logicalrep`, from an index or a clone."""
    return f"run pip install 'logicalrep[{extra}]'"


def find_missing(libraries: Sequence[str]) -> str | None:
    """Return the first library that is not installed; None if all are installed. Libraries are not imported."""
    return next((library for library in libraries if not _is_installed(library)), None)


def _is_installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except (ModuleNotFoundError, ValueError):
        # ValueError: an entry of sys.modules that is None.
        return False
