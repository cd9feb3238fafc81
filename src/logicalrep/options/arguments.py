"""Functions whose arguments are the fields of a dataclass, so that each is declared once."""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import fields
from typing import Any, ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Made = TypeVar("_Made")


def takes(
    made: Callable[_Arguments, _Made],
) -> Callable[[Callable[[_Made], None]], Callable[_Arguments, None]]:
    """Return a decorator: the function is called with the arguments of a dataclass, of which it gets an instance.

    Type checkers and `help` see the dataclass's arguments. Their documentation stands before the docstring's errors.

    Example:
        >>> @takes(ReplicateOptions)
        ... def replicate(options: ReplicateOptions) -> None: ...
    """

    def with_arguments(function: Callable[[_Made], None]) -> Callable[_Arguments, None]:
        @functools.wraps(function)
        def call(*args: _Arguments.args, **named: _Arguments.kwargs) -> None:
            function(made(*args, **named))

        signature = inspect.signature(made).replace(return_annotation="None")
        before, raises, after = (function.__doc__ or "").partition("    Raises:")
        documented = f"{before}{_documentation(made)}{raises}{after}"
        vars(call).update(__signature__=signature)
        call.__doc__ = documented
        return call

    return with_arguments


def _documentation(made: Any) -> str:
    """Return the section of a docstring that explains the arguments."""
    lines = ["Args:"]
    for each in fields(made):
        if each.init:
            known = each.metadata.get("option")
            text = each.metadata["doc"] if known is None else known.doc
            text = f"{each.name}: {text}"
            lines += textwrap.wrap(text, 112, initial_indent="    ", subsequent_indent="        ")
    return textwrap.indent("\n".join(lines), "    ") + "\n\n"
