"""The kinds of options: functions that read an option's text, and raise OptionError for an invalid one."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from logicalrep.options.listen_address import ListenError, listen_address
from logicalrep.transactions.table_names import TableName, TableNameError, table_names
from logicalrep.values.numbers import check_number_type
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
    name: str | None = None
    """Its name; None for that of the field that holds its value."""
    metavar: str | None = None
    """The word for its value on the command line; None for a flag or a choice."""
    is_by_table: bool = False
    """Whether a table may have a value of its own."""


def option(
    read: Reader,
    doc: str,
    *,
    default: str = "",
    name: str | None = None,
    metavar: str | None = None,
    is_by_table: bool = False,
) -> Any:
    """Return the field of a dataclass that holds an option's value; its default is what `read` makes of no option."""
    value = read({}, "")
    if not default and value not in (None, ()):
        default = f"`{_written(value)}`"
    return field(default=value, metadata={"option": Option(read, doc, default, name, metavar, is_by_table)})


def _written(value: object) -> str:
    """Return the text that a reader reads a value from."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    if isinstance(value, str) or not isinstance(value, Iterable):
        return str(value)
    return ",".join(map(str, value))


def read_value(known: Option, value: object, name: str) -> Any:
    """Return a value that a call gives to an option, as `read` has it. Raises OptionError for an invalid one."""
    return known.read({} if value is None else {name: _written(value)}, name)


def text(texts: OptionTexts, name: str) -> str | None:
    """Read a text; None without the option."""
    return texts.get(name)


def names(texts: OptionTexts, name: str) -> tuple[str, ...]:
    """Read comma-separated names."""
    return tuple(part.strip() for part in texts.get(name, "").split(",") if part.strip())


def tables(texts: OptionTexts, name: str) -> tuple[TableName, ...]:
    """Read comma-separated tables, written as in SQL."""
    if not texts.get(name, "").strip():
        return ()
    try:
        return tuple(table_names(texts[name]))
    except TableNameError as error:
        raise OptionError(f"option {name!r}: {error.description}") from None


def one_table(texts: OptionTexts, name: str) -> TableName | None:
    """Read one table; None without the option."""
    found = tables(texts, name)
    if name in texts and len(found) != 1:
        raise OptionError(f"option {name!r} is {texts[name]!r}; expected one table, as schema.table")
    return found[0] if found else None


@dataclass(frozen=True, slots=True)
class Choice:
    """The reader of one of some words."""

    default: str | None
    words: tuple[str, ...]

    def __call__(self, texts: OptionTexts, name: str) -> str | None:
        if name not in texts:
            return self.default
        value = texts[name].lower()
        if value not in self.words:
            raise OptionError(f"option {name!r} is {value!r}; expected one of {', '.join(self.words)}")
        return value


def choice(*choices: str | None) -> Choice:
    """Return the reader of one of some words; the first is the default."""
    return Choice(choices[0], tuple(filter(None, choices)))


def number_type(texts: OptionTexts, name: str) -> str:
    """Read the type of numbers without a bound: `text`, `double` or `decimal(p,s)`."""
    try:
        return check_number_type(texts.get(name, "text"))
    except ValueError as error:
        raise OptionError(f"option {name!r} is {texts[name]!r}; {error}") from None


def flag(texts: OptionTexts, name: str) -> bool:
    """Read `true` or `false`; false without the option."""
    return bool(choice("false", "true")(texts, name) == "true")


def count(default: int | None, least: int, most: int | None = None) -> Reader:
    """Return the reader of a whole number from `least` to `most`, which may end in k, m or g."""

    def read(texts: OptionTexts, name: str) -> int | None:
        if name not in texts:
            return default
        value = texts[name].strip()
        digits, unit = (value[:-1], _UNITS[value[-1].lower()]) if value[-1:].lower() in _UNITS else (value, 1)
        if not digits.isdecimal() or int(digits) * unit < least or (most is not None and int(digits) * unit > most):
            upto = f" to {most}" if most is not None else ", with k, m or g for larger units"
            raise OptionError(f"option {name!r} is {texts[name]!r}; expected a number from {least}{upto}")
        return int(digits) * unit

    return read


def amount(default: float | None, unit: str, *, least: float = 0.0, below: float = math.inf) -> Reader:
    """Return the reader of a number of some unit, from `least` on."""

    def read(texts: OptionTexts, name: str) -> float | None:
        if name not in texts:
            return default
        try:
            value = float(texts[name])
        except ValueError:
            value = -1
        if not least <= value < below:
            bound = f", at least {least:g}" if least else ""
            raise OptionError(f"option {name!r} is {texts[name]!r}; expected a number of {unit}{bound}")
        return value

    return read


def seconds(default: float) -> Reader:
    """Return the reader of a number of seconds."""
    return amount(default, "seconds", below=1e6)


def address(texts: OptionTexts, name: str) -> str | None:
    """Read an address to listen at; None without the option."""
    if name in texts:
        try:
            listen_address(texts[name])
        except ListenError as error:
            raise OptionError(f"option {name!r}: {error.description}") from None
    return texts.get(name)


def folder(texts: OptionTexts, name: str) -> Path | None:
    """Read a folder as an absolute path, so that executors find it too; None without the option."""
    return Path(os.path.abspath(texts[name])) if texts.get(name) else None
