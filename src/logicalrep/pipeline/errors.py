"""The errors and ends that the work on tables raises, for those who decide what becomes of it."""

from __future__ import annotations

from collections.abc import Iterable

from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn


class NeedsResync(LogicalRepError, RuntimeError):  # noqa: N818
    """Changes that do not fit the table as it is: it has to be loaded anew."""

    code = "TABLE_DIFFERS"


class MissingRows(NeedsResync):
    """Updated or deleted rows that are not in the table."""


class NeedsTexts(Exception):  # noqa: N818
    """Changes with the first values that their columns' types cannot hold, and whose texts have no column yet."""

    def __init__(self, names: Iterable[str]) -> None:
        """Take the names of these columns on the server."""
        super().__init__(", ".join(names))
        self.names = tuple(names)


class NotProvenYetError(Exception):
    """Rows that a later look at the server may prove."""


class RefusedCommit(Exception):  # noqa: N818
    """A commit whose changes a table does not take; it has all those before it."""

    def __init__(self, lsn: Lsn, error: Exception) -> None:
        """Take the commit's LSN, and the error of its changes."""
        super().__init__(f"{error}; in the commit {lsn}")
        self.lsn = lsn
