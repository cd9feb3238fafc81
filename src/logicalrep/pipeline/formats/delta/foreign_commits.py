"""Commits of other programs in a replicated table's log: upkeep, which leaves the rows as they are, and changes.

OPTIMIZE, Z-ORDER and VACUUM mark each file with `"dataChange": false`. Source: "Actions" in the Delta Transaction Log
Protocol.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

_HARMLESS = {"commitInfo", "txn", "domainMetadata", "checkpointMetadata"}
_DESCRIBING = {"metaData", "protocol"}


@dataclass(frozen=True, slots=True)
class LoggedCommit:
    operation: str
    """The operation's name, such as `OPTIMIZE`."""
    writer: str | None
    """The replicate process that wrote the commit; None for another program."""
    is_ours: bool
    """Whether replicate wrote the commit."""
    changes: str | None
    """A description of another program's change; None if the rows and the columns are the same."""

    @classmethod
    def of(cls, data: bytes, is_same_table: Callable[[dict[str, Any]], bool]) -> Self:
        """Return a commit; the function returns whether its metadata, or its protocol, fits the table."""
        try:
            return cls._of_actions([json.loads(line) for line in data.splitlines() if line.strip()], is_same_table)
        except (ValueError, LookupError, AttributeError, TypeError, RecursionError):
            return cls("a commit", None, False, "its log has a commit that cannot be read")

    @classmethod
    def _of_actions(cls, actions: Sequence[dict[str, Any]], is_same_table: Callable[[dict[str, Any]], bool]) -> Self:
        info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        operation, engine = str(info.get("operation", "a commit")), str(info.get("engineInfo", "another program"))
        if engine == "logicalrep":
            return cls(operation, info.get("writer"), True, None)
        is_same = all(_is_harmless(action, is_same_table) for action in actions)
        return cls(
            operation, None, False, None if is_same else f"{operation} of {engine} has changed its rows or columns"
        )

    @classmethod
    def deleted(cls, last: int) -> Self:
        """Return a stand-in for the commits after a version that the log has lost: their changes are unknown."""
        return cls("a commit", None, False, f"its log no longer has the commits after version {last}")


def _is_harmless(action: dict[str, Any], is_same_table: Callable[[dict[str, Any]], bool]) -> bool:
    if action.keys() <= _HARMLESS:
        return True
    if action.keys() <= _DESCRIBING:
        return is_same_table(action)
    for kind in ("add", "remove"):
        if kind in action:
            return action[kind].get("dataChange") is False
    return False
