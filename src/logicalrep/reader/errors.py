"""The error of reading the tables of a destination."""

from __future__ import annotations

from logicalrep_runtime.errors import LogicalRepError


class ReadError(LogicalRepError, ValueError):
    """The table, or its version, cannot be read; the code has the reason.

    - TABLE_UNKNOWN: the destination does not have the table.
    - TIME_NOT_STORED: the destination has no versions of its tables for the time, or no longer has them.
    - TABLE_NOT_CURRENT: the table was loading or stopped, so that its rows do not match the rows of the other tables.
    - VERSION_GONE: files of the version have been removed.
    """

    code = "TABLE_UNKNOWN"
