"""The interface of where an Iceberg table's metadata is: its last version is found there, and the next one made.

A commit makes the metadata of the next version by updates of the last one. There is one way to write what a commit
needs, and each place of the metadata is another way to make it the last version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableUpdate


@dataclass(frozen=True)
class MetadataVersion:
    """A version of a table's metadata."""

    number: int
    metadata: TableMetadata
    name: str
    """What errors call it."""


@dataclass(frozen=True)
class LaterCommits:
    """What has been committed since a version."""

    last: MetadataVersion | None
    """The last version; None if the table is not there."""
    writers: frozenset[str] = frozenset()
    """The processes of ours that have committed."""
    is_foreign: bool = False
    """Whether another program has committed."""
    changes: str | None = None
    """What other programs have changed; None if the rows and the columns are the same."""


class MetadataVersions(Protocol):
    """The versions of one table's metadata, as one process sees them.

    `IcebergTable` alone calls the methods. `tests/pipeline/formats/iceberg/test_metadata_versions.py` holds each
    implementation to what follows.

    **Threads.** One thread at a time calls the methods, as those of `StoredTable` that commit or maintain. `commit_of`
    does no I/O, and any thread calls it.

    **Numbers.** Each commit of ours has the next number, from 1, and stores it with its writer in the metadata's
    properties, or in its snapshot's summary where a commit has a snapshot: another program's commit copies them, or
    has none, and is recognised.

    **Errors.** Every method with I/O raises, and changes nothing then but by `commit`:

    - StorageError: the metadata cannot be read or written now.
    - MalformedFileError: the metadata is damaged. It is never taken for no table.
    - ForeignTableError: a catalog has another table under this name.
    """

    commits_snapshots: bool
    """Whether each commit has a snapshot, by whose id it is found, but for those that only remove some."""

    def find(self, number: int | None = None) -> MetadataVersion | None:
        """Return a version, by default the last one; None if it does not exist, or cannot be read after upkeep.

        Called to open a table. The last version is current when the method returns. An older version is readable at
        least until `maintain` has removed it.
        """

    def commit_of(self, version: MetadataVersion) -> str | None:
        """Return what tells the commit of a version from every other commit with its number; None if nothing does.

        Called for `Head`. It is equal in every process, and stays when another program does upkeep.
        """

    def commit(
        self,
        last: MetadataVersion | None,
        start: TableMetadata,
        updates: Sequence[TableUpdate],
        snapshot_id: int | None,
    ) -> MetadataVersion | None:
        """Make the next version, in one step; return it, or None if `last` is not the last one any more.

        Called once for each commit of the table; all files that the updates name are durable before. The version is
        durable when the method returns it. Of all writers that commit to one `last`, one gets a version, and so does a
        process that slept meanwhile: it gets None, and readers never see what it wrote.

        After None the caller calls `follow`. After StorageError nobody knows whether the version exists, as the answer
        may have been lost: the caller calls `follow` before it commits again, deletes a file, or trusts `last`; there
        its own name among the writers says that the version exists. If the answer was lost and the version is found by
        `snapshot_id`, the method returns it.

        Args:
            last: the last version as far as it is known; None to make the table.
            start: its metadata, or that of a table without any version yet.
            updates: what makes the next one of it.
            snapshot_id: the new snapshot's id; None without one.
        """

    def follow(self, last: MetadataVersion | None) -> LaterCommits:
        """Return what has been committed since a version; None for one before all.

        Called after a commit that failed, and before each commit in a catalog. No commit is missed, also when `last`
        itself is gone, as after a restore: that is a change of another program.
        """

    def foreign_change(self, last: MetadataVersion, proven: int) -> str | None:
        """Return how another program has changed the table since its last commit of ours; None if it has not.

        Called after a start. Upkeep that leaves rows and columns as they are is no change.

        Args:
            last: the last version.
            known: the number of a version up to which that is known already; -1 for none.
        """

    def find_needed(self) -> set[str]:
        """Return the paths in the table's folder of the metadata's own files that are there and needed.

        Called before files that nobody needs are deleted: a path that is missing here is deleted.
        """

    @property
    def is_upkeep_due(self) -> bool:
        """Whether there is something to do for the metadata's own files; without I/O."""

    @property
    def is_upkeep_urgent(self) -> bool:
        """Whether the folder has so many of these files that upkeep comes before batches; without I/O."""

    def maintain(self, oldest: float) -> None:
        """Do what is due, such as deleting old metadata; what reading the versions takes is stored before.

        Called by `StoredTable.maintain`. The last `Limits.metadata_versions` versions stay, and another try goes on
        where an error ended this one. `oldest` is the time from which on versions can be read, in seconds since 1970.
        """
