"""The state of a replication slot in the server's catalog. Needs psycopg 3."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from psycopg.rows import dict_row

from logicalrep.postgres.server import HEAD, Connection, query_scalar, query_wal_head, server_major
from logicalrep.postgres.slots.errors import SlotError
from logicalrep.postgres.timelines import Timeline, WalPosition, query_beginning
from logicalrep_runtime.scalars import Lsn

# The name of a WAL file begins with the timeline, in hexadecimal digits.
_TIMELINE = """
(SELECT system_identifier FROM pg_control_system()) AS system_identifier,
CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_flush_lsn()), 8) END AS timeline
"""
# The server sends a failover slot's changes only when all standbys in synchronized_standby_slots have them. The setting
# names physical slots; if one of them is missing, was never used, or is lost, the server sends nothing.
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


_LEAST_ROOM = 0.25
"""The part of max_slot_wal_keep_size below which a slot's room is worth a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A slot's row of pg_replication_slots, with the server's WAL position."""

    name: str
    plugin: str | None
    """The output plugin; None for a physical slot."""
    database: str | None
    active_pid: int | None
    """The server process that uses the slot; None if the slot is not in use."""
    restart_lsn: Lsn | None
    """The start of the retained WAL; None if the slot is lost."""
    confirmed_flush_lsn: Lsn | None
    two_phase: bool
    failover: bool
    lost: str | None
    """Why the slot is lost; None if it can be used."""
    head: Lsn
    sent_up_to: Lsn
    """The end of the WAL that the server sends; for a failover slot, the configured standbys must have it."""
    useless_standbys: tuple[str, ...]
    """The slots in synchronized_standby_slots that no standby uses; because of them the server sends nothing."""
    timeline: Timeline | None
    """The timeline that the server writes; None on a standby."""
    time: datetime
    """The server's time: every commit up to this time is before `head`."""
    server_started: str = ""
    """The server's start, in seconds since 1970."""
    wal_status: str | None = None
    """The state of the retained WAL: reserved, extended, unreserved or lost; None before PostgreSQL 13."""
    safe_wal_size: int | None = None
    """The bytes of WAL until max_slot_wal_keep_size invalidates the slot, 0 beyond it; None without a limit."""

    @property
    def confirmed(self) -> WalPosition:
        """The acknowledged position with its timeline; only for a usable slot."""
        assert self.confirmed_flush_lsn is not None
        return WalPosition(self.confirmed_flush_lsn, self.timeline)

    @property
    def reached(self) -> WalPosition:
        return WalPosition(self.sent_up_to, self.timeline)

    @property
    def waits_for_standbys(self) -> bool:
        """Whether standbys lack some WAL; a new walsender sends nothing until they have it."""
        return self.sent_up_to < self.head

    @property
    def standbys_warning(self) -> str | None:
        """A warning if the server sends nothing because of unused standby slots; None otherwise."""
        if not self.useless_standbys:
            return None
        names = ", ".join(map(repr, self.useless_standbys))
        return (
            f"The server sends nothing new of replication slot {self.name!r}: synchronized_standby_slots names "
            f"{names}, which no standby uses. Start a standby with that slot, or remove it from the setting."
        )

    @property
    def retained_bytes(self) -> int:
        return 0 if self.restart_lsn is None else max(self.head - self.restart_lsn, 0)

    @property
    def retained_limit(self) -> int | None:
        """The retained bytes at which max_slot_wal_keep_size invalidates the slot; None without a limit."""
        return None if self.safe_wal_size is None else self.retained_bytes + self.safe_wal_size

    @property
    def room_warning(self) -> str | None:
        """A warning if the server may soon remove WAL that the slot needs; None otherwise."""
        room, limit = self.safe_wal_size, self.retained_limit
        if room is None or limit is None or room >= limit * _LEAST_ROOM:
            return None
        room_text = "has less than a quarter of max_slot_wal_keep_size left"
        if not room:
            room_text = "has passed max_slot_wal_keep_size, and the server removes its WAL at a checkpoint"
        return (
            f"replication slot {self.name!r} {room_text}: without that WAL all tables have to be reloaded; raise "
            "max_slot_wal_keep_size, and find out what delays the reader"
        )

    def redecoded_bytes(self, position: Lsn) -> int:
        """Return the bytes of WAL before a position that every session starting at the position decodes again."""
        return max(position - (self.restart_lsn or position), 0)


def find_slot(connection: Connection, name: str) -> Slot | None:
    major = server_major(connection)
    columns = ["slot_name", "plugin", "database", "active_pid", "restart_lsn", "confirmed_flush_lsn"]
    columns.append("two_phase" if major >= 14 else "false AS two_phase")
    columns += ["wal_status", "safe_wal_size"] if major >= 13 else ["NULL AS wal_status", "NULL AS safe_wal_size"]
    columns.append("invalidation_reason" if major >= 17 else "NULL AS invalidation_reason")
    columns.append("failover" if major >= 17 else "false AS failover")
    columns += ["standbys.reached", "standbys.useless"] if major >= 17 else ["NULL AS reached", "NULL AS useless"]
    columns += ["statement_timestamp() AS time", f"{HEAD} AS head", _TIMELINE]
    columns.append("extract(epoch FROM pg_postmaster_start_time())::text AS server_started")
    tables = _ON_STANDBYS if major >= 17 else "FROM pg_replication_slots"
    query = f"SELECT {', '.join(columns)} {tables} WHERE slot_name = %s"
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(query, (name,)).fetchone()
    if row is None:
        return None
    head, confirmed = Lsn(row["head"]), _lsn(row["confirmed_flush_lsn"])
    lost = row["invalidation_reason"]
    if lost is None and row["wal_status"] == "lost":
        lost = "the server has removed WAL that it needs"
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
        server_started=row["server_started"],
        wal_status=row["wal_status"],
        # The server reports a negative number once the slot has passed the limit.
        safe_wal_size=None if row["safe_wal_size"] is None else max(row["safe_wal_size"], 0),
    )


def query_slot(connection: Connection, name: str) -> Slot:
    """Return a slot by name. Raises SlotError if it does not exist or is lost."""
    slot = find_slot(connection, name)
    if slot is None:
        raise SlotError.for_stream(
            f"replication slot {name!r} does not exist, and the commits since its last use are lost",
            "make a new slot",
            code="SLOT_MISSING",
        )
    if slot.lost is not None or slot.confirmed_flush_lsn is None:
        raise lost_slot_error(name, slot.lost or "it has no position")
    return slot if slot.timeline is None else replace(slot, timeline=query_beginning(connection, slot.timeline))


def lost_slot_error(name: str, reason: str) -> SlotError:
    error = SlotError.for_stream(
        f"replication slot {name!r} is lost ({reason})", "drop it, make a new one", code="SLOT_LOST"
    )
    error.reason = reason
    return error


# The name of a WAL file has three numbers of eight digits: its timeline, the number of 4 GB, and the file's number in
# these. Only superusers and members of pg_monitor may list the files.
_MISSING_WAL = """
SELECT slot.file FROM (
    SELECT to_hex(%(lsn)s::bigint >> 32) AS high, to_hex(
        (%(lsn)s::bigint & 4294967295) / pg_size_bytes(current_setting('wal_segment_size'))
    ) AS low
) AS number CROSS JOIN LATERAL (SELECT upper(lpad(high, 8, '0') || lpad(low, 8, '0')) AS file) AS slot
WHERE NOT EXISTS (SELECT FROM pg_ls_waldir() AS existing WHERE substr(existing.name, 9) = slot.file)
"""


def query_missing_wal(connection: Connection, slot: Slot) -> str | None:
    """Return why the server lacks the start of a slot's WAL; None if it has it, or if the role may not look."""
    if slot.restart_lsn is None or not query_scalar(
        connection, "SELECT has_function_privilege('pg_ls_waldir()', 'EXECUTE')"
    ):
        return None
    row = connection.execute(_MISSING_WAL, {"lsn": int(slot.restart_lsn)}).fetchone()
    return None if row is None else f"the server lacks the WAL file {row[0]}, which it needs"


def query_sent_end(connection: Connection, name: str) -> Lsn:
    """Return the end of the WAL that the server sends for a slot; if it does not exist, the WAL's end."""
    slot = find_slot(connection, name)
    return query_wal_head(connection) if slot is None else slot.sent_up_to


def _lsn(text: str | None) -> Lsn | None:
    return None if text is None else Lsn(text)
