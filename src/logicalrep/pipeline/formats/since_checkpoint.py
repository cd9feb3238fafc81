"""What has happened to a stored table since a checkpoint: it was restored to an earlier state, or others changed it.

A table is committed before the checkpoint that names the commit: it may be ahead of the checkpoint, and never behind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from logicalrep.pipeline.formats.stored_table import Head, StoredTable


@dataclass(frozen=True, slots=True)
class SinceCheckpoint:
    """The differences of a stored table from what a checkpoint says."""

    restored: str | None = None
    """The reason why the table lacks a commit that it had; None if it has that commit."""
    foreign_change: str | None = None
    """A description of what another program changed; None if the rows and the columns are the same."""

    def with_companion(self, companion: SinceCheckpoint) -> SinceCheckpoint:
        """Return the differences of a table and of a companion table of it, which other programs have not changed."""
        return replace(self, restored=self.restored or companion.restored)


def compare(stored: StoredTable, previous: Head | None) -> SinceCheckpoint:
    """Return what has happened to a table since a checkpoint, which had `known` as its last commit, or None for none.

    Where the commit of that version cannot be read any more, as old entries of a log go, the later ones decide.
    """
    if previous is None:
        return SinceCheckpoint(None, stored.foreign_change(-1))
    head, uri = stored.head, stored.storage.uri_of(stored.folder)
    if head.version < previous.version:
        return SinceCheckpoint(
            f"{uri} is at version {head.version}, before version {previous.version} of the last checkpoint: it was "
            "restored to an earlier state"
        )
    commit = head.commit if head.version == previous.version else stored.read_commit(previous.version)
    if commit is not None and previous.commit not in (None, commit):
        return SinceCheckpoint(
            f"version {previous.version} of {uri} is another commit than at the last checkpoint: it was restored to an "
            "earlier state, and changed since"
        )
    is_proven = previous.commit in (None, commit)
    return SinceCheckpoint(None, stored.foreign_change(previous.version if is_proven else -1))
