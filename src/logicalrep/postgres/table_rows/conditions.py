"""Conditions on key columns: parsed from a small subset of SQL, stored as JSON, and rendered with typed literals.

A condition is data. Its SQL has only identifiers, literals of built-in types or enums, and built-in operators and
functions, so that its author cannot run code on the server. Needs psycopg 3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from psycopg import sql

from logicalrep.postgres.slots.errors import SlotError

MOST_CHARACTERS = 1 << 20
MOST_NESTED = 50
MOST_COMPARISONS = 10_000
_FUNCTIONS = {"=": "enum_eq", "<>": "enum_ne", "<": "enum_lt", "<=": "enum_le", ">": "enum_gt", ">=": "enum_ge"}
"""The operators, and the functions that compare enums: operators would use casts that others defined for the enum."""
ACCEPTED = (
    "write comparisons of key columns with literals (=, <>, <, <=, >, >=, BETWEEN … AND …, IN (…)), combined with "
    "AND, OR and parentheses, such as id >= 100 AND kind IN ('a', 'b')"
)


class ConditionError(SlotError):
    """The condition cannot select a part of a table; the text has the reason."""

    code = "CONDITION_REFUSED"


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    type: str
    """The SQL name of a built-in base type, or of an enum."""
    is_enum: bool
    collation: str | None
    """The quoted name of the column's collation; None without one."""


@dataclass(frozen=True, slots=True)
class ColumnComparison:
    column: str
    operator: str
    value: str

    def to_json(self) -> dict[str, object]:
        return {"column": self.column, "operator": self.operator, "value": self.value}

    def render(self, columns: Mapping[str, ComparedColumn]) -> sql.Composed:
        column = columns[self.column]
        type_name = sql.SQL(column.type)
        name = sql.SQL("({}::{})").format(sql.Identifier(self.column), type_name)
        value = sql.SQL("({}::{}{})").format(
            sql.Literal(self.value), type_name, sql.SQL(f" COLLATE {column.collation}" if column.collation else "")
        )
        if column.is_enum:
            return sql.SQL("pg_catalog.{}({}, {})").format(sql.Identifier(_FUNCTIONS[self.operator]), name, value)
        return sql.SQL("{} OPERATOR(pg_catalog.{}) {}").format(name, sql.SQL(self.operator), value)

    def __str__(self) -> str:
        return f"{_shown_name(self.column)} {self.operator} {_shown_value(self.value)}"


@dataclass(frozen=True, slots=True)
class ConditionGroup:
    is_any: bool
    conditions: tuple[Condition, ...]

    def to_json(self) -> dict[str, object]:
        return {"any" if self.is_any else "all": [condition.to_json() for condition in self.conditions]}

    def render(self, columns: Mapping[str, ComparedColumn]) -> sql.Composed:
        rendered = [condition.render(columns) for condition in self.conditions]
        return sql.SQL("({})").format(sql.SQL(" OR " if self.is_any else " AND ").join(rendered))

    def __str__(self) -> str:
        texts = [
            f"({condition})" if isinstance(condition, ConditionGroup) else str(condition)
            for condition in self.conditions
        ]
        return (" OR " if self.is_any else " AND ").join(texts)


Condition: TypeAlias = ColumnComparison | ConditionGroup


def columns_of(condition: Condition) -> set[str]:
    return {comparison.column for comparison in _comparisons(condition)}


def condition_of(content: Any, depth: int = 0) -> Condition:
    """Return the condition of a result of `to_json`. Raises ValueError for any other value."""
    if depth > MOST_NESTED:
        raise ValueError(f"its condition has more than {MOST_NESTED} groups within each other")
    if not isinstance(content, dict):
        raise ValueError("its condition is not an object")
    if set(content) == {"column", "operator", "value"}:
        if not all(isinstance(text, str) for text in content.values()) or content["operator"] not in _FUNCTIONS:
            raise ValueError("its condition has a comparison with an unknown operator, or values that are not texts")
        for text in content.values():
            if not _is_sendable(text):
                raise ValueError("its condition has a text that no server takes")
        return ColumnComparison(content["column"], content["operator"], content["value"])
    if len(content) != 1 or not content.keys() <= {"any", "all"}:
        raise ValueError("its condition is neither a comparison nor a group of conditions")
    ((kind, conditions),) = content.items()
    if not isinstance(conditions, list) or not conditions:
        raise ValueError("its condition has a group without conditions")
    group = ConditionGroup(kind == "any", tuple(condition_of(condition, depth + 1) for condition in conditions))
    if depth == 0 and sum(1 for _ in _comparisons(group)) > MOST_COMPARISONS:
        raise ValueError(f"its condition has more than {MOST_COMPARISONS:,} comparisons")
    return group


def _comparisons(condition: Condition) -> Iterator[ColumnComparison]:
    if isinstance(condition, ColumnComparison):
        yield condition
        return
    for part in condition.conditions:
        yield from _comparisons(part)


def _is_sendable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _shown_name(name: str) -> str:
    is_plain = re.fullmatch("[a-z_][a-z0-9_]*", name) and name.upper() not in _WORDS
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def _shown_value(value: str) -> str:
    return value if re.fullmatch(r"[+-]?\d+(\.\d+)?", value) else "'" + value.replace("'", "''") + "'"


# Parsing of SQL

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<name>[^\W\d][\w$]*)
        | "(?P<quoted>(?:[^"]|"")+)"
        | '(?P<text>(?:[^']|'')*)'
        | (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w$.]))
        | (?P<sign><>|!=|<=|>=|=|<|>|\(|\)|,)
    )""",
    re.VERBOSE,
)
_WORDS = ("AND", "OR", "NOT", "BETWEEN", "IN", "TRUE", "FALSE", "NULL")
_END = ("end", "the end")


def parse_condition(text: str) -> Condition:
    """Parse comparisons of columns with literals (`BETWEEN`, `IN`), `AND`, `OR` and parentheses. Raises ConditionError.

    Unquoted column names are folded to lower case.
    """
    if len(text) > MOST_CHARACTERS:
        raise ConditionError(f"the condition has more than {MOST_CHARACTERS:,} characters")
    if not _is_sendable(text):
        raise ConditionError("the condition has a character that no server takes")
    parser = _ConditionParser(text, _tokens(text))
    condition = parser.any_of(0)
    parser.take("end", "")
    if sum(1 for _ in _comparisons(condition)) > MOST_COMPARISONS:
        raise ConditionError(f"the condition has more than {MOST_COMPARISONS:,} comparisons")
    return condition


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens, position, text = [], 0, text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _refused(text, text[position:].strip())
        kind, value = match.lastgroup or "", match[match.lastgroup or 0]
        if kind == "name" and value.upper() in _WORDS:
            kind, value = "word", value.upper()
        elif kind == "name":
            value = value.lower()
        elif kind == "quoted":
            kind, value = "name", value.replace('""', '"')
        elif kind == "text":
            value = value.replace("''", "'")
        elif value == "!=":
            value = "<>"
        tokens.append((kind, value))
        position = match.end()
    return tokens


def _refused(text: str, at: str) -> ConditionError:
    shown, at = (part if len(part) <= 100 else f"{part[:100]}…" for part in (text, at))
    return ConditionError(f"the condition {shown} is not accepted at {at}: {ACCEPTED}")


class _ConditionParser:
    def __init__(self, text: str, tokens: Sequence[tuple[str, str]]) -> None:
        self._text = text
        self._tokens = tokens
        self._next = 0

    def any_of(self, depth: int) -> Condition:
        return self._group("OR", depth, self._all_of)

    def _all_of(self, depth: int) -> Condition:
        return self._group("AND", depth, self._one)

    def _group(self, word: str, depth: int, part: Callable[[int], Condition]) -> Condition:
        conditions = [part(depth)]
        while self._is_next("word", word):
            self._next += 1
            conditions.append(part(depth))
        return conditions[0] if len(conditions) == 1 else ConditionGroup(word == "OR", tuple(conditions))

    def _one(self, depth: int) -> Condition:
        if depth > MOST_NESTED // 3:
            raise ConditionError(f"the condition has more than {MOST_NESTED // 3} parentheses within each other")
        if self._is_next("sign", "("):
            self._next += 1
            condition = self.any_of(depth + 1)
            self.take("sign", ")")
            return condition
        column = self.take("name")
        if self._is_next("word", "BETWEEN"):
            self._next += 1
            least = self._literal()
            self.take("word", "AND")
            return ConditionGroup(
                False, (ColumnComparison(column, ">=", least), ColumnComparison(column, "<=", self._literal()))
            )
        if self._is_next("word", "IN"):
            self._next += 1
            self.take("sign", "(")
            values = [self._literal()]
            while self._is_next("sign", ","):
                self._next += 1
                values.append(self._literal())
            self.take("sign", ")")
            return ConditionGroup(True, tuple(ColumnComparison(column, "=", value) for value in values))
        operator = self.take("sign")
        if operator not in _FUNCTIONS:
            raise self._refused_at_last_token()
        return ColumnComparison(column, operator, self._literal())

    def _literal(self) -> str:
        kind, value = self._peek()
        if kind not in ("text", "number") and (kind, value) not in (("word", "TRUE"), ("word", "FALSE")):
            raise _refused(self._text, value)
        self._next += 1
        return value

    def take(self, kind: str, value: str | None = None) -> str:
        next_kind, next_value = self._peek()
        if next_kind != kind or (value and next_value != value):
            raise _refused(self._text, next_value)
        self._next += 1
        return next_value

    def _refused_at_last_token(self) -> ConditionError:
        return _refused(self._text, self._tokens[self._next - 1][1])

    def _is_next(self, kind: str, value: str) -> bool:
        return self._peek() == (kind, value)

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._next] if self._next < len(self._tokens) else _END
