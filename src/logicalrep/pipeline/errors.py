"""The errors and ends of the work on tables, which decide whether a table is reloaded, waits or stops."""

from __future__ import annotations

from collections.abc import Iterable

from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn


class NeedsResync(LogicalRepError, RuntimeError):  # noqa: N818
    """Changes that do not fit the stored table, which must be reloaded."""

    code = "TABLE_DIFFERS"


class MissingRows(NeedsResync):
    """Updated or deleted rows that the table lacks."""


class NeedsTexts(Exception):  # noqa: N818
    """Values that their columns' types cannot hold, and whose texts have no column yet."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(", ".join(names))
        self.names = tuple(names)


class NotProvenYetError(Exception):
    """Rows that a later query of the catalog may prove."""


class RefusedCommit(Exception):  # noqa: N818
    """A commit that a table refused; the table has all earlier commits."""

    def __init__(self, lsn: Lsn, error: Exception) -> None:
        super().__init__(f"{error}; in the commit {lsn}")
        self.lsn = lsn
