"""The settings of one table, which its Delta table's properties keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from logicalrep_runtime.errors import LogicalRepError


class TableSettingsError(LogicalRepError, ValueError):
    """Settings that cannot be together."""

    code = "OPTION_INVALID"


@dataclass(frozen=True, kw_only=True)
class TableSettings:
    """The way in which a table is kept. A table whose settings change is loaded again.

    Raises TableSettingsError if `append` is with values that would have to be NULL or texts.

    Example:
        >>> TableSettings(unrepresentable="null")
    """

    unrepresentable: Literal["error", "null", "text"] = "error"
    """The treatment of values that the column's type cannot hold: an error for the table, NULL, or a text beside it."""
    deletes: Literal["hard", "soft"] = "hard"
    """Whether a deleted row goes, or stays and is marked."""
    history: bool = False
    """Whether a second table has every version of each row."""
    append: bool = False
    """Whether another table has all changes, one after another."""

    def __post_init__(self) -> None:
        if self.append and self.unrepresentable != "error":
            raise TableSettingsError(
                f"append keeps changes as they are, and unrepresentable = {self.unrepresentable} changes values: leave "
                "one of them out"
            )


__all__ = ["TableSettings", "TableSettingsError"]
