"""The differences of a stored table from a checkpoint: a restore to an earlier state, or a change of another program.

A table is committed before the checkpoint that names the commit: it may be ahead of the checkpoint, and never behind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from logicalrep.pipeline.formats.stored_table import Head, StoredTable


@dataclass(frozen=True, slots=True)
class SinceCheckpoint:
    restored: str | None = None
    """The reason why the table lacks the checkpoint's commit; None if it has the commit."""
    foreign_change: str | None = None
    """A description of another program's change; None if the rows and the columns are the same."""

    def with_companion(self, companion: SinceCheckpoint) -> SinceCheckpoint:
        """Return the differences of a table and its companion table; no other program has changed the companion."""
        return replace(self, restored=self.restored or companion.restored)


def compare(stored: StoredTable, previous: Head | None) -> SinceCheckpoint:
    """Return the differences of a table from a checkpoint with the head `previous`, None without a head.

    If the log's entry of that version was removed as too old, the later commits decide.
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
