"""The lines that the command prints for changes of a spec."""

from __future__ import annotations

from codegen.diff.change import Change


def printed_line(change: Change) -> str:
    """A finding as the command prints it, without its place."""
    versions = f" [{change.versions}]" if change.versions else ""
    return f"{change.severity} {change.rule.id}: {change.spot.subject} {change.text}{versions}"
