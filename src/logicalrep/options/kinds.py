"""The kinds of options: functions that read an option's text, and raise OptionError if it is invalid."""

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
Reader = Callable[[OptionTexts, str], Any]
"""A function that returns an option's value from all texts and the option's name. Raises OptionError."""

_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class OptionError(LogicalRepError, ValueError):
    """An option is unknown, is missing, or has an invalid value."""

    code = "OPTION_INVALID"


@dataclass(frozen=True)
class Option:
    read: Reader
    doc: str
    default: str
    name: str | None = None
    """The name; None for the name of its field."""
    metavar: str | None = None
    """The name of the value on the command line; None for a flag or a choice."""
    is_by_table: bool = False


def option(
    read: Reader,
    doc: str,
    *,
    default: str = "",
    name: str | None = None,
    metavar: str | None = None,
    is_by_table: bool = False,
) -> Any:
    value = read({}, "")
    if not default and value not in (None, ()):
        default = f"`{_option_text(value)}`"
    return field(default=value, metadata={"option": Option(read, doc, default, name, metavar, is_by_table)})


def _option_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    if isinstance(value, str) or not isinstance(value, Iterable):
        return str(value)
    return ",".join(map(str, value))


def read_value(option: Option, value: object, name: str) -> Any:
    """Return the value that `option.read` returns for a Python value. Raises OptionError if it is invalid."""
    return option.read({} if value is None else {name: _option_text(value)}, name)


def text(texts: OptionTexts, name: str) -> str | None:
    return texts.get(name)


def names(texts: OptionTexts, name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in texts.get(name, "").split(",") if part.strip())


def tables(texts: OptionTexts, name: str) -> tuple[TableName, ...]:
    """Return comma-separated tables with names as in SQL; none without the option."""
    if not texts.get(name, "").strip():
        return ()
    try:
        return tuple(table_names(texts[name]))
    except TableNameError as error:
        raise OptionError(f"option {name!r}: {error.description}") from None


def one_table(texts: OptionTexts, name: str) -> TableName | None:
    names = tables(texts, name)
    if name in texts and len(names) != 1:
        raise OptionError(f"option {name!r} is {texts[name]!r}; expected one table, as schema.table")
    return names[0] if names else None


@dataclass(frozen=True, slots=True)
class Choice:
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
    return Choice(choices[0], tuple(filter(None, choices)))


def number_type(texts: OptionTexts, name: str) -> str:
    try:
        return check_number_type(texts.get(name, "text"))
    except ValueError as error:
        raise OptionError(f"option {name!r} is {texts[name]!r}; {error}") from None


def flag(texts: OptionTexts, name: str) -> bool:
    """Return whether the option is `true`; it must be `true` or `false`, and is false by default."""
    return bool(choice("false", "true")(texts, name) == "true")


def count(default: int | None, least: int, most: int | None = None) -> Reader:
    """Return the reader of an integer from `least` to `most`; k, m and g at its end mean 2**10, 2**20 and 2**30."""

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
    """Return the reader of a number from `least` to `below`; errors name its unit."""

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
    return amount(default, "seconds", below=1e6)


def address(texts: OptionTexts, name: str) -> str | None:
    """Return the text of an address to listen at (see `listen_address`); None without the option."""
    if name in texts:
        try:
            listen_address(texts[name])
        except ListenError as error:
            raise OptionError(f"option {name!r}: {error.description}") from None
    return texts.get(name)


def folder(texts: OptionTexts, name: str) -> Path | None:
    """Return a folder as an absolute path, for executors in other working directories; None without it."""
    return Path(os.path.abspath(texts[name])) if texts.get(name) else None
