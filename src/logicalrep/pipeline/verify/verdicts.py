"""The results of comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from logicalrep.transactions.table_names import TableName

Result = Literal["equal", "different", "undecided"]


@dataclass(frozen=True, slots=True)
class Difference:
    kind: Literal["missing", "surplus", "changed"]
    """Whether the destination lacks the row, has a row that the server lacks, or has other values in it."""
    key: Mapping[str, str | None]
    """The key columns' values as PostgreSQL's text; empty for a table without a key."""
    server: Mapping[str, str | None] | None = None
    destination: Mapping[str, str | None] | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    table: TableName
    result: Result
    rows: int = 0
    differing: int = 0
    """The number of rows that are proven to differ."""
    is_least: bool = False
    """Whether `differing` is a lower bound."""
    examples: tuple[Difference, ...] = ()
    reason: str = ""
