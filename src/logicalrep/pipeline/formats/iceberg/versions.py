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
    """The versions of one table's metadata.

    Methods raise StorageError where they cannot be read or written now, and MalformedFileError where one is damaged.
    """

    commits_snapshots: bool
    """Whether each commit has a snapshot, by whose id it is found, but for those that only remove some."""

    def find(self, number: int | None = None) -> MetadataVersion | None:
        """Return a version, by default the last one; None if it is not there."""

    def commit_of(self, version: MetadataVersion) -> str | None:
        """Return what tells the commit of a version from every other commit with its number; None if nothing does."""

    def commit(
        self,
        last: MetadataVersion | None,
        start: TableMetadata,
        updates: Sequence[TableUpdate],
        snapshot_id: int | None,
    ) -> MetadataVersion | None:
        """Make the next version, in one step; return it, or None if `last` is not the last one any more.

        Args:
            last: the last version as far as it is known; None to make the table.
            start: its metadata, or that of a table without any version yet.
            updates: what makes the next one of it.
            snapshot_id: the new snapshot's id; None without one.
        """

    def follow(self, last: MetadataVersion | None) -> LaterCommits:
        """Return what has been committed since a version; None for one before all."""

    def changed_by_others(self, last: MetadataVersion, known: int) -> str | None:
        """Return how another program has changed the table since its last commit of ours; None if it has not.

        Args:
            last: the last version.
            known: the number of a version up to which that is known already; -1 for none.
        """

    def find_needed(self) -> set[str]:
        """Return the paths in the table's folder of the metadata's own files that are there and needed."""

    @property
    def is_upkeep_due(self) -> bool:
        """Whether there is something to do for the metadata's own files."""

    @property
    def is_upkeep_urgent(self) -> bool:
        """Whether too many of them are there."""

    def maintain(self, oldest: float) -> None:
        """Do what is due, such as deleting old metadata; what reading the versions takes stays.

        `oldest` is the time from which on versions can be read, in seconds since 1970.
        """
