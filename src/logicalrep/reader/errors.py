"""Errors of reading the tables of a destination."""

from __future__ import annotations

from logicalrep_runtime.errors import LogicalRepError


class ReadError(LogicalRepError, ValueError):
    """A table that cannot be read as it was asked for; the code tells why.

    - TABLE_UNKNOWN: the destination has no such table.
    - TIME_NOT_STORED: it has no versions of its tables of that time any more, or had none that was whole.
    - TABLE_NOT_CURRENT: the table loaded or was stopped then, so that its rows do not belong to those of the others.
    - VERSION_GONE: the files of the version were removed.
    """

    code = "TABLE_UNKNOWN"
