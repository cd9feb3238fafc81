"""The results of comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from logicalrep.transactions.table_names import TableName

Result = Literal["equal", "different", "undecided"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that differs."""

    kind: Literal["missing", "surplus", "changed"]
    """Whether the destination has no such row, has one that the server does not have, or has other values in it."""
    key: Mapping[str, str | None]
    """The values of the key's columns as PostgreSQL's text; empty for a table without a key."""
    server: Mapping[str, str | None] | None = None
    """The server's row, if values were wanted."""
    destination: Mapping[str, str | None] | None = None
    """The destination's row, likewise."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result for a table."""

    table: TableName
    result: Result
    rows: int = 0
    """The number of the server's rows that were compared."""
    differing: int = 0
    """The number of rows that are proven to differ."""
    is_least: bool = False
    """Whether there may be more of them."""
    examples: tuple[Difference, ...] = ()
    """Some of them."""
    reason: str = ""
    """The reason why it is undecided."""
