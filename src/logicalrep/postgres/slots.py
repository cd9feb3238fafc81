"""A replication slot through SQL: what it is, how far it is, making it, moving it on. Needs psycopg 3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import psycopg
from psycopg.rows import dict_row

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.retries import Retries
from logicalrep.postgres.timelines import Timeline, WalPosition, why_not_part_of, with_beginning
from logicalrep_protocol import versions
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn

Connection = psycopg.Connection[tuple[Any, ...]]

_Result = TypeVar("_Result")

# The first major version of the server that speaks a version of the protocol.
_SERVERS = {1: 10, 2: 14, 3: 15, 4: 16}

# The name of a WAL file begins with the timeline, in hexadecimal digits.
_TIMELINE = """
(SELECT system_identifier FROM pg_control_system()) AS system_identifier,
CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_flush_lsn()), 8) END AS timeline
"""
_HEAD = "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END"
# The server sends of a failover slot no further than all of the standbys are that it is told to wait for, each by its
# physical slot. Where one of those is not there, was never used, or is lost, it sends nothing.
_ON_STANDBYS = """
FROM pg_replication_slots AS slot LEFT JOIN LATERAL (
    SELECT min(standby.restart_lsn) AS reached, array_agg(name) FILTER (
        WHERE standby.restart_lsn IS NULL OR standby.invalidation_reason IS NOT NULL OR standby.slot_type <> 'physical'
    ) AS useless
    FROM regexp_split_to_table(replace(current_setting('synchronized_standby_slots'), '"', ''), '[\\s,]+') AS name
    LEFT JOIN pg_replication_slots AS standby ON standby.slot_name = name
    WHERE name <> ''
) AS standbys ON slot.failover AND NOT pg_is_in_recovery()
"""


class SlotError(LogicalRepError, RuntimeError):
    """A slot that cannot serve; says why, and what to do."""

    code = "SLOT_UNUSABLE"


class LostPositionError(SlotError):
    """The slot is past the position that a reader is at: what lies between is gone, or somebody else took it."""

    code = "POSITION_PASSED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A slot as pg_replication_slots shows it."""

    name: str
    plugin: str | None
    """Its output plugin; None for a physical slot."""
    database: str | None
    active_pid: int | None
    """The server process that is reading from it; None if there is none."""
    restart_lsn: Lsn | None
    """Where the WAL starts that it retains; None if it is lost."""
    confirmed_flush_lsn: Lsn | None
    """What was acknowledged."""
    two_phase: bool
    """Whether prepared transactions are sent when they are prepared."""
    failover: bool
    """Whether standbys keep it too, so that it is there on the one that takes over."""
    lost: str | None
    """Why it cannot be used any more; None if it can."""
    head: Lsn
    """How far the server has written its WAL."""
    sent_up_to: Lsn
    """How far the server sends it: of a failover slot no further than the standbys have it that it is to wait for."""
    useless_standbys: tuple[str, ...]
    """The slots in synchronized_standby_slots that no standby uses: nothing is sent before one does."""
    timeline: Timeline | None
    """The timeline that it writes; None for a standby, which writes none."""

    @property
    def confirmed(self) -> WalPosition:
        """What was acknowledged; only of a slot that can be read from."""
        assert self.confirmed_flush_lsn is not None
        return WalPosition(self.confirmed_flush_lsn, self.timeline)

    @property
    def reached(self) -> WalPosition:
        """How far it can be read."""
        return WalPosition(self.sent_up_to, self.timeline)

    @property
    def waits_for_standbys(self) -> bool:
        """Whether the standbys have yet to get something; a walsender that connects sends nothing before they have."""
        return self.sent_up_to < self.head

    @property
    def standbys_warning(self) -> str | None:
        """Why the server sends nothing, however long a reader waits; None where it does, or waits for standbys."""
        if not self.useless_standbys:
            return None
        names = ", ".join(map(repr, self.useless_standbys))
        return (
            f"The server sends nothing new of replication slot {self.name!r}: synchronized_standby_slots names "
            f"{names}, which no standby uses. Start a standby with that slot, or take it out of the setting."
        )

    @property
    def retained_bytes(self) -> int:
        """How many bytes of WAL it keeps the server from removing."""
        return 0 if self.restart_lsn is None else max(self.head - self.restart_lsn, 0)


def server_major(connection: Connection) -> int:
    """The server's major version."""
    return connection.info.server_version // 10000


def newest_protocol(connection: Connection) -> int:
    """The newest version of the protocol that both the server and this library speak."""
    major = server_major(connection)
    return max(version for version in versions.PARSE if _SERVERS[version] <= major)


def find_slot(connection: Connection, name: str) -> Slot | None:
    """The slot of that name; None if there is none."""
    major = server_major(connection)
    columns = ["slot_name", "plugin", "database", "active_pid", "restart_lsn", "confirmed_flush_lsn"]
    columns.append("two_phase" if major >= 14 else "false AS two_phase")
    columns.append("wal_status" if major >= 13 else "NULL AS wal_status")
    columns.append("invalidation_reason" if major >= 17 else "NULL AS invalidation_reason")
    columns.append("failover" if major >= 17 else "false AS failover")
    columns += ["standbys.reached", "standbys.useless"] if major >= 17 else ["NULL AS reached", "NULL AS useless"]
    columns += [f"{_HEAD} AS head", _TIMELINE]
    tables = _ON_STANDBYS if major >= 17 else "FROM pg_replication_slots"
    query = f"SELECT {', '.join(columns)} {tables} WHERE slot_name = %s"
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(query, (name,)).fetchone()
    if row is None:
        return None
    head, confirmed = Lsn(row["head"]), _lsn(row["confirmed_flush_lsn"])
    lost = row["invalidation_reason"]
    if lost is None and row["wal_status"] == "lost":
        lost = "the WAL it needs has been removed"
    return Slot(
        name=name,
        plugin=row["plugin"],
        database=row["database"],
        active_pid=row["active_pid"],
        restart_lsn=_lsn(row["restart_lsn"]),
        confirmed_flush_lsn=confirmed,
        two_phase=row["two_phase"],
        failover=row["failover"],
        lost=lost,
        head=head,
        sent_up_to=min(head, (row["useless"] and confirmed) or _lsn(row["reached"]) or head),
        useless_standbys=tuple(row["useless"] or ()),
        timeline=row["timeline"] and Timeline(row["system_identifier"], int(row["timeline"], 16)),
    )


def the_slot(connection: Connection, name: str) -> Slot:
    """The slot of that name, which can be read from; SlotError if there is none or it is lost."""
    slot = find_slot(connection, name)
    if slot is None:
        raise SlotError(
            f"replication slot {name!r} does not exist; what was committed since its last use cannot be read any more: "
            "make a new slot, copy the tables anew and start with a new checkpoint",
            code="SLOT_MISSING",
        )
    if slot.lost is not None or slot.confirmed_flush_lsn is None:
        raise SlotError(
            f"replication slot {name!r} is lost ({slot.lost or 'it has no position'}): drop it, make a new one, copy "
            "the tables anew and start with a new checkpoint; a larger max_slot_wal_keep_size keeps slots longer",
            code="SLOT_LOST",
        )
    return slot if slot.timeline is None else replace(slot, timeline=with_beginning(connection, slot.timeline))


def check_within_wal(settings: ConnectionSettings, slot: Slot, position: WalPosition) -> None:
    """LostPositionError if a position, to which a reader came earlier, is none of the WAL of the slot's server."""
    reason = why_not_part_of(settings, position, slot.timeline)
    if reason is None and slot.head < position.lsn:
        reason = (
            f"this reader is at {position.lsn}, but the server's WAL ends at {slot.head}: it was restored from a "
            "backup, took over from a server that was ahead of it, or is another one"
        )
    if reason is not None:
        raise LostPositionError(f"{reason}; copy the tables anew and start with a new checkpoint", code="WAL_DIVERGED")


def check_not_passed(slot: str, at: Lsn, position: Lsn) -> None:
    """LostPositionError if a slot was at an LSN beyond the position of its reader."""
    if at > position:
        raise LostPositionError(
            f"replication slot {slot!r} was at {at} when this reader was at {position}: what lies between was "
            "acknowledged by somebody else and cannot be read any more; give each reader a slot of its own, copy the "
            "tables anew and start with a new checkpoint"
        )


def create_slot(connection: Connection, name: str, *, two_phase: bool = False, failover: bool = False) -> Slot:
    """Make a slot with pgoutput; all that commits from here on can be read from it."""
    arguments: list[object] = [name, "pgoutput", False]
    for option, wanted, since in (("two_phase", two_phase, 14), ("failover", failover, 17)):
        if wanted and server_major(connection) < since:
            raise SlotError(f"{option} needs PostgreSQL {since} or later", code="SERVER_LACKS_OPTION")
        if server_major(connection) >= since:
            arguments.append(wanted)
    connection.execute(
        f"SELECT pg_create_logical_replication_slot({', '.join(['%s'] * len(arguments))})",
        arguments,
    )
    return the_slot(connection, name)


def advance_slot(connection: Connection, slot: Slot, lsn: Lsn, *, patience: float = 30) -> None:
    """Acknowledge what lies before a position; the server may then remove the WAL of it.

    A slot that is there already, or past it, is left as it is.
    """
    if slot.confirmed.lsn >= lsn:
        return
    try:
        when_free(
            lambda: connection.execute("SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", (slot.name, str(lsn))),
            connection,
            slot.name,
            patience=patience,
        )
    except psycopg.errors.ObjectNotInPrerequisiteState:
        # "cannot advance replication slot to X, minimum is Y": somebody else did in the meantime.
        if the_slot(connection, slot.name).confirmed.lsn < lsn:
            raise


def next_xid(connection: Connection) -> int:
    """The 64-bit id of the next transaction that gets one."""
    query = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
    row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def wal_head(connection: Connection) -> Lsn:
    """How far the server has written its WAL."""
    row = connection.execute(f"SELECT {_HEAD}").fetchone()
    assert row is not None
    return Lsn(row[0])


def sent_up_to(connection: Connection, name: str) -> Lsn:
    """How far the server sends what a slot gives, which may be yet to be made."""
    slot = find_slot(connection, name)
    return wal_head(connection) if slot is None else slot.sent_up_to


def when_free(action: Callable[[], _Result], connection: Connection, name: str, *, patience: float) -> _Result:
    """What an action on a slot returns, tried again for some seconds while another process holds the slot.

    Raises SlotError, which names the process; also where the slot was dropped since it was looked at.
    """
    retries = Retries(patience)
    while True:
        try:
            return action()
        except psycopg.errors.ObjectInUse:
            if not retries.wait():
                raise SlotError(in_use(name, _reader(connection, name)), code="SLOT_IN_USE") from None
        except psycopg.errors.UndefinedObject:
            # The slot, or a publication that it would send.
            the_slot(connection, name)
            raise


def in_use(name: str, process: tuple[Any, ...] | None) -> str:
    """Say that a slot is in use by a process of the server, given by its id and its client's name, address and port."""
    reader = "another process"
    if process is not None and process[0] is not None:
        pid, application, address, port = process
        # Who may not see where it comes from gets neither; a Unix socket has a port of -1.
        place = f"from {address}" if address else "from this machine" if port == -1 else "from where is not to be seen"
        reader = f"process {pid} ({application or 'without a name'}, {place})"
    return f"replication slot {name!r} is in use by {reader}: stop that reader, or give this one a slot of its own"


def _reader(connection: Connection, name: str) -> tuple[Any, ...] | None:
    return connection.execute(
        "SELECT slot.active_pid, activity.application_name, activity.client_addr, activity.client_port "
        "FROM pg_replication_slots AS slot LEFT JOIN pg_stat_activity AS activity ON activity.pid = slot.active_pid "
        "WHERE slot.slot_name = %s",
        (name,),
    ).fetchone()


def _lsn(text: str | None) -> Lsn | None:
    return None if text is None else Lsn(text)
