"""Table names as in SQL: `schema.table`, with double quotes around names that are not in lower case."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from logicalrep_runtime.errors import LogicalRepError

# A server with the encoding UTF-8 folds only ASCII capitals to lower case.
_PLAIN = re.compile(r"[a-z_\x80-\U0010ffff][a-z0-9_$\x80-\U0010ffff]*")
_RESERVED = re.compile(
    "all|analyse|analyze|and|any|array|as|asc|asymmetric|authorization|binary|both|case|cast|check|collate|"
    "collation|column|concurrently|constraint|create|cross|current_catalog|current_date|current_role|"
    "current_schema|current_time|current_timestamp|current_user|default|deferrable|desc|distinct|do|else|end|"
    "except|false|fetch|for|foreign|freeze|from|full|grant|group|having|ilike|in|initially|inner|intersect|into|"
    "is|isnull|join|lateral|leading|left|like|limit|localtime|localtimestamp|natural|not|notnull|null|offset|on|"
    "only|or|order|outer|overlaps|placing|primary|references|returning|right|select|session_user|similar|some|"
    "symmetric|system_user|table|tablesample|then|to|trailing|true|union|unique|user|using|variadic|verbose|when|"
    "where|window|with"
)
"""The words that are no schema's name without quotes; a table's name after a dot may be any word."""
_ANY = "\0"
"""The character in place of a `*` outside of double quotes; no name has it."""
_PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^\s".,]+))\s*(\.|,|\Z)', re.ASCII)


class TableNameError(LogicalRepError, ValueError):
    """A text is not a table's name; the message says why, and how to write it."""

    code = "TABLE_NAME"


class TableName(NamedTuple):
    """A table's schema and its own name, separate because either may contain a dot."""

    schema: str
    name: str

    def __str__(self) -> str:
        return _written(self)


def table_names(text: str) -> list[TableName]:
    """Return the tables in a comma-separated text; a name without a schema is in `public`."""
    return [_named(parts) for parts in _all_parts(text)]


@dataclass(frozen=True, slots=True)
class TableSelection:
    """Tables by their names, and by patterns with `*` for any text, such as `sales.*`.

    Example:
        >>> TableName("sales", "orders") in TableSelection.of(["sales.*", "audit"])
        True
    """

    names: tuple[TableName, ...]
    patterns: tuple[TableName, ...]

    @classmethod
    def of(cls, texts: Iterable[str]) -> TableSelection:
        """Return the selection of comma-separated names and patterns. Raises TableNameError for any other text."""
        names = [_named(parts) for text in texts for parts in _all_parts(text, may_be_patterns=True)]
        return cls(
            tuple(table for table in names if _ANY not in "".join(table)),
            tuple(table for table in names if _ANY in "".join(table)),
        )

    def __bool__(self) -> bool:
        return bool(self.names or self.patterns)

    def __contains__(self, table: TableName) -> bool:
        return table in self.names or any(matches(pattern, table) for pattern in self.patterns)

    def __str__(self) -> str:
        return ", ".join(map(str, sorted((*self.names, *self.patterns))))


def matches(pattern: TableName, table: TableName) -> bool:
    return all(
        re.fullmatch(".*".join(map(re.escape, part.split(_ANY))), name, re.DOTALL)
        for part, name in zip(pattern, table, strict=True)
    )


def table_name(text: str) -> TableName:
    return _named(name_parts(text))


def _named(parts: tuple[str, ...]) -> TableName:
    return TableName(*(parts if len(parts) == 2 else ("public", *parts)))


def name_parts(text: str) -> tuple[str, ...]:
    """Return the parts of one table's name: the schema, if the text has one, and the table's own name."""
    names = list(_all_parts(text))
    if len(names) != 1:
        raise TableNameError(f"{text!r} names {len(names)} tables, and one is expected")
    return names[0]


def _written(parts: tuple[str, ...]) -> str:
    return ".".join(
        part.replace(_ANY, "*")
        if _is_plain(part) and (number or not _RESERVED.fullmatch(part))
        else '"' + part.replace('"', '""') + '"'
        for number, part in enumerate(parts)
    )


def _is_plain(part: str) -> bool:
    return _PLAIN.fullmatch(part.replace(_ANY, "_")) is not None


def _all_parts(text: str, *, may_be_patterns: bool = False) -> Iterator[tuple[str, ...]]:
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
        if unquoted is not None and may_be_patterns:
            unquoted = unquoted.replace("*", _ANY)
        parts.append(unquoted if quoted is None else quoted.replace('""', '"'))
        plain += [unquoted] if quoted is None else []
        if follows != ".":
            if len(parts) > 2:
                raise TableNameError(f"{_written(tuple(parts))} has {len(parts)} parts; schema.table is expected")
            if not all(map(_is_plain, plain)):
                raise TableNameError(
                    f"{'.'.join(parts)} is not a name that SQL reads unchanged: write {_written(tuple(parts))}, or "
                    "write it in lower case if that is its name"
                )
            yield tuple(parts)
            parts, plain = [], []
        at = match.end()
