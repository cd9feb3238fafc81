"""The interface of the storage of an Iceberg table's metadata: a folder or a catalog.

A commit creates the next version of the metadata by updates of the last version. All implementations share the files of
a commit; each implementation makes the metadata the last version in its own way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableUpdate

from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.storage import DamagedError, StorageError
from logicalrep_runtime.errors import LogicalRepError


@dataclass(frozen=True)
class MetadataVersion:
    number: int
    metadata: TableMetadata
    name: str
    """The version's name in errors."""


@dataclass(frozen=True)
class LaterCommits:
    last: MetadataVersion | None
    """The last version; None if the table does not exist."""
    writers: frozenset[str] = frozenset()
    """The replicate processes that have committed."""
    is_foreign: bool = False
    """Whether another program has committed."""
    changes: str | None = None
    """The change of another program; None if the rows and the columns are the same."""

    def refusal(self, uri: str) -> LogicalRepError:
        """Return the error of a commit that does not follow these commits, none of another replicate process.

        A DamagedError if another program has changed the rows; a StorageError, after which a retry succeeds, if this
        process wrote the commits, or if they left the rows unchanged. `uri` is the table's.
        """
        if self.is_foreign and self.changes is not None:
            return DamagedError(f"{uri}: {self.changes}")
        if self.writers:
            return StorageError(f"{uri}: the answer to an earlier commit was lost, but the commit exists")
        if not self.is_foreign:
            return StorageError(f"{uri}: another change came first")
        return StorageError(f"{uri}: another program committed without changing rows: replicate continues from it")


class MetadataVersions(Protocol):
    """The versions of one table's metadata, as one process sees them.

    `IcebergTable` alone calls the methods. `tests/pipeline/formats/iceberg/test_metadata_versions.py` checks each
    implementation.

    **Threads.** One thread at a time calls the methods, like the committing methods of `StoredTable`. `commit_of` does
    no I/O, and any thread calls it.

    **Numbers.** Each commit of replicate has the next number, from 1, and stores the number with its writer in the
    metadata's properties, or in its snapshot's summary where commits have snapshots. A commit of another program copies
    them or has none, and so is recognised.

    **Errors.** Every method with I/O raises the following errors; only `commit` may have changed anything then:

    - StorageError: the metadata cannot be read or written now.
    - MalformedFileError: the metadata is damaged. It is never taken for a missing table.
    - ForeignTableError: a catalog has another table under this name.
    """

    commits_snapshots: bool
    """Whether each commit has a snapshot, whose id identifies it, except commits that only remove snapshots."""
    does_upkeep: bool
    """Whether replicate, and not a catalog's service, merges files and removes old snapshots and files."""

    def find(self, number: int | None = None) -> MetadataVersion | None:
        """Return a version, by default the last version; None if it does not exist, or if upkeep has removed it.

        Called to open a table. The last version is current when the method returns. An older version is readable at
        least until `maintain` removes it.
        """

    def start(self, table: TableSpec, properties: Mapping[str, str]) -> TableMetadata:
        """Return the metadata of a table without a version, for the first commit.

        In a catalog that owns its tables, the table exists in the catalog already, or is created.
        """

    def retention(self, hours: float) -> dict[str, str]:
        """Return the properties that let the upkeep of other programs respect the hours of old versions."""

    def commit_of(self, version: MetadataVersion) -> str | None:
        """Return the identity of a version's commit among all commits with its number; None without an identity.

        Called for `Head`. The identity is equal in every process, and stays when another program does upkeep.
        """

    def commit(
        self,
        last: MetadataVersion | None,
        start: TableMetadata,
        updates: Sequence[TableUpdate],
        snapshot_id: int | None,
    ) -> MetadataVersion | None:
        """Create the next version atomically and return it; return None if `last` is no longer the last version.

        Called once for each commit of the table; all files that the updates name are durable before. The version is
        durable when the method returns it. One of all writers that commit to one `last` gets a version. All other
        writers get None, even a process that slept meanwhile, and readers never see their versions.

        After None the caller calls `follow`. After StorageError the version may exist, as the answer may have been
        lost: the caller calls `follow` before it commits again, deletes a file, or trusts `last`. If `follow` returns
        the caller among the writers, the version exists. If the answer was lost and the method finds the version by
        `snapshot_id`, it returns the version.

        Args:
            last: the last version that the caller knows; None to create the table.
            start: the metadata of `last`, or the metadata of a table without a version.
            updates: the updates from `start` to the next version.
            snapshot_id: the new snapshot's id; None without a new snapshot.
        """

    def remove(self) -> None:
        """Remove the catalog's entry of the table, if any; a repeated call does nothing.

        Called by `logicalrep drop`, before the files of the table's folder are deleted. In a catalog that owns its
        tables, the files go with the entry.
        """
        return

    def follow(self, last: MetadataVersion | None) -> LaterCommits:
        """Return the commits since a version; `last` is None for all commits.

        Called after a failed commit, and before each commit in a catalog. No commit is missed, even if `last` itself no
        longer exists, as after a restore: that is a change of another program.
        """

    def foreign_change(self, last: MetadataVersion, proven: int) -> str | None:
        """Return how another program has changed the table since replicate's last commit; None without a change.

        Called after a start. Upkeep that leaves rows and columns as they are is no change.

        Args:
            last: the last version.
            proven: a version up to which no other program has changed the table; -1 if that is unknown.
        """

    def find_needed(self) -> set[str]:
        """Return the paths within the table's folder of the metadata's existing files that are needed.

        Called before orphans are deleted: a file whose path is missing here is deleted.
        """

    @property
    def is_upkeep_due(self) -> bool:
        """Whether `maintain` has work; without I/O."""

    @property
    def is_upkeep_urgent(self) -> bool:
        """Whether the folder has so many metadata files that upkeep has to run before further batches; without I/O."""

    def maintain(self, oldest: float) -> None:
        """Do the due upkeep, such as deleting old metadata; the facts that readers of a version need are stored before.

        Called by `StoredTable.maintain`. The last `Limits.metadata_versions` versions stay, and a call after an error
        resumes where the error occurred. `oldest` is the time from which versions can be read, in seconds since 1970.
        """
