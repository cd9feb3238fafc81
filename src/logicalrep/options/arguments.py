"""Functions whose arguments are the fields of a dataclass, to declare them once."""

from __future__ import annotations

import difflib
import functools
import inspect
import textwrap
from collections.abc import Callable, Collection
from dataclasses import fields
from typing import Any, ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Settings = TypeVar("_Settings")
_Result = TypeVar("_Result")


def takes(
    settings_class: Callable[_Arguments, _Settings],
) -> Callable[[Callable[[_Settings], _Result]], Callable[_Arguments, _Result]]:
    """Return a decorator for functions that take the arguments of a dataclass and receive its instance.

    Type checkers and `help` show the dataclass's arguments; their documentation precedes `Raises:` in the docstring.
    An unknown argument is a TypeError with the function's name and the nearest argument.
    """

    def decorate(function: Callable[[_Settings], _Result]) -> Callable[_Arguments, _Result]:
        signature = inspect.signature(settings_class)

        @functools.wraps(function)
        def call(*args: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
            # Python's tracebacks have the frame of the function that raises, and an error cannot leave it out. IPython
            # and pytest end the traceback at the caller's line.
            __tracebackhide__ = True
            try:
                signature.bind(*args, **named)
            except TypeError as error:
                unknown = next((name for name in named if name not in signature.parameters), None)
                text = str(error) if unknown is None else _unexpected(unknown, signature.parameters)
                raise TypeError(f"{function.__name__}() {text}") from None
            return function(settings_class(*args, **named))

        signature = signature.replace(return_annotation=inspect.signature(function).return_annotation)
        summary, raises, after = (function.__doc__ or "").partition("    Raises:")
        documented = f"{summary}{_documentation(settings_class)}{raises}{after}"
        vars(call).update(__signature__=signature)
        call.__doc__ = documented
        return call

    return decorate


def _unexpected(name: str, names: Collection[str]) -> str:
    near = difflib.get_close_matches(name, list(names), 1)
    return f"got an unexpected keyword argument {name!r}{f'; did you mean {near[0]}?' if near else ''}"


def _documentation(settings_class: Any) -> str:
    lines = ["Args:"]
    for field in fields(settings_class):
        if field.init:
            option = field.metadata.get("option")
            text = field.metadata["doc"] if option is None else option.doc
            text = f"{field.name}: {text}"
            lines += textwrap.wrap(text, 112, initial_indent="    ", subsequent_indent="        ")
    return textwrap.indent("\n".join(lines), "    ") + "\n\n"
