"""The interface of table formats: a destination's tables in a format, and one stored table.

The other packages of the pipeline use this interface alone. `opening` chooses the format of a destination.
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
    """A commit that another replicate process wrote meanwhile."""

    code = "DESTINATION_HAS_WRITER"


class ForeignTableError(LogicalRepError, RuntimeError):
    """A table of another program, or a copy of another server's table."""

    code = "DESTINATION_DIFFERS"


class LogDamagedError(LogicalRepError, RuntimeError):
    """A table whose log or metadata cannot be read: replicate cannot commit to it."""

    code = "TABLE_LOG_DAMAGED"


def application_id(system_identifier: int, timeline: int, load: str) -> str:
    """Return the application id of a table's commits, which separates the LSNs of servers, timelines and loads."""
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
    table: TableSpec
    """The description of the table."""
    files: Sequence[DataFile]
    position: Position
    """The position of the files."""
    load: str
    """The load that the rows begin with."""
    keep_hours: float
    """The hours for which old versions can be read."""


class StoredTable(Protocol):
    """A replicated table at a destination, open between commits; replicate alone changes its rows.

    `tests/pipeline/formats/test_every_format.py` checks each format.

    **Threads.** One thread at a time calls the methods that commit or maintain: the loop's thread while the table
    follows, the table's own thread while it catches up. Meanwhile other threads may read the attributes, `head` and
    `applied`. So a commit replaces the dict `files`, and never changes a dict in place.

    **Atomic.** Each change is one commit, which exists as a whole or not at all: files, description, properties and
    position. A commit is durable when the method returns; the checkpoint that names its version is saved later. All
    files of a commit were written, and are durable, before the method is called.

    **What survives.** `TableFormat.open` returns in another process the state of the last commit: `version`, `head`,
    `load`, `table` with its skipped commits, `applied` of each application since the load, and `files`. Each file has
    its path, size, rows, statistics, and

    - its vector: without it, deleted rows reappear;
    - its partition: without it, rows are merged into files of other partitions;
    - its constants, the columns that the file itself lacks: without them, their values are lost. A format that hides
      partitions has no constants.

    **Errors.** After an error the attributes are the state of the last existing commit. A method that commits raises:

    - WriterError: another replicate process has committed meanwhile. Each later call raises it too.
    - DamagedError: another program has changed the rows meanwhile.
    - StorageError: the destination cannot be written; or the commit of an earlier call, whose answer was lost, exists;
      or another program has committed without a change of the rows. In the last two cases the attributes are the state
      of that commit, and the caller repeats the calls that it still needs.

    Example:
        >>> stored = tables.open("public/orders")
        >>> stored.commit(added, removed, Position(application, lsn))
        7
    """

    storage: Storage
    folder: str
    version: int
    """The version of the last commit."""
    files: dict[str, DataFile]
    """The table's data files by path; a commit replaces the dict and never changes it in place."""
    load: str
    """The load that the rows began with."""
    table: TableSpec
    """The description of the table."""

    @property
    def head(self) -> Head:
        """The last commit; `version` and `commit` are consistent, also while another thread commits.

        A checkpoint stores the head. No two commits of a table have the same `commit`, also after a restore.
        """

    def applied(self, application: str) -> Lsn | None:
        """Return the LSN up to which the table has an application's commits; None without commits of the application.

        The LSN decides which changes are applied after a start: a higher LSN would lose changes, and a lower LSN would
        apply changes twice. Commits without a position do not change it.
        """

    def commit(self, added: Sequence[DataFile], removed: Sequence[DataFile], position: Position) -> int:
        """Add and remove files, and record the position, in one commit. Returns the version.

        Called for each batch of changes, in the order of their LSNs.

        Args:
            added: new files, or files of the table with another deletion vector.
            removed: files of the table. A file that is in both stays, with its new vector.
            position: the position of the files, which have no later commit of the server.
        """

    def exchange(self, added: Sequence[DataFile], removed: Sequence[DataFile]) -> None:
        """Replace files by files with the same rows, in one commit that tells other programs so.

        Called after a merge. Positions do not change.
        """

    def describe(
        self,
        table: TableSpec,
        added: Sequence[DataFile] = (),
        removed: Sequence[DataFile] = (),
        *,
        position: Position | None = None,
    ) -> None:
        """Store another description of the table, in one commit; do nothing if the table has the description already.

        Called before the first rows with other columns, and for other settings. From this commit on, the table has the
        description's comments, partitions and the features that readers need.

        Args:
            table: the description.
            added: files with the description's columns, or files of the table with other statistics.
            removed: the files that `added` replaces.
            position: the position of the files; None for the same rows.
        """

    def skip(self, skipped: Skipped, application: str) -> None:
        """Store a skipped commit of the server, with its LSN as the position, in one commit of the table.

        The table never gets the rows of the skipped commit. The stored stop reason is removed. Called once for a
        skipped commit; a repeated call does nothing.
        """

    def write_stopped(self, reason: str) -> None:
        """Store the stop reason, with its LSN, for readers; the next load, or `skip`, removes it.

        Called when the table stops; does nothing if the table has the reason already.
        """

    def set_retention(self, hours: float) -> None:
        """Store the hours for which old versions can be read, unless they are stored: other programs respect them.

        Called once after `open`, before the first commit.
        """

    def refuse_unknown_commits(self) -> None:
        """Raise the error of `commit` if the table has a commit that this process does not know.

        Called after a file of the table was not found: another program's merge may have replaced it.
        """

    def read_commit(self, version: int) -> str | None:
        """Return `Head.commit` of a version; None if its entry was removed, or if the version never existed.

        Called after `open`, to compare with the last checkpoint.
        """

    def foreign_change(self, proven: int) -> str | None:
        """Return how another program has changed the table after replicate's last commit; None without a change.

        Called after `open`. A change of the rows or columns is never missed; upkeep is no change.

        Args:
            proven: a version up to which no other program has changed the table; -1 if that is unknown.
        """

    @property
    def opens_slowly(self) -> bool:
        """Whether the next open is slow without upkeep, after many commits; read before the process exits."""

    def is_upkeep_due(self, keep_hours: float) -> bool:
        """Return whether `maintain` has work; called between batches, so without I/O."""

    def is_upkeep_urgent(self, keep_hours: float) -> bool:
        """Return whether upkeep has to run before further batches; called between batches, so without I/O."""

    def maintain(self, keep_hours: float) -> None:
        """Do a small part of the due upkeep of the table's log and old files, so that batches need not wait long.

        `keep_hours` are the hours for which old versions can be read, unless the limits of disk space are reached. The
        files of the last version do not change: `pipeline/upkeep/` rewrites them. No file is deleted that the last
        version needs, that a readable old version needs, or that another process writes for its next commit.

        Raises DamagedError if a file of the last version is missing: nothing is deleted then.
        """


def last_application(stored: StoredTable, system_identifier: int, timeline: int) -> str | None:
    """Return the application id of a server's last commit to a table, up to a timeline; None without a commit.

    The table of another server, which a load replaces, has no such commit.
    """
    for number in range(timeline, -1, -1):
        application = application_id(system_identifier, number, stored.load)
        if stored.applied(application) is not None:
            return application
    return None


class TableFormat(Protocol):
    """The tables of a destination in one format.

    `schema/table_formats.py` has the abilities of the format. Any thread may call the methods, also concurrently for
    different folders.

    Example:
        >>> tables = table_format(Storage("./lake"))
        >>> stored = tables.open("public/orders")
    """

    storage: Storage

    def open(self, folder: str, version: int | None = None) -> StoredTable | None:
        """Return the table in a folder at a version, by default the last version; None if it does not exist.

        Called at each start and after each load, and by readers; changes nothing. `StoredTable` specifies the state of
        the returned table. An earlier version is for reading alone.

        Raises:
            LogDamagedError: the table is damaged; it is never taken for an empty or a missing table.
            ForeignTableError: the table belongs to another program.
            StorageError: the table cannot be read now.
        """

    def replace(self, folder: str, new: NewTable, previous: StoredTable | None) -> StoredTable:
        """Create a table, or replace all rows, columns and properties of the previous table, in one commit.

        Called when a load is complete, or a table is renamed. The new files may include files of the previous table,
        and copies in this folder of another folder's files, with their vectors, partitions and constants. Readers see
        the old rows until the commit, and old versions stay for the hours of the retention. A table that has the load
        already is returned unchanged: an earlier call succeeded, and its answer was lost. Raises the errors of a
        commit.

        Args:
            folder: the table's folder.
            new: the contents of the new table.
            previous: the table in the folder; None if the folder has no table.
        """

    def is_own(self, folder: str) -> bool:
        """Return whether a folder has a table of replicate, or the rest of such a table after a failed `remove`.

        Called before `remove`. Raises the errors of `open`.
        """
        return self.open(folder) is not None

    def remove(self, folder: str) -> None:
        """Remove the table in a folder, with all of its files; a retry resumes after an error.

        Called by `drop`, and never while a process replicates.
        """
        for path in self.storage.list(folder):
            self.storage.delete(path)

    def find_folders(self) -> set[str]:
        """Return the folders of all tables of the format at the destination, including tables of other programs."""
