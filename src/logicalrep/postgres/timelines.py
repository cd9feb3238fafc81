"""Timelines, which tell whether a server's WAL contains a reader's position: after a restore the LSN alone does not.

A server that is promoted, or recovered to a point in time, continues on a new timeline. The history of that timeline
has the LSN at which it left the one before. A reader that had passed that LSN has read changes that never happened on
the new timeline, and would skip those that happened instead under the same LSNs. Sources: "Timelines" in the chapter on
backups, and TIMELINE_HISTORY in "Streaming Replication Protocol".
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import psycopg
from psycopg import pq
from psycopg.rows import TupleRow

from logicalrep.postgres.connection import ConnectionSettings, error_of, settings_of
from logicalrep_runtime.scalars import Lsn


@dataclass(frozen=True, slots=True)
class Timeline:
    """A timeline of a database cluster."""

    system_identifier: int
    """The cluster's identifier, which its copies share."""
    id: int
    """The number: 1 at first, and one more after each promotion or recovery to a point in time."""
    began: Lsn | None = None
    """The LSN at which it left the one before; None for the first timeline, and if unknown.

    Two servers that were promoted from one backup have timelines of the same number with different starts.
    """


@dataclass(frozen=True, slots=True)
class WalPosition:
    """A position in the WAL of a server."""

    lsn: Lsn
    timeline: Timeline | None
    """The server's timeline; None on a standby, whose timeline may change at any time."""


def why_not_part_of(settings: ConnectionSettings, position: WalPosition, now: Timeline | None) -> str | None:
    """Return the reason why the WAL of a server on the timeline `now` does not contain a position; None if it may.

    If the position was reached on another timeline, the server is asked for the history of `now`.
    """
    then = position.timeline
    if then is None or now is None or then == now:
        return None
    if then.system_identifier != now.system_identifier:
        return (
            f"this reader is at {position.lsn} of system {then.system_identifier}, but the server is system "
            f"{now.system_identifier}: it is another one, or was upgraded"
        )
    is_same = then.id == now.id
    points = {} if is_same else query_switch_points(settings, now.id)
    began = now.began if is_same else _last_before(points, then.id)
    if then.began is not None and began is not None and then.began != began and position.lsn > min(then.began, began):
        return (
            f"this reader is at {position.lsn} of a timeline {then.id} that began at {then.began}, but the server's "
            f"timeline {then.id} began at {began}: both servers come from one backup and have diverged"
        )
    left = position.lsn if is_same else points.get(then.id)
    if left is not None and left >= position.lsn:
        return None
    where = "does not come from that" if left is None else f"left that at {left}"
    return (
        f"this reader is at {position.lsn} of timeline {then.id}, but the server is on timeline {now.id}, which "
        f"{where}: it was restored from a backup, or took over from a server that was ahead of it"
    )


def query_switch_points(settings: ConnectionSettings, timeline_id: int) -> dict[int, Lsn]:
    """Return the timelines before one in its history, each with the LSN at which it was left."""
    if timeline_id == 1:
        return {}
    with settings.connect(replication=True) as connection:
        return _query_history(connection, timeline_id)


def query_beginning(connection: psycopg.Connection[TupleRow], timeline: Timeline) -> Timeline:
    """Return the timeline of a connection's server with its start.

    The server is asked once after each of its starts. The query takes a walsender: the start stays unknown while none
    is free, and if the server has lost the history of the timeline.
    """
    if timeline.id == 1:
        return timeline
    row = connection.execute(
        "SELECT pg_postmaster_start_time()::text, "
        "current_setting('max_wal_senders')::int > (SELECT count(*) FROM pg_stat_get_wal_senders())"
    ).fetchone()
    assert row is not None
    started, is_walsender_free = row
    is_walsender = "replication" in connection.info.get_parameters()
    if (timeline, started) not in _BEGINNINGS:
        if not is_walsender and not is_walsender_free:
            return timeline
        points: dict[int, Lsn] = {}
        with suppress(psycopg.errors.UndefinedFile):
            if is_walsender:
                points = _query_history(connection, timeline.id)
            else:
                points = query_switch_points(settings_of(connection), timeline.id)
        _BEGINNINGS[timeline, started] = _last_before(points, timeline.id)
    return replace(timeline, began=_BEGINNINGS[timeline, started])


_BEGINNINGS: dict[tuple[Timeline, str], Lsn | None] = {}
"""The start of each timeline by the server's start time: another server may have a timeline of the same number."""


def _query_history(connection: psycopg.Connection[TupleRow], timeline_id: int) -> dict[int, Lsn]:
    result = connection.pgconn.exec_(f"TIMELINE_HISTORY {timeline_id}".encode())
    if result.status != pq.ExecStatus.TUPLES_OK:
        raise error_of(result)
    content = result.get_value(0, 1) or b""
    lines = (line.split() for line in content.decode(errors="replace").splitlines())
    return {int(fields[0]): Lsn(fields[1]) for fields in lines if fields and not fields[0].startswith("#")}


def _last_before(points: dict[int, Lsn], timeline_id: int) -> Lsn | None:
    """Return the start of a timeline in a history, which is the LSN at which the one before was left."""
    return max((lsn for earlier, lsn in points.items() if earlier < timeline_id), default=None)
