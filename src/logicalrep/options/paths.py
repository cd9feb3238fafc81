"""Checks that the paths in a destination's files lead to files below the destination."""

from __future__ import annotations

from logicalrep_runtime.errors import LogicalRepError


class MalformedFileError(LogicalRepError, ValueError):
    """A destination's file has content that logicalrep does not write; the text names the file."""

    code = "DESTINATION_DAMAGED"


def below(*parts: str) -> str:
    """Join the parts of a path. Raises MalformedFileError if a part is empty, absolute or leads out of the base."""
    for part in parts:
        if not {"", ".", ".."}.isdisjoint(part.split("/")) or "\0" in part:
            raise MalformedFileError(f"{part!r} is not a path below a destination")
    return "/".join(parts)
