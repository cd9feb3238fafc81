"""Table names as in SQL: `schema.table`, with double quotes around names that are not in lower case."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from logicalrep_runtime.errors import LogicalRepError

# A server with the encoding UTF-8 folds only ASCII capitals to lower case.
_PLAIN = re.compile(r"[a-z_\x80-\U0010ffff][a-z0-9_$\x80-\U0010ffff]*")
_PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^\s".,]+))\s*(\.|,|\Z)', re.ASCII)


class TableNameError(LogicalRepError, ValueError):
    """A text that is not a table's name; the message says why, and how to write it."""

    code = "TABLE_NAME"


class TableName(NamedTuple):
    """A table's schema and its own name, kept apart because either may contain a dot."""

    schema: str
    name: str

    def __str__(self) -> str:
        return _written(self)


def table_names(text: str) -> list[TableName]:
    """Return the tables in a comma-separated text; a name without a schema is in `public`."""
    return [_named(parts) for parts in _all_parts(text)]


def all_table_names(texts: Iterable[str]) -> tuple[TableName, ...]:
    """Return the tables in comma-separated texts."""
    return tuple(name for text in texts for name in table_names(text))


def table_name(text: str) -> TableName:
    """Return the table in a text that has one. Raises TableNameError if it has none, or several."""
    return _named(name_parts(text))


def _named(parts: tuple[str, ...]) -> TableName:
    return TableName(*(parts if len(parts) == 2 else ("public", *parts)))


def name_parts(text: str) -> tuple[str, ...]:
    """Return the parts of one table's name: the schema, if the text has one, and the table's own name."""
    found = list(_all_parts(text))
    if len(found) != 1:
        raise TableNameError(f"{text!r} names {len(found)} tables, and one is expected")
    return found[0]


def _written(parts: tuple[str, ...]) -> str:
    """Return a name as written in SQL."""
    return ".".join(part if _PLAIN.fullmatch(part) else '"' + part.replace('"', '""') + '"' for part in parts)


def _all_parts(text: str) -> Iterator[tuple[str, ...]]:
    parts: list[str] = []
    plain: list[str] = []
    at, follows = 0, ","
    while follows:
        match = _PART.match(text, at)
        if match is None:
            raise TableNameError(
                f"{text!r} is not a table's name as in SQL: write schema.table, put a name in double quotes if it has "
                "more than lower-case letters, digits and underscores, and double each quote in it"
            )
        quoted, unquoted, follows = match.groups()
        parts.append(unquoted if quoted is None else quoted.replace('""', '"'))
        plain += [unquoted] if quoted is None else []
        if follows != ".":
            if len(parts) > 2:
                raise TableNameError(f"{_written(tuple(parts))} has {len(parts)} parts; schema.table is expected")
            if not all(map(_PLAIN.fullmatch, plain)):
                raise TableNameError(
                    f"{'.'.join(parts)} is not a name that SQL reads unchanged: write {_written(tuple(parts))}, or "
                    "write it in lower case if that is its name"
                )
            yield tuple(parts)
            parts, plain = [], []
        at = match.end()
