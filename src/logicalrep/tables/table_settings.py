"""The settings of one table, which its Delta table's properties keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self


@dataclass(frozen=True, kw_only=True)
class TableSettings:
    """How a table is kept. A table whose settings change is loaded again.

    Example:
        >>> TableSettings(unrepresentable="null")
    """

    key: tuple[str, ...] = ()
    """The columns that identify a row; none for those of the replica identity."""
    left_out: tuple[str, ...] = ()
    """The columns that are not written."""
    masked: Mapping[str, Literal["hash", "null"]] = field(default_factory=dict)
    """The columns of whose values only a hash, or nothing, is written."""
    unrepresentable: Literal["error", "null", "text"] = "error"
    """The treatment of values that the column's type cannot hold: an error for the table, NULL, or a text beside it."""
    deletes: Literal["hard", "soft"] = "hard"
    """Whether a deleted row goes, or stays and is marked."""
    history: bool = False
    """Whether a second table has every version of each row."""
    append: bool = False
    """Whether another table has all changes, one after another."""

    def to_content(self) -> dict[str, Any]:
        """Return the settings as JSON has them."""
        return asdict(self)

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Self:
        """Return the settings that `to_content` returned."""
        return cls(**{**content, "key": tuple(content["key"]), "left_out": tuple(content["left_out"])})


__all__ = ["TableSettings"]
