"""Tables' names as they are written in SQL: `schema.table`, in double quotes what is not in small letters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from logicalrep_runtime.errors import LogicalRepError

# A server in UTF-8 makes small letters of these capitals only.
_PLAIN = re.compile(r"[a-z_\x80-\U0010ffff][a-z0-9_$\x80-\U0010ffff]*")
_PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^\s".,]+))\s*(\.|,|\Z)', re.ASCII)


class TableNameError(LogicalRepError, ValueError):
    """A text that is no name of a table; says why, and how it is written."""

    code = "TABLE_NAME"


class TableName(NamedTuple):
    """A table's schema and its own name, which are two: either may have a dot in it."""

    schema: str
    name: str

    def __str__(self) -> str:
        return written(self)


def table_names(text: str) -> list[TableName]:
    """The tables that are named in a text, with commas; in the schema `public` where that is not said."""
    return [TableName(*(parts if len(parts) == 2 else ("public", *parts))) for parts in _all_parts(text)]


def name_parts(text: str) -> tuple[str, ...]:
    """A table's own name, behind its schema's where the text has that."""
    found = list(_all_parts(text))
    if len(found) != 1:
        raise TableNameError(f"{text!r} are {len(found)} tables, and one is expected")
    return found[0]


def written(parts: tuple[str, ...]) -> str:
    """A name as it is written in SQL."""
    return ".".join(part if _PLAIN.fullmatch(part) else '"' + part.replace('"', '""') + '"' for part in parts)


def _all_parts(text: str) -> Iterator[tuple[str, ...]]:
    parts: list[str] = []
    plain: list[str] = []
    at, follows = 0, ","
    while follows:
        match = _PART.match(text, at)
        if match is None:
            raise TableNameError(
                f"{text!r} is no table as SQL has it: schema.table, with other names than of small letters, digits and "
                "underscores in double quotes, and a quote in one twice"
            )
        quoted, unquoted, follows = match.groups()
        parts.append(unquoted if quoted is None else quoted.replace('""', '"'))
        plain += [unquoted] if quoted is None else []
        if follows != ".":
            if len(parts) > 2:
                raise TableNameError(f"{written(tuple(parts))} has {len(parts)} parts; schema.table is expected")
            if not all(map(_PLAIN.fullmatch, plain)):
                raise TableNameError(
                    f"{'.'.join(parts)} is read as SQL reads it, where such a name is in quotes: write "
                    f"{written(tuple(parts))}, or it in small letters if it is that"
                )
            yield tuple(parts)
            parts, plain = [], []
        at = match.end()
