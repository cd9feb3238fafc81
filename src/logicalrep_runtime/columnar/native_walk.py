"""The walk of `logicalrep-native` over a version's messages, if that has one of the same spec."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

from logicalrep_runtime.columnar.plan import Plan
from logicalrep_runtime.native import native_module

_LOG = logging.getLogger("logicalrep")


class NativeWalk(NamedTuple):
    walk: Callable[..., tuple[int, int, int]]
    items: Callable[..., tuple[int, ...]]


@cache
def native_walk(plan: Plan) -> NativeWalk | None:
    """Return the walk that was generated with the plan; None if it is not installed, or is of another spec."""
    module: Any = native_module()
    if module is None:
        if os.environ.get("LOGICALREP_NATIVE") != "0":
            _warn("the module of logicalrep-native is not installed", "install its wheel, or a C compiler to build one")
        return None
    if plan.walk not in module.WALKS:
        _warn(
            "logicalrep-native has no walk over batches of this spec",
            "install the same release of both, or run pip install ./native after a change of spec/",
        )
        return None
    number = module.WALKS.index(plan.walk)
    return NativeWalk(partial(module.walk, number), partial(module.items, number))


@cache
def _warn(cause: str, remedy: str) -> None:
    _LOG.warning("%s: Python reads batches message by message, a sixtieth as fast; %s", cause, remedy)
