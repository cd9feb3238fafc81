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


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a stored table: its files have all commits of the server up to an LSN."""

    application: str
    """The `application_id` of the server, the timeline and the load that the LSN is of."""
    lsn: Lsn


@dataclass(frozen=True)
class NewTable:
    """The contents of a stored table in the commit that begins a load."""

    table: TableSpec
    """The description of the table."""
    files: Sequence[DataFile]
    """Its files."""
    position: Position
    """The position of the files."""
    load: str
    """The load that its rows begin with."""
    keep_hours: float
    """The hours for which old versions can be read."""


class StoredTable(Protocol):
    """A replicated table at a destination, whose rows nobody else changes; kept open between commits.

    `tests/pipeline/formats/test_every_format.py` holds each format to what follows.

    **Threads.** One thread at a time calls the methods that commit or maintain: the loop's thread while the table
    follows, a thread of its own while the table catches up. Meanwhile other threads may read the attributes, `head`
    and `applied`. So a commit puts another dict in the place of `files`, and changes no dict in place.

    **Atomic.** Each change is one commit, which is there as a whole or not at all: files, description, properties and
    position. A commit is durable when the method returns; the checkpoint that names its version is saved later. All
    files of a commit were written, and are durable, before the method is called.

    **What survives.** `TableFormat.open` returns in another process what the last commit left: `version`, `head`,
    `load`, `table` with its skipped commits, `applied` of each application since the load, and `files`. Each file has
    its path, size, rows, statistics, and

    - its vector, or deleted rows come back;
    - its partition, or rows are merged into files of other partitions;
    - its constants, the columns that the file itself does not have, or their values are lost. A format that hides
      partitions has none.

    **Errors.** After an error the attributes are those of the commit that is there. A method that commits raises:

    - WriterError: another process of ours has committed meanwhile. Each later try raises it too.
    - DamagedError: another program has changed the rows meanwhile.
    - StorageError: the destination cannot be written; or an earlier try is there, whose answer was lost, or a commit of
      another program that left the rows as they are. The attributes are then those of that commit, and the caller
      repeats what it still needs.

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
    """The table's data files by their paths; replaced by a commit, and never changed in place."""
    load: str
    """The load that the rows began with."""
    table: TableSpec
    """The description of the table."""

    @property
    def head(self) -> Head:
        """The last commit; version and commit belong together, also while another thread commits.

        A checkpoint stores it. No two commits of a table have the same `commit`, also after a restore.
        """

    def applied(self, application: str) -> Lsn | None:
        """Return the LSN up to which an application's commits are in the table; None if it has made none.

        It decides which changes are applied after a start: an LSN that is too high loses changes, and one that is too
        low applies changes twice. Commits without a position leave it as it is.
        """

    def commit(self, added: Sequence[DataFile], removed: Sequence[DataFile], position: Position) -> int:
        """Add and remove files, and record the position, in one commit. Returns the version.

        Called for each batch of changes, which come in the order of their LSNs.

        Args:
            added: new files, or files of the table of which other rows are marked.
            removed: files of the table. A file that is in both stays, with its new marks.
            position: the position of the files; they have no commit after it.
        """

    def exchange(self, added: Sequence[DataFile], removed: Sequence[DataFile]) -> None:
        """Put files in the place of others with the same rows, in one commit, which says so to other programs.

        Called after a merge. Positions stay as they are.
        """

    def describe(
        self,
        table: TableSpec,
        added: Sequence[DataFile] = (),
        removed: Sequence[DataFile] = (),
        *,
        position: Position | None = None,
    ) -> None:
        """Store another description of the table, in one commit; do nothing if the table has it already.

        Called before the first rows with other columns, and for other settings. The comments, the features that readers
        need and the partitions of the description hold from this commit on.

        Args:
            table: the description.
            added: the files with its columns, or files that are there with other statistics.
            removed: the files in whose place they are.
            position: the position of the files; None for the same rows.
        """

    def skip(self, skipped: Skipped, application: str) -> None:
        """Store a commit of the server that is left out, and its LSN, in one commit: the table never gets its rows.

        The reason why the table is stopped goes. Called once for a commit; a repeated call does nothing.
        """

    def write_stopped(self, reason: str) -> None:
        """Store why the table is stopped, and its LSN, for readers; the next load, or `skip`, removes them.

        Called when the table stops; does nothing if the reason is there already.
        """

    def set_retention(self, hours: float) -> None:
        """Store for how long old versions can be read, if that is not there yet: other programs keep to it.

        Called once after `open`, before the first commit.
        """

    def refuse_unknown_commits(self) -> None:
        """Raise what `commit` raises if there is a commit that this process does not know; do nothing without one.

        Called after a file of the table was not found: another program's merge may have replaced it.
        """

    def read_commit(self, version: int) -> str | None:
        """Return `Head.commit` of a version; None if it cannot be read any more, or was never there.

        Called after `open`, to compare with the last checkpoint.
        """

    def foreign_change(self, proven: int) -> str | None:
        """Return how another program has changed the table after its last commit of ours; None if it has not.

        Called after `open`. A change of the rows or columns is never missed; upkeep is no change.

        Args:
            known: a version up to which that is known already; -1 for none.
        """

    @property
    def opens_slowly(self) -> bool:
        """Whether it has so many commits that it is opened slowly without upkeep; asked before the process ends."""

    def is_upkeep_due(self, keep_hours: float) -> bool:
        """Return whether there is something to do for the table; asked between batches, so without I/O."""

    def is_upkeep_urgent(self, keep_hours: float) -> bool:
        """Return whether something is so much due that it comes before batches; without I/O too."""

    def maintain(self, keep_hours: float) -> None:
        """Do what is due for the table's log and its old files, so little of each that it can give way to batches.

        `keep_hours` are the hours for which old versions can be read, as far as the disk's bounds allow. The files of
        the last version stay as they are: `pipeline/upkeep/` writes them anew. No file is deleted that the last version
        needs, that an old version needs which can be read, or that another process writes for its next commit.

        Raises DamagedError if a file of the last version is missing: nothing is deleted then.
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

    What the format can do is in `schema/table_formats.py`. Any thread may call the methods, for different folders at
    the same time.

    Example:
        >>> tables = table_format(Storage("./lake"))
        >>> stored = tables.open("public/orders")
    """

    storage: Storage
    """The destination."""

    def open(self, folder: str, version: int | None = None) -> StoredTable | None:
        """Return the table in a folder as it is at a version, by default the last one; None if that is not there.

        Called at each start and after each load, and by readers; changes nothing. What the table has is said in
        `StoredTable`. What is of an earlier version is for reading alone.

        Raises:
            LogDamagedError: what is there is damaged; it is never taken for an empty table, or for none.
            ForeignTableError: it is a table of another program.
            StorageError: it cannot be read now.
        """

    def replace(self, folder: str, new: NewTable, previous: StoredTable | None) -> StoredTable:
        """Make a table of its files, or replace all rows, columns and properties of the one before, in one commit.

        Called when a load is whole, or a table is renamed. Files of the one before may be among them, and files of
        another folder whose copies are in this one, with their vectors, partitions and constants. Readers see the old
        rows until the commit, and old versions stay for the hours that are kept. A table that has the load already is
        returned as it is: the earlier try had succeeded, though its answer was lost. Raises what a commit raises.

        Args:
            folder: the table's folder.
            made: what the table is made of.
            before: the table that is in the folder; None if there is none.
        """

    def is_own(self, folder: str) -> bool:
        """Return whether there is a table of this package in a folder, or what `remove` has left of one.

        Called before `remove`. Raises what `open` does.
        """
        return self.open(folder) is not None

    def remove(self, folder: str) -> None:
        """Remove the table in a folder, with all of its files; another try goes on where this one ended.

        Called by `drop`, and never beside a process that replicates.
        """
        for path in self.storage.list(folder):
            self.storage.delete(path)

    def find_folders(self) -> set[str]:
        """Return the folders of all tables of the format at the destination, also those of other programs."""
