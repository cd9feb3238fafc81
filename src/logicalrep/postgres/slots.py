"""Replication slots through SQL: their state, creating them, advancing them. Needs psycopg 3."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self, TypeVar

import psycopg
from psycopg import pq, sql
from psycopg.rows import TupleRow, dict_row

from logicalrep.postgres.connection import ConnectionSettings, error_of
from logicalrep.postgres.retries import Retries
from logicalrep.postgres.silence import execute_command
from logicalrep.postgres.timelines import Timeline, WalPosition, query_beginning, why_not_part_of
from logicalrep_protocol import versions
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn

Connection = psycopg.Connection[TupleRow]

_Result = TypeVar("_Result")

# The first major version of the server for each version of the protocol.
_SERVERS = {1: 10, 2: 14, 3: 15, 4: 16}

# The name of a WAL file begins with the timeline, in hexadecimal digits.
_TIMELINE = """
(SELECT system_identifier FROM pg_control_system()) AS system_identifier,
CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_flush_lsn()), 8) END AS timeline
"""
_HEAD = "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END"
# The server sends a failover slot's changes only once all standbys in synchronized_standby_slots have them. The setting
# names their physical slots; if one of these is missing, was never used, or is lost, the server sends nothing.
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


_TRIES = 5
"""The number of slots that are made, one after another, until one can be read."""
_PATIENCE_FOR_STANDBYS = "10s"
"""The longest wait for the standbys that a failover slot waits for."""


class SlotError(LogicalRepError, RuntimeError):
    """A slot that cannot be used; the text says why, and what to do."""

    code = "SLOT_UNUSABLE"


class UndecodableError(SlotError):
    """A slot whose changes the server cannot decode; trying again does not help."""

    code = "SLOT_UNDECODABLE"

    @classmethod
    def of(cls, said: str) -> Self:
        """Return the error for the server's own words."""
        return cls(
            f"the server cannot decode the changes of the slot ({said}), and no other reader can: for a place of "
            "replicate run logicalrep resync --all with the same --dsn and --to, which makes a new slot; for a stream "
            "drop the slot, make a new one, copy the tables again and start with a new checkpoint"
        )


class LostPositionError(SlotError):
    """A slot that is past its reader's position: the changes in between are gone, or another reader took them."""

    code = "POSITION_PASSED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A slot's row of pg_replication_slots, with the server's WAL position."""

    name: str
    plugin: str | None
    """The output plugin; None for a physical slot."""
    database: str | None
    active_pid: int | None
    """The server process that reads from it; None if there is none."""
    restart_lsn: Lsn | None
    """The start of the WAL that it retains; None if it is lost."""
    confirmed_flush_lsn: Lsn | None
    """The acknowledged position."""
    two_phase: bool
    """Whether prepared transactions are sent when they are prepared."""
    failover: bool
    """Whether standbys keep it too, so that it survives a failover."""
    lost: str | None
    """The reason why it cannot be used any more; None if it can."""
    head: Lsn
    """The end of the WAL that the server has written."""
    sent_up_to: Lsn
    """The end of the WAL that the server sends; for a failover slot the standbys to wait for must have it."""
    useless_standbys: tuple[str, ...]
    """The slots in synchronized_standby_slots that no standby uses; until one does, nothing is sent."""
    timeline: Timeline | None
    """The timeline that the server writes; None on a standby, which writes none."""
    time: datetime
    """The server's time: all that had committed by then is before `head`."""
    wal_status: str | None = None
    """The state of its WAL: reserved, extended, unreserved or lost; None before PostgreSQL 13."""
    safe_wal_size: int | None = None
    """The bytes that can be written until max_slot_wal_keep_size makes it lost; None without that bound."""

    @property
    def confirmed(self) -> WalPosition:
        """The acknowledged position with its timeline; only for a slot that can be read."""
        assert self.confirmed_flush_lsn is not None
        return WalPosition(self.confirmed_flush_lsn, self.timeline)

    @property
    def reached(self) -> WalPosition:
        """The position up to which it can be read."""
        return WalPosition(self.sent_up_to, self.timeline)

    @property
    def waits_for_standbys(self) -> bool:
        """Whether standbys still lack some WAL; a new walsender sends nothing until they have it."""
        return self.sent_up_to < self.head

    @property
    def standbys_warning(self) -> str | None:
        """The reason why the server never sends anything new; None if it does, or only waits for standbys."""
        if not self.useless_standbys:
            return None
        names = ", ".join(map(repr, self.useless_standbys))
        return (
            f"The server sends nothing new of replication slot {self.name!r}: synchronized_standby_slots names "
            f"{names}, which no standby uses. Start a standby with that slot, or take it out of the setting."
        )

    @property
    def retained_bytes(self) -> int:
        """The bytes of WAL that it keeps the server from removing."""
        return 0 if self.restart_lsn is None else max(self.head - self.restart_lsn, 0)

    @property
    def retained_limit(self) -> int | None:
        """The retained bytes at which max_slot_wal_keep_size makes it lost; None without that bound."""
        return None if self.safe_wal_size is None else self.retained_bytes + max(self.safe_wal_size, 0)

    def decoded_again(self, position: Lsn) -> int:
        """Return the WAL in bytes before a position that each session which reads from there decodes."""
        return max(position - (self.restart_lsn or position), 0)


def server_major(connection: Connection) -> int:
    """Return the server's major version."""
    return connection.info.server_version // 10000


def query_scalar(connection: Connection, query: str, *parameters: object) -> Any:
    """Return the first value of a query's row; None without a row."""
    row = connection.execute(query, parameters or None).fetchone()
    return None if row is None else row[0]


def query_server_identity(connection: Connection) -> tuple[int, str]:
    """Return the system identifier of the server, which other servers do not have, and the database's name."""
    row = connection.execute("SELECT system_identifier, current_database() FROM pg_control_system()").fetchone()
    assert row is not None
    return row[0], row[1]


def newest_protocol(connection: Connection) -> int:
    """Return the newest version of the protocol that both the server and this library support."""
    major = server_major(connection)
    return max(version for version in versions.PARSE if _SERVERS[version] <= major)


def find_slot(connection: Connection, name: str) -> Slot | None:
    """Return the slot of a name; None if there is none."""
    major = server_major(connection)
    columns = ["slot_name", "plugin", "database", "active_pid", "restart_lsn", "confirmed_flush_lsn"]
    columns.append("two_phase" if major >= 14 else "false AS two_phase")
    columns += ["wal_status", "safe_wal_size"] if major >= 13 else ["NULL AS wal_status", "NULL AS safe_wal_size"]
    columns.append("invalidation_reason" if major >= 17 else "NULL AS invalidation_reason")
    columns.append("failover" if major >= 17 else "false AS failover")
    columns += ["standbys.reached", "standbys.useless"] if major >= 17 else ["NULL AS reached", "NULL AS useless"]
    columns += ["statement_timestamp() AS time", f"{_HEAD} AS head", _TIMELINE]
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
        time=row["time"],
        wal_status=row["wal_status"],
        safe_wal_size=row["safe_wal_size"],
    )


def query_slot(connection: Connection, name: str) -> Slot:
    """Return the slot of a name; raise SlotError if there is none or it is lost."""
    slot = find_slot(connection, name)
    if slot is None:
        raise SlotError(
            f"replication slot {name!r} does not exist; the commits since its last use cannot be read any more: "
            "make a new slot, copy the tables again and start with a new checkpoint",
            code="SLOT_MISSING",
        )
    if slot.lost is not None or slot.confirmed_flush_lsn is None:
        raise SlotError(
            f"replication slot {name!r} is lost ({slot.lost or 'it has no position'}): drop it, make a new one, copy "
            "the tables again and start with a new checkpoint; a larger max_slot_wal_keep_size keeps slots longer",
            code="SLOT_LOST",
        )
    return slot if slot.timeline is None else replace(slot, timeline=query_beginning(connection, slot.timeline))


def check_free(connection: Connection, slot: Slot) -> None:
    """Raise SlotError, which names the process, if one reads a slot."""
    if slot.active_pid is not None:
        raise SlotError(in_use(slot.name, _query_reader(connection, slot.name)), code="SLOT_IN_USE")


def why_not_within_wal(settings: ConnectionSettings, slot: Slot, position: WalPosition) -> str | None:
    """Return the reason why the WAL of the slot's server does not contain the position of a reader; None if it may."""
    reason = why_not_part_of(settings, position, slot.timeline)
    if reason is None and slot.head < position.lsn:
        reason = (
            f"this reader is at {position.lsn}, but the server's WAL ends at {slot.head}: it was restored from a "
            "backup, took over from a server that was ahead of it, or is another one"
        )
    return reason


def check_within_wal(settings: ConnectionSettings, slot: Slot, position: WalPosition) -> None:
    """Raise LostPositionError if the WAL of the slot's server does not contain the position of a reader."""
    reason = why_not_within_wal(settings, slot, position)
    if reason is not None:
        raise LostPositionError(f"{reason}; copy the tables again and start with a new checkpoint", code="WAL_DIVERGED")


def check_not_passed(slot: str, at: Lsn, position: Lsn) -> None:
    """Raise LostPositionError if a slot was at an LSN after the position of its reader."""
    if at > position:
        raise LostPositionError(
            f"replication slot {slot!r} was at {at} when this reader was at {position}: the changes between were "
            "acknowledged by another reader and cannot be read any more; give each reader a slot of its own, copy the "
            "tables again and start with a new checkpoint"
        )


def create_slot(connection: Connection, name: str, *, two_phase: bool = False, failover: bool = False) -> Slot:
    """Create a slot with pgoutput; every commit after the slot can be seen can be read from it.

    A slot without two_phase is moved past its beginning, see `_settle`. Commits in between are not read, so it is made
    as a temporary slot, and gets its name as a copy of that. PostgreSQL 11 copies none, and a copy has no failover:
    these are moved where they can be seen, and every commit after this function returns is read.

    Raises:
        UndecodableError: the server made several slots that cannot be read.
        SlotError: the server is too old for an option.
    """
    if two_phase or not can_be_moved(connection):
        return _create(connection, name, two_phase=two_phase, failover=failover)
    is_copied = not failover and server_major(connection) >= 12
    made = f"logicalrep_new_{secrets.token_hex(8)}" if is_copied else name
    for _ in range(_TRIES):
        slot = _create(connection, made, temporary=is_copied, failover=failover)
        try:
            if _settle(connection, slot):
                if is_copied:
                    connection.execute("SELECT pg_copy_logical_replication_slot(%s, %s, false)", (made, name))
                    drop_slot(connection, made)
                return query_slot(connection, name)
            reason = "its beginning cannot be left behind"
        except psycopg.errors.ConfigurationLimitExceeded:
            # There is no room for a second slot.
            return _create(connection, name) if is_copied else query_slot(connection, name)
        except psycopg.errors.InternalError_ as error:
            reason = error.diag.message_primary or ""
        # The server has dropped a temporary slot after an error.
        if find_slot(connection, made) is not None:
            drop_slot(connection, made)
    raise UndecodableError.of(f"after {_TRIES} tries: {reason}")


def can_be_moved(connection: Connection) -> bool:
    """Return whether a new slot can be moved to the position of a second one.

    PostgreSQL 10 moves none, and on a standby the second one would wait for the primary's next record.
    """
    return server_major(connection) >= 11 and not query_scalar(connection, "SELECT pg_is_in_recovery()")


def _settle(connection: Connection, slot: Slot) -> bool:
    """Move a new slot past its beginning; return whether the server reads it from a later record now.

    While transactions run, a new slot's view of the catalog misses what others alter between the first record that it
    reads and its position. Their files are unknown to it for ever, and the first change of such a table ends every
    reader with "could not map filenumber". A second slot waits for all transactions from before it, at a record from
    which the first one can be read too, with a whole view. Changes that were prepared meanwhile would be missed, so
    this is not for slots with two_phase.
    """
    other = f"logicalrep_new_{secrets.token_hex(8)}"
    position = query_scalar(
        connection, "SELECT lsn FROM pg_create_logical_replication_slot(%s, 'pgoutput', true)", other
    )
    drop_slot(connection, other)
    with connection.transaction():
        if slot.failover:
            # It would wait for standbys that are away.
            connection.execute(f"SET LOCAL statement_timeout = '{_PATIENCE_FOR_STANDBYS}'")
        try:
            connection.execute("SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", (slot.name, position))
        except psycopg.errors.QueryCanceled:
            if not slot.failover:
                raise
            raise psycopg.Rollback from None
        assert slot.restart_lsn is not None
        moved = find_slot(connection, slot.name)
        return moved is not None and (moved.restart_lsn or slot.restart_lsn) > slot.restart_lsn
    return True


def _create(
    connection: Connection, name: str, *, temporary: bool = False, two_phase: bool = False, failover: bool = False
) -> Slot:
    arguments: list[object] = [name, "pgoutput", temporary]
    for option, wanted, since in (("two_phase", two_phase, 14), ("failover", failover, 17)):
        if wanted and server_major(connection) < since:
            raise SlotError(f"{option} needs PostgreSQL {since} or later", code="SERVER_LACKS_OPTION")
        if server_major(connection) >= since:
            arguments.append(wanted)
    connection.execute(f"SELECT pg_create_logical_replication_slot({', '.join(['%s'] * len(arguments))})", arguments)
    return query_slot(connection, name)


def advance_slot(connection: Connection, slot: Slot, lsn: Lsn, *, patience: float = 30) -> None:
    """Acknowledge every commit before a position; the server may then remove its WAL.

    A slot at or after the position is left as it is.
    """
    if slot.confirmed.lsn >= lsn:
        return
    try:
        retry_until_free(
            lambda: connection.execute("SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", (slot.name, str(lsn))),
            connection,
            slot.name,
            patience=patience,
        )
    except psycopg.errors.ObjectNotInPrerequisiteState:
        # "cannot advance replication slot to X, minimum is Y": another process has advanced it meanwhile.
        if query_slot(connection, slot.name).confirmed.lsn < lsn:
            raise


def keep_on_standbys(settings: ConnectionSettings, name: str) -> None:
    """Have standbys keep a slot that was made without failover. Needs PostgreSQL 17."""
    with settings.connect() as connection, settings.connect(replication=True) as walsender:
        change = sql.SQL("ALTER_REPLICATION_SLOT {} (FAILOVER true)").format(sql.Identifier(name))

        def run() -> None:
            result = execute_command(walsender, change.as_bytes(walsender))
            if result.status != pq.ExecStatus.COMMAND_OK:
                raise error_of(result)

        retry_until_free(run, connection, name, patience=30)


def drop_slot(connection: Connection, name: str) -> None:
    """Drop a slot; wait for a moment while a process that has just ended still holds it."""
    drop = sql.SQL("SELECT pg_drop_replication_slot({})").format(name)
    retry_until_free(lambda: connection.execute(drop), connection, name, patience=30)


_OLDEST_WRITER = """
SELECT what, began FROM (
  SELECT concat('process ', pid, ' (' || nullif(application_name, '') || ')') AS what, xact_start AS began,
    backend_xid AS xid
  FROM pg_stat_activity WHERE backend_xid IS NOT NULL
  UNION ALL SELECT format('the prepared transaction %L', gid), prepared, transaction FROM pg_prepared_xacts
) AS writers ORDER BY age(xid) DESC LIMIT 1
"""


def query_oldest_writer(connection: Connection) -> tuple[str, datetime | None] | None:
    """Return the oldest open transaction that has written, in words, and when it began; None if there is no other.

    The server does not tell when a transaction of another role began, without the rights of `pg_read_all_stats`.
    """
    row = connection.execute(_OLDEST_WRITER).fetchone()
    return None if row is None else (row[0], row[1])


def query_next_xid(connection: Connection) -> int:
    """Return the 64-bit transaction id that the server assigns next."""
    return int(query_scalar(connection, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"))


def query_wal_head(connection: Connection) -> Lsn:
    """Return the end of the WAL that the server has written."""
    return Lsn(query_scalar(connection, f"SELECT {_HEAD}"))


def query_server_time(connection: Connection) -> datetime:
    """Return the server's time, in UTC."""
    time: datetime = query_scalar(connection, "SELECT now()")
    return time


def query_oldest_load(connection: Connection) -> datetime | None:
    """Return the time since when the oldest snapshot of a load of tables of this database is held; None without one."""
    # A walsender has no xact_start: its state is that of a transaction from the snapshot on.
    since: datetime | None = query_scalar(
        connection,
        "SELECT min(activity.state_change) FROM pg_replication_slots AS slot JOIN pg_stat_activity AS activity "
        "ON activity.pid = slot.active_pid WHERE activity.state = 'idle in transaction' AND slot.temporary "
        "AND slot.slot_name ~ '^logicalrep_load_' AND slot.database = current_database()",
    )
    return since


def query_sent_end(connection: Connection, name: str) -> Lsn:
    """Return the end of the WAL that the server sends from a slot, which may not exist yet."""
    slot = find_slot(connection, name)
    return query_wal_head(connection) if slot is None else slot.sent_up_to


def retry_until_free(action: Callable[[], _Result], connection: Connection, name: str, *, patience: float) -> _Result:
    """Return the result of an action on a slot; try again while another process holds the slot.

    Raises SlotError after `patience` seconds, with the process's name, or if the slot has been dropped.
    """
    retries = Retries(patience)
    while True:
        try:
            return action()
        except psycopg.errors.ObjectInUse:
            if not retries.wait():
                raise SlotError(in_use(name, _query_reader(connection, name)), code="SLOT_IN_USE") from None
        except psycopg.errors.UndefinedObject:
            # The slot, or a publication that it would send.
            query_slot(connection, name)
            raise


def in_use(name: str, process: TupleRow | None) -> str:
    """Say that a slot is in use by a process of the server, given by its id and its client's name, address and port."""
    reader = "another process"
    if process is not None and process[0] is not None:
        pid, application, address, port = process
        # A role without the right to see the client's address gets NULL for both; a Unix socket has a port of -1.
        place = f"from {address}" if address else "from this machine" if port == -1 else "from an unknown address"
        reader = f"process {pid} ({application or 'without a name'}, {place})"
    return f"replication slot {name!r} is in use by {reader}: stop that reader, or give this one a slot of its own"


def _query_reader(connection: Connection, name: str) -> TupleRow | None:
    return connection.execute(
        "SELECT slot.active_pid, activity.application_name, activity.client_addr, activity.client_port "
        "FROM pg_replication_slots AS slot LEFT JOIN pg_stat_activity AS activity ON activity.pid = slot.active_pid "
        "WHERE slot.slot_name = %s",
        (name,),
    ).fetchone()


def _lsn(text: str | None) -> Lsn | None:
    return None if text is None else Lsn(text)
