"""Commits of other programs in a replicated table's log: upkeep, which leaves the rows as they are, and changes.

OPTIMIZE, Z-ORDER and VACUUM say of each file that no data changes. Source: "Actions" in the Delta Transaction Log
Protocol.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Self

_HARMLESS = {"commitInfo", "txn", "domainMetadata", "checkpointMetadata"}


@dataclass(frozen=True, slots=True)
class LoggedCommit:
    """A commit, as far as one needs to know whether to go on from it."""

    operation: str
    """Its name, such as `OPTIMIZE`."""
    writer: str | None
    """The process of ours that has made it; None for one of another program."""
    is_ours: bool
    changes: str | None
    """A description of its change of the table; None if the rows are the same."""

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Return a commit of a table."""
        try:
            actions: list[dict[str, Any]] = [json.loads(line) for line in data.splitlines() if line.strip()]
        except ValueError:
            return cls("a commit", None, False, "a commit that cannot be read")
        info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        operation, engine = str(info.get("operation", "a commit")), str(info.get("engineInfo", "another program"))
        if engine == "logicalrep":
            return cls(operation, info.get("writer"), True, None)
        is_same = all(_is_harmless(action) for action in actions)
        return cls(
            operation, None, False, None if is_same else f"{operation} of {engine} has changed its rows or columns"
        )

    @classmethod
    def deleted(cls, last: int) -> Self:
        """Return the commits after a version that the log has no more, of which nobody knows what they changed."""
        return cls("a commit", None, False, f"what was committed after version {last} is not in its log any more")


def _is_harmless(action: dict[str, Any]) -> bool:
    """Return whether an action changes neither rows nor columns, nor what is needed to write them."""
    if action.keys() <= _HARMLESS:
        return True
    for kind in ("add", "remove"):
        if kind in action:
            return action[kind].get("dataChange") is False
    return False
