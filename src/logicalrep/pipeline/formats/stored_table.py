"""The interface of a table format: a destination's tables, and one of them, in whatever format they are stored.

The other rooms of the pipeline have these words alone. `opening` makes the format that a destination's tables have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from logicalrep.pipeline.schema.table_facts import Skipped
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn


class WriterError(LogicalRepError, RuntimeError):
    """A commit that another process of ours has made meanwhile."""

    code = "DESTINATION_HAS_WRITER"


class ForeignTableError(LogicalRepError, RuntimeError):
    """A table that another program has made, or that is a copy of another server's table."""

    code = "DESTINATION_DIFFERS"


class LogDamagedError(LogicalRepError, RuntimeError):
    """A table whose log or metadata cannot be read, so that nothing can be committed to it."""

    code = "TABLE_LOG_DAMAGED"


def application_id(system_identifier: int, timeline: int, load: str) -> str:
    """Return the application id of a table's commits: LSNs of another server or load never count as its own."""
    return f"logicalrep/{system_identifier}/{timeline}/{load}"


@dataclass(frozen=True, slots=True)
class Head:
    """The last commit of a stored table."""

    version: int
    commit: str | None
    """What tells the commit from every other commit of this version; None if that cannot be read any more."""


@dataclass(frozen=True)
class NewTable:
    """What a stored table is made of, in the commit that begins a load."""

    table: TableSpec
    """The description of the table."""
    files: Sequence[DataFile]
    """Its files."""
    application: str
    """The application id of its commits."""
    lsn: Lsn
    """The files have all commits up to this LSN."""
    load: str
    """The load that its rows begin with."""
    keep_hours: float
    """The hours for which old versions can be read."""


class StoredTable(Protocol):
    """A replicated table at a destination, whose rows nobody else changes; kept open between commits.

    Each change of it is one commit, which is there as a whole or not at all. A method that commits raises:

    - WriterError: another process of ours has committed meanwhile.
    - DamagedError: another program has changed the rows meanwhile.
    - StorageError: the destination cannot be written; or an earlier try is there, whose answer was lost, or a commit of
      another program that left the rows as they are. The next try goes on from it.

    Example:
        >>> stored = tables.open("public/orders")
        >>> stored.commit(added, removed, application, lsn)
        7
    """

    storage: Storage
    folder: str
    version: int
    """The version of the last commit."""
    files: dict[str, DataFile]
    """The table's data files by their paths."""
    load: str
    """The load that the rows began with."""
    table: TableSpec
    """The description of the table."""

    @property
    def head(self) -> Head:
        """The last commit; version and commit belong together, also while another thread commits."""

    def applied(self, application: str) -> Lsn | None:
        """Return the LSN up to which an application's commits are in the table; None if it has made none."""

    def commit(self, added: Sequence[DataFile], removed: Sequence[DataFile], application: str, lsn: Lsn) -> int:
        """Add and remove files, and record the LSN, in one commit. Returns the version."""

    def exchange(self, added: Sequence[DataFile], removed: Sequence[DataFile]) -> None:
        """Put files in the place of others with the same rows, in one commit."""

    def describe(
        self,
        table: TableSpec,
        added: Sequence[DataFile] = (),
        removed: Sequence[DataFile] = (),
        *,
        position: tuple[str, Lsn] | None = None,
    ) -> None:
        """Store another description of the table, in one commit; do nothing if the table has it already.

        Args:
            table: the description.
            added: the files with its columns, or files that are there with other statistics.
            removed: the files in whose place they are.
            position: an application id, and the LSN up to which the files have all commits; None for the same rows.
        """

    def skip(self, skipped: Skipped, application: str) -> None:
        """Store a commit of the server that is left out, and its LSN, in one commit: the table never gets its rows.

        The reason why the table is stopped goes.
        """

    def write_stopped(self, reason: str) -> None:
        """Store why the table is stopped, and its LSN, for readers; the next load removes them."""

    def keep_for(self, hours: float) -> None:
        """Store for how long old versions can be read, if that is not there yet: other programs keep to it."""

    def refuse_others(self) -> None:
        """Raise what `commit` raises if there is a commit that this process does not know; do nothing without one."""

    def read_commit(self, version: int) -> str | None:
        """Return `Head.commit` of an earlier version; None if it cannot be read any more."""

    def changed_by_others(self, known: int) -> str | None:
        """Return how another program has changed the table after its last commit of ours; None if it has not.

        Args:
            known: a version up to which that is known already; -1 for none.
        """

    @property
    def opens_slowly(self) -> bool:
        """Whether it has so many commits that it is opened slowly without upkeep."""

    def is_upkeep_due(self, keep_hours: float) -> bool:
        """Return whether there is something to do for the table."""

    def is_upkeep_urgent(self, keep_hours: float) -> bool:
        """Return whether something is so much due that it comes before batches."""

    def maintain(self, keep_hours: float) -> None:
        """Do what is due for the table's log and its old files, so little of each that it can give way to batches.

        `keep_hours` are the hours for which old versions can be read, as far as the disk's bounds allow. The files of
        the last version stay as they are: `pipeline/upkeep/` writes them anew.
        """


def last_application(stored: StoredTable, system_identifier: int, timeline: int) -> str | None:
    """Return the application id of a server's last commit to a table, up to a timeline; None without one.

    It is None for the table of another server, which a load replaces.
    """
    for number in range(timeline, -1, -1):
        application = application_id(system_identifier, number, stored.load)
        if stored.applied(application) is not None:
            return application
    return None


class TableFormat(Protocol):
    """The tables of a destination in one format.

    Example:
        >>> tables = table_format(Storage("./lake"))
        >>> stored = tables.open("public/orders")
    """

    storage: Storage
    """The destination."""

    def open(self, folder: str, version: int | None = None) -> StoredTable | None:
        """Return the table in a folder as it is at a version, by default the last one; None if that is not there.

        What is of an earlier version is for reading alone.

        Raises:
            LogDamagedError: what is there is damaged.
            ForeignTableError: it is a table of another program.
            StorageError: it cannot be read now.
        """

    def replace(self, folder: str, made: NewTable, before: StoredTable | None) -> StoredTable:
        """Make a table of its files, or replace all rows, columns and properties of the one before, in one commit.

        Files of the one before may be among them. A table that has the load already is returned as it is: the earlier
        try had succeeded, though its answer was lost. Raises what a commit raises.

        Args:
            folder: the table's folder.
            made: what the table is made of.
            before: the table that is in the folder; None if there is none.
        """

    def is_own(self, folder: str) -> bool:
        """Return whether there is a table of this package in a folder; raises what `open` does."""
        return self.open(folder) is not None

    def remove(self, folder: str) -> None:
        """Remove the table in a folder, with all of its files; another try goes on where this one ended."""
        for path in self.storage.list(folder):
            self.storage.delete(path)

    def find_folders(self) -> set[str]:
        """Return the folders of all tables of the format at the destination, also those of other programs."""
