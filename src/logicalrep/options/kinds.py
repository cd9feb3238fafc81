"""The kinds of options: functions that read an option's text, and raise OptionError for an invalid one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from logicalrep.options.listen_address import ListenError, listen_address
from logicalrep.transactions.table_names import TableName, TableNameError, table_names
from logicalrep_runtime.errors import LogicalRepError

OptionTexts = Mapping[str, str]
"""The given options by their names in lower case."""
Reader = Callable[[OptionTexts, str], Any]
"""A function that reads one option from the given ones."""

_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class OptionError(LogicalRepError, ValueError):
    """An option that is unknown, missing, or has an invalid value."""

    code = "OPTION_INVALID"


@dataclass(frozen=True)
class Option:
    """An option, and its line in the documentation."""

    read: Reader
    doc: str
    default: str
    """The default as text for the documentation."""
    name: str | None
    """Its name; None for that of the field that holds its value."""


def option(read: Reader, doc: str, *, default: str = "", name: str | None = None) -> Any:
    """Return the field of a dataclass that holds an option's value; the default of a flag is `false`."""
    default = "`false`" if read is flag else default
    return field(metadata={"option": Option(read, doc, default, name)})


def text(given: OptionTexts, name: str) -> str | None:
    """Read a text; None without the option."""
    return given.get(name)


def names(given: OptionTexts, name: str) -> tuple[str, ...]:
    """Read comma-separated names."""
    return tuple(part.strip() for part in given.get(name, "").split(",") if part.strip())


def tables(given: OptionTexts, name: str) -> tuple[TableName, ...]:
    """Read comma-separated tables, written as in SQL."""
    if not given.get(name, "").strip():
        return ()
    try:
        return tuple(table_names(given[name]))
    except TableNameError as error:
        raise OptionError(f"option {name!r}: {error.description}") from None


def one_table(given: OptionTexts, name: str) -> TableName | None:
    """Read one table; None without the option."""
    found = tables(given, name)
    if name in given and len(found) != 1:
        raise OptionError(f"option {name!r} is {given[name]!r}; expected one table, as schema.table")
    return found[0] if found else None


def choice(*choices: str | None) -> Reader:
    """Return the reader of one of some words; the first is the default."""

    def read(given: OptionTexts, name: str) -> str | None:
        value = given.get(name, choices[0])
        if value is not None:
            value = value.lower()
        if value not in choices:
            raise OptionError(f"option {name!r} is {value!r}; expected one of {', '.join(filter(None, choices))}")
        return value

    return read


def flag(given: OptionTexts, name: str) -> bool:
    """Read `true` or `false`; false without the option."""
    return bool(choice("false", "true")(given, name) == "true")


def count(default: int | None, least: int, most: int | None = None) -> Reader:
    """Return the reader of a whole number from `least` to `most`, which may end in k, m or g."""

    def read(given: OptionTexts, name: str) -> int | None:
        if name not in given:
            return default
        value = given[name].strip()
        digits, unit = (value[:-1], _UNITS[value[-1].lower()]) if value[-1:].lower() in _UNITS else (value, 1)
        if not digits.isdecimal() or int(digits) * unit < least or (most is not None and int(digits) * unit > most):
            upto = f" to {most}" if most is not None else ", with k, m or g for larger units"
            raise OptionError(f"option {name!r} is {given[name]!r}; expected a number from {least}{upto}")
        return int(digits) * unit

    return read


def seconds(default: float) -> Reader:
    """Return the reader of a number of seconds."""

    def read(given: OptionTexts, name: str) -> float:
        try:
            value = float(given.get(name, default))
        except ValueError:
            value = -1
        if not 0 <= value < 1e6:
            raise OptionError(f"option {name!r} is {given[name]!r}; expected a number of seconds")
        return value

    return read


def address(given: OptionTexts, name: str) -> str | None:
    """Read an address to listen at; None without the option."""
    if name in given:
        try:
            listen_address(given[name])
        except ListenError as error:
            raise OptionError(f"option {name!r}: {error.description}") from None
    return given.get(name)


def folder(given: OptionTexts, name: str) -> Path | None:
    """Read a folder as an absolute path, so that executors find it too; None without the option."""
    return Path(os.path.abspath(given[name])) if given.get(name) else None
