"""The progress of the copying of a table's rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """The copying of a table's rows under a snapshot."""

    rows: int
    """The number of rows that are copied; it grows with each part of the table."""
    estimate: int
    """About how many there are, as the server estimates; 0 if it does not know."""
    snapshot_since: str
    """The server's time since when the snapshot is held, ISO 8601 in UTC: until the copying ends, it holds back VACUUM.
    """
