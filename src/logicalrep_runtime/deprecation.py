"""The warning that a public name is going to be removed: what takes its place, since when, and when it goes.

CONTRIBUTING.md has the rules. A test fails when a release reaches the version in which a name was to go.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def deprecated(
    *, name: str, since: str, removed_in: str, instead: str
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """Mark a function whose every call warns its caller with a DeprecationWarning.

    `name` and `instead` are written as users write them; `removed_in` is at least two minor versions after `since`.

        @deprecated(name="logicalrep.read", since="0.2.0", removed_in="0.4.0", instead="logicalrep.stream")
        def read(dsn: str) -> Transactions: ...
    """
    text = f"{name} is deprecated since {since}, and will be removed in {removed_in}: use {instead}"

    def mark(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        @functools.wraps(function)
        def call(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return function(*arguments, **named)

        return call

    return mark
