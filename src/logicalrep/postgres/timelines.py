"""Timelines: after a restore they show whether a server's WAL contains a reader's position; the LSN alone does not.

A server that is promoted, or recovered to a point in time, continues on a new timeline. The new timeline's history has
the LSN at which it left the previous timeline. A reader past this LSN has read changes that the new timeline does not
have, and would skip the new timeline's changes with the same LSNs. Sources: "Timelines" in the chapter on backups, and
TIMELINE_HISTORY in "Streaming Replication Protocol".
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
    system_identifier: int
    id: int
    """The number: initially 1, incremented by each promotion or recovery to a point in time."""
    began: Lsn | None = None
    """The LSN at which it left the previous timeline; None for the first timeline, and if unknown.

    Two servers promoted from the same backup have timelines with the same number and different starts.
    """


@dataclass(frozen=True, slots=True)
class WalPosition:
    lsn: Lsn
    timeline: Timeline | None
    """The server's timeline; None on a standby, whose timeline may change."""


def wal_divergence_reason(
    settings: ConnectionSettings, position: WalPosition, current_timeline: Timeline | None
) -> str | None:
    """Return why the WAL of a server on `current_timeline` does not contain a position; None if it may contain it.

    If the position is on another timeline, the function queries the history of `current_timeline`.
    """
    reached_timeline = position.timeline
    if reached_timeline is None or current_timeline is None or reached_timeline == current_timeline:
        return None
    if reached_timeline.system_identifier != current_timeline.system_identifier:
        return (
            f"this reader is at {position.lsn} of system {reached_timeline.system_identifier}, but the server is "
            f"system {current_timeline.system_identifier}: it is another one, or was upgraded"
        )
    is_same = reached_timeline.id == current_timeline.id
    points = {} if is_same else query_switch_points(settings, current_timeline.id)
    began = current_timeline.began if is_same else _last_before(points, reached_timeline.id)
    if (
        reached_timeline.began is not None
        and began is not None
        and reached_timeline.began != began
        and position.lsn > min(reached_timeline.began, began)
    ):
        return (
            f"this reader is at {position.lsn} of a timeline {reached_timeline.id} that began at "
            f"{reached_timeline.began}, but the server's timeline {reached_timeline.id} began at {began}: both servers "
            "come from one backup and have diverged"
        )
    switch_point = position.lsn if is_same else points.get(reached_timeline.id)
    if switch_point is not None and switch_point >= position.lsn:
        return None
    where = "does not descend from it" if switch_point is None else f"left it at {switch_point}"
    return (
        f"this reader is at {position.lsn} of timeline {reached_timeline.id}, but the server is on timeline "
        f"{current_timeline.id}, which {where}: it was restored from a backup, or took over from a server that was "
        "ahead of it"
    )


def query_switch_points(settings: ConnectionSettings, timeline_id: int) -> dict[int, Lsn]:
    """Return the earlier timelines in a timeline's history, each with the LSN at which it was left."""
    if timeline_id == 1:
        return {}
    with settings.connect(replication=True) as connection:
        return _query_history(connection, timeline_id)


def query_beginning(connection: psycopg.Connection[TupleRow], timeline: Timeline) -> Timeline:
    """Return the timeline with its start, which is queried once per start of the server.

    The start is unknown while no walsender is free, and if the server lacks the timeline's history.
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
"""The starts by timeline and server start time: another server may have a timeline with the same number."""


def _query_history(connection: psycopg.Connection[TupleRow], timeline_id: int) -> dict[int, Lsn]:
    result = connection.pgconn.exec_(f"TIMELINE_HISTORY {timeline_id}".encode())
    if result.status != pq.ExecStatus.TUPLES_OK:
        raise error_of(result)
    content = result.get_value(0, 1) or b""
    lines = (line.split() for line in content.decode(errors="replace").splitlines())
    return {int(fields[0]): Lsn(fields[1]) for fields in lines if fields and not fields[0].startswith("#")}


def _last_before(points: dict[int, Lsn], timeline_id: int) -> Lsn | None:
    # A timeline starts where the previous timeline was left.
    return max((lsn for earlier, lsn in points.items() if earlier < timeline_id), default=None)
