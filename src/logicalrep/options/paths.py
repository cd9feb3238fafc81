"""Paths that files of a destination name: each leads to a file below the destination, or is refused."""

from __future__ import annotations

from logicalrep_runtime.errors import LogicalRepError


class MalformedFileError(LogicalRepError, ValueError):
    """A file at a destination whose content is not what this project writes; the text names it."""

    code = "DESTINATION_DAMAGED"


def below(*parts: str) -> str:
    """Return the path of some parts below a destination.

    Raises MalformedFileError if a part is empty or absolute, or leads out of the destination.

    Example:
        >>> below("public/orders", "part-1.parquet")
        'public/orders/part-1.parquet'
        >>> below("public/orders", "../../../etc/passwd")
        Traceback (most recent call last):
        logicalrep.options.paths.MalformedFileError: [DESTINATION_DAMAGED] '../../../etc/passwd' is not …
    """
    for part in parts:
        if not {"", ".", ".."}.isdisjoint(part.split("/")) or "\0" in part:
            raise MalformedFileError(f"{part!r} is not a path below a destination")
    return "/".join(parts)
