"""The choice between a loop in `logicalrep-native` and the same loop in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from logicalrep_runtime.native import native_module

F = TypeVar("F", bound=Callable[..., Any])

PLAIN: dict[str, Callable[..., Any]] = {}
"""The loops in Python by their names, also where the loops in C are used."""


def native_if_installed(plain: F) -> F:
    """Return the function of this name in `logicalrep-native`, if installed; else the function itself."""
    PLAIN[plain.__name__] = plain
    chosen: F = getattr(native_module(), plain.__name__, plain)
    return chosen
