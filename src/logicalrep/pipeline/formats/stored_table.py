"""The interface of table formats: `TableFormat` for all tables of a destination, `StoredTable` for one of them.

The other packages of the pipeline know tables only by this interface. `opening` chooses a destination's format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from logicalrep.pipeline.schema.table_facts import Skipped
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile
from logicalrep.pipeline.storage.storage import DamagedError, Storage
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn


class WriterError(LogicalRepError, RuntimeError):
    """A table to which another replicate process has committed since this process opened it."""

    code = "DESTINATION_HAS_WRITER"


class ForeignTableError(LogicalRepError, RuntimeError):
    """A table that another program created, or that has the rows of another server."""

    code = "DESTINATION_DIFFERS"


class LogDamagedError(LogicalRepError, RuntimeError):
    """A table with an unreadable log or metadata, to which replicate cannot commit."""

    code = "TABLE_LOG_DAMAGED"


class UnsupportedTableError(DamagedError):
    """A table of replicate that another program changed so that replicate cannot read it; `replace` can replace it."""

    table: StoredTable
    """The table, only for `TableFormat.replace`: `files` may be empty."""

    @classmethod
    def of(cls, table: StoredTable, text: str) -> Self:
        error = cls(text)
        error.table = table
        return error


def application_id(system_identifier: int, timeline: int, load: str) -> str:
    """Return the application id of a table's commits: LSNs are comparable only within one server, timeline and load."""
    return f"logicalrep/{system_identifier}/{timeline}/{load}"


@dataclass(frozen=True, slots=True)
class Head:
    """The last commit of a stored table."""

    version: int
    commit: str | None
    """The identity of the commit among all commits with this version; None if the commit's entry was removed."""


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a stored table: its files have all commits of the server up to an LSN."""

    application: str
    """The `application_id` of the LSN's server, timeline and load."""
    lsn: Lsn


@dataclass(frozen=True)
class NewTable:
    """The contents of a table after a load or a rename."""

    table: TableSpec
    files: Sequence[DataFile]
    """All data files, by paths in the table's folder."""
    position: Position
    load: str
    """The id of the load, which no other load has."""
    keep_hours: float
    """The hours for which readers can open a version that was replaced."""


class StoredTable(Protocol):
    """A table at a destination, which a process opens once and then commits to; replicate alone changes its rows.

    `tests/pipeline/formats/test_every_format.py` checks each format.

    **Threads.** One thread at a time calls the methods that commit or maintain: while the table follows, the loop's
    thread, or a thread for which the loop waits; while the table catches up, a thread of its own. Meanwhile other
    threads may read the attributes, `head` and `applied`. So a commit replaces the dict `files`, and never changes a
    dict in place.

    **Atomic.** Each change of files, description, properties and position is one commit, which exists as a whole or
    not at all. A commit is durable when the method returns; the checkpoint that names its version is saved later. The
    caller has written all data files of the commit, durably, before the call.

    **What survives.** In another process `TableFormat.open` returns the state after the last commit: `version`, `head`,
    `load`, `table` with its skipped commits, `applied` of each application since the load, and `files`. Each file has
    its path, size, number of rows, statistics, and

    - its deletion vector: without the vector, deleted rows reappear;
    - its partition: without the partition, rows are merged into files of other partitions;
    - its constants, the values of columns that the file itself lacks: without the constants, these values are lost. A
      format that hides partitions has no constants.

    **Errors.** After an error the attributes have the state after the last commit that exists. A method that commits
    raises:

    - WriterError: another replicate process has committed meanwhile. Each later call raises it too.
    - DamagedError: another program has changed the rows meanwhile.
    - StorageError: the destination cannot be written; or the commit of an earlier call exists, although its answer was
      lost; or another program has committed without a change of the rows. In the last two cases the attributes have the
      state after that commit, and the caller repeats the calls that it still needs.

    Example:
        >>> stored = tables.open("public/orders")
        >>> stored.commit(added, removed, Position(application, lsn))
        7
    """

    storage: Storage
    folder: str
    version: int
    """The version of the last commit, a number that grows with each commit."""
    files: dict[str, DataFile]
    """The table's data files by path; a commit replaces the dict and never changes it in place."""
    load: str
    """The id of the load that replaced all rows last."""
    table: TableSpec
    does_upkeep: bool = True
    """Whether replicate, and not a catalog's service, merges files and removes old versions and files."""

    @property
    def head(self) -> Head:
        """The last commit, which a checkpoint stores; consistent even while another thread commits.

        No two commits of a table have the same `commit`, not even after a restore of the table.
        """

    def applied(self, application: str) -> Lsn | None:
        """Return the LSN up to and including which the table has an application's commits; None if it has none.

        After a start, changes after this LSN are applied: a higher LSN would lose changes, a lower LSN would apply
        changes twice. A commit without a position does not change the LSN.
        """

    def commit(self, added: Sequence[DataFile], removed: Sequence[DataFile], position: Position) -> int:
        """Add and remove files, and record the position, in one commit; return the new version.

        Called for each batch of changes, in the order of their LSNs.

        Args:
            added: new files, or files of the table with another deletion vector.
            removed: files of the table. A file in both `added` and `removed` stays, with the vector of `added`.
            position: the position of the table after the commit.
        """

    def exchange(self, added: Sequence[DataFile], removed: Sequence[DataFile]) -> None:
        """Replace files by files with the same rows, in one commit that is marked as a change of no row.

        Called after a merge. The position does not change.
        """

    def describe(
        self,
        table: TableSpec,
        added: Sequence[DataFile] = (),
        removed: Sequence[DataFile] = (),
        *,
        position: Position | None = None,
    ) -> None:
        """Store another description of the table in one commit; do nothing if the table has the description already.

        Called before the first rows with other columns, and after a change of settings. From this commit on, the table
        has the comments and the partitions of the description, and requires the features that its readers need.

        Args:
            table: the description.
            added: files with the description's columns, or files of the table with other statistics.
            removed: the files that `added` replaces.
            position: the position of the table after the commit; None if no row changes.
        """

    def skip(self, skipped: Skipped, application: str) -> None:
        """Store a skipped commit of the server, with its LSN as the position, in one commit of the table.

        The table never gets the changes of the skipped commit. The commit also removes the stored stop reason. Called
        once for each skipped commit; a repeated call does nothing.
        """

    def write_stopped(self, reason: str) -> None:
        """Store for readers why the table is stopped; the next load, or `skip`, removes the reason.

        Called when the table stops. Does nothing if the table has the reason already.

        Args:
            reason: a text that also names the LSN of the table.
        """

    def set_retention(self, hours: float) -> None:
        """Store the hours for which old versions can be read, so that the upkeep of other programs respects them.

        Called once after `open`, before the first commit. Does nothing if the table has these hours already.
        """

    def refuse_unknown_commits(self) -> None:
        """Raise the error of `commit` if the table has a commit that this process does not know.

        Called after a file of the table was not found, as another program's merge may have replaced the file.
        """

    def read_commit(self, version: int) -> str | None:
        """Return the `Head.commit` of a version; None if the entry of the version was removed or never existed.

        Called after `open`, to compare with the last checkpoint.
        """

    def foreign_change(self, proven: int) -> str | None:
        """Return how another program has changed rows or columns of the table; None if none has.

        Called after `open`. Such a change is never missed. Upkeep, such as a merge of files, is no such change.

        Args:
            proven: a version up to which no other program has changed the table; -1 if no such version is known.
        """

    @property
    def opens_slowly(self) -> bool:
        """Whether the next `open` will be slow without upkeep, as after many commits; read before the process exits."""

    def is_upkeep_due(self, keep_hours: float) -> bool:
        """Return whether `maintain` has work; called between batches, so without I/O."""

    def is_upkeep_urgent(self, keep_hours: float) -> bool:
        """Return whether `maintain` must run before further batches; called between batches, so without I/O."""

    def maintain(self, keep_hours: float) -> None:
        """Do a part of the due upkeep of the table's log and old files, small enough that batches need not wait long.

        The files of the last version do not change: `pipeline/upkeep/` rewrites them. A file is not deleted if the last
        version or a readable old version needs it, or if another process may be writing it for its next commit.

        Args:
            keep_hours: the hours for which old versions can be read, unless the limits of disk space are reached.

        Raises:
            DamagedError: a file of the last version is missing. Nothing is deleted.
        """


def last_application(stored: StoredTable, system_identifier: int, timeline: int) -> str | None:
    """Return the application id of a server's last commit to a table, on a timeline or an earlier one.

    None if the table has no commit of the server: the rows are of another server.
    """
    for number in range(timeline, -1, -1):
        application = application_id(system_identifier, number, stored.load)
        if stored.applied(application) is not None:
            return application
    return None


class TableFormat(Protocol):
    """The tables of a destination, which all have one format.

    `schema/table_formats.py` has the abilities of the format. Several threads may call the methods at the same time,
    each for another folder.

    Example:
        >>> tables = table_format(Storage("./lake"))
        >>> stored = tables.open("public/orders")
    """

    storage: Storage

    def open(self, folder: str, version: int | None = None) -> StoredTable | None:
        """Return the table in a folder at a version, by default the last version; None if it does not exist.

        Called at each start and after each load, and by readers; changes nothing. `StoredTable` specifies the state of
        the returned table. An earlier version can only be read.

        Raises:
            LogDamagedError: the table is damaged. A damaged table never counts as empty or missing.
            UnsupportedTableError: another program changed the table so that replicate cannot read it.
            ForeignTableError: the table belongs to another program.
            StorageError: the table cannot be read now.
        """

    def open_to_replace(self, folder: str) -> tuple[StoredTable | None, str | None]:
        """Return the table in a folder as `open` does; and if replicate cannot read the table, the reason.

        A table with a reason is only for `replace`. Raises the other errors of `open`.
        """
        try:
            return self.open(folder), None
        except UnsupportedTableError as error:
            return error.table, error.description

    def prepare(self, folder: str, table: TableSpec) -> None:
        """Prepare a folder for the first files of a table; a repeated call does nothing.

        Called before a load or a rename writes files into the folder. A catalog that owns its tables chooses their
        location now, and readers find a table without rows until the load ends.
        """
        return

    def replace(self, folder: str, new: NewTable, previous: StoredTable | None) -> StoredTable:
        """Create a table, or replace all rows, columns and properties of the previous table, in one commit.

        Called when a load is complete, and for a renamed table. The new files may include files of the previous table,
        and files that were copied from another folder, with their vectors, partitions and constants. Readers see the
        old rows until the commit; old versions can be read for `keep_hours`. If the table has the load already, it is
        returned unchanged: an earlier call succeeded, and its answer was lost. Raises the errors of
        `StoredTable.commit`.

        Args:
            folder: the table's folder.
            new: the contents of the new table.
            previous: the table in the folder; None if the folder has no table.
        """

    @property
    def are_registered(self) -> bool:
        """Whether `register` enters tables in a catalog."""
        return False

    def register(self, folder: str, table: TableSpec) -> None:
        """Enter the table in a folder, with its columns, in a catalog that has no part in its commits.

        Called after a load, at each start, and after each change of `table`, in another thread than the commits.
        Raises ForeignTableError if the catalog has another table of this name, or CatalogError; every call can be
        repeated.
        """
        return

    def is_own(self, folder: str) -> bool:
        """Return whether a folder has a table of replicate, or the rest of such a table after a failed `remove`.

        Called before `remove`. Raises the errors of `open`.
        """
        return self.open_to_replace(folder)[0] is not None

    def remove(self, folder: str) -> None:
        """Remove the table in a folder, with all of its files. After an error, a repeated call removes the rest.

        Called by `logicalrep drop`, and never while a process replicates.
        """
        for path in self.storage.list(folder):
            self.storage.delete(path)

    def find_folders(self) -> set[str]:
        """Return the folders of all tables of the format at the destination, including tables of other programs."""
