"""Functions whose arguments are the fields of a dataclass, to declare them once."""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import fields
from typing import Any, ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Settings = TypeVar("_Settings")


def takes(
    settings_class: Callable[_Arguments, _Settings],
) -> Callable[[Callable[[_Settings], None]], Callable[_Arguments, None]]:
    """Return a decorator for functions that take the arguments of a dataclass and receive its instance.

    Type checkers and `help` show the dataclass's arguments; their documentation precedes `Raises:` in the docstring.
    """

    def decorate(function: Callable[[_Settings], None]) -> Callable[_Arguments, None]:
        @functools.wraps(function)
        def call(*args: _Arguments.args, **named: _Arguments.kwargs) -> None:
            function(settings_class(*args, **named))

        signature = inspect.signature(settings_class).replace(return_annotation="None")
        summary, raises, after = (function.__doc__ or "").partition("    Raises:")
        documented = f"{summary}{_documentation(settings_class)}{raises}{after}"
        vars(call).update(__signature__=signature)
        call.__doc__ = documented
        return call

    return decorate


def _documentation(settings_class: Any) -> str:
    lines = ["Args:"]
    for field in fields(settings_class):
        if field.init:
            option = field.metadata.get("option")
            text = field.metadata["doc"] if option is None else option.doc
            text = f"{field.name}: {text}"
            lines += textwrap.wrap(text, 112, initial_indent="    ", subsequent_indent="        ")
    return textwrap.indent("\n".join(lines), "    ") + "\n\n"
