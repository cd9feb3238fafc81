"""A new slot with a snapshot of the tables at its start, so that a copy and the later changes have every row once.

The server exports the snapshot to other sessions while the session that created the slot waits. Needs psycopg 3.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Self, TypeVar

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.retries import Wait
from logicalrep.postgres.server import Connection, query_oldest_writer, query_server_time
from logicalrep.postgres.slots.advancing import advance_slot, drop_slot
from logicalrep.postgres.slots.creating import can_be_moved, create_slot
from logicalrep.postgres.slots.errors import SlotError
from logicalrep.postgres.slots.slot import find_slot
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn, TimestampTz

_Result = TypeVar("_Result")

_ISOLATED = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_CHECK_AGAIN = 1.0
"""The seconds between two looks at what a snapshot waits for."""
WRITERS_INTERVAL = 5.0
"""The seconds between two lines about the transactions that a new slot waits for."""
_TRY_AGAIN = 0.05
"""The seconds between two tries to lock tables."""
_LOCKED = "SELECT relation FROM pg_locks WHERE locktype = 'relation' AND pid = pg_backend_pid()"


class SnapshotError(SlotError):
    """A snapshot that is gone, or cannot be made; the text says why, and what to do."""

    code = "SNAPSHOT_GONE"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot that the server has exported; `str` and `parse` pass it on to its readers as text."""

    name: str
    """The server's name for it."""
    slot: str
    """The slot that was created with it."""
    lsn: Lsn
    """The slot's position: the snapshot has every earlier commit, the slot every later one."""
    taken: TimestampTz
    """The server's time; every later change has this time or a later one."""

    def __str__(self) -> str:
        return f"{self.name}@{self.slot}@{self.lsn}@{int(self.taken)}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the snapshot of a text that `str` wrote; raise ValueError for any other text."""
        parts = text.split("@")
        if len(parts) != 4 or not all(parts):
            raise ValueError(f"{text!r} is no snapshot")
        name, slot, lsn, taken = parts
        return cls(name, slot, Lsn(lsn), TimestampTz(int(taken)))


@contextmanager
def create_slot_with_snapshot(
    settings: ConnectionSettings,
    slot: str,
    tables: Sequence[TableName],
    *,
    two_phase: bool = False,
    failover: bool = False,
) -> Iterator[Snapshot]:
    """Create a slot, and hold a snapshot at its position while the context lasts; an exception in it drops the slot.

    The tables are locked meanwhile, so that they can be neither truncated nor altered.

    Raises SnapshotError if a table was truncated or altered before the lock, or if the server ended the session that
    holds the locks.
    """
    with settings.connect() as holder, settings.connect(replication=True) as maker:
        if find_slot(holder, slot) is not None:
            raise SnapshotError(
                f"replication slot {slot!r} exists already, and a snapshot is made together with its slot: "
                "name another one; or, if no query continues from this one, first run "
                f"SELECT pg_drop_replication_slot({sql.Literal(slot).as_string()})",
                code="SLOT_EXISTS",
            )
        taken = TimestampTz.from_datetime(query_server_time(holder))
        name, lsn = _create_slot(holder, maker, slot, two_phase=two_phase, failover=failover)
        try:
            snapshot = Snapshot(name, slot, lsn, taken)
            hold(holder, snapshot)
            hold_tables(holder, tables)
            with settings.connect() as now:
                check_columns(holder, now)
            yield snapshot
            _end(holder)
        except BaseException as error:
            try:
                with settings.connect() as connection:
                    drop_slot(connection, slot)
            except (psycopg.Error, SlotError) as failed:
                error.add_note(f"and replication slot {slot!r}, which retains WAL, was not dropped: {failed}")
            raise


def _create_slot(
    holder: Connection, maker: Connection, slot: str, *, two_phase: bool, failover: bool
) -> tuple[str, Lsn]:
    """Make a slot, and return the name of a snapshot that lasts as long as `maker`, with the position of both.

    The snapshot is that of a second slot, to whose position the first one is moved, so that it is not read from its
    beginning, see `create_slot`. A slot with two_phase would miss what was prepared meanwhile, and one with failover
    would wait for standbys: these are as the server makes them.
    """
    if two_phase or failover or not can_be_moved(holder):
        return _make_slot(maker, slot, two_phase=two_phase, failover=failover)
    made = create_slot(holder, slot)
    try:
        name, lsn = _make_slot(maker, f"logicalrep_new_{secrets.token_hex(8)}", temporary=True)
        advance_slot(holder, made, lsn)
    except BaseException:
        drop_slot(holder, slot)
        raise
    return name, lsn


@contextmanager
def hold_temporary_snapshot(settings: ConnectionSettings, waiting: Wait) -> Iterator[Snapshot]:
    """Hold a snapshot while the context lasts, with a temporary slot that tells its position. It locks nothing.

    Making it waits as `run_and_tell_waits` says.
    """
    slot = f"logicalrep_load_{secrets.token_hex(8)}"
    with settings.connect() as now, settings.connect(replication=True) as maker:
        taken = TimestampTz.from_datetime(query_server_time(now))
        make = partial(_make_slot, maker, slot, temporary=True)
        name, lsn = run_and_tell_waits(make, maker, now, waiting)
        yield Snapshot(name, slot, lsn, taken)


def run_and_tell_waits(make: Callable[[], _Result], maker: Connection, now: Connection, waiting: Wait) -> _Result:
    """Return the result of making a slot on the connection `maker`, which waits for every transaction that has written.

    Every second it checks `waiting`, which takes a line on the transaction; another connection, `now`, looks that up.
    Raises Ended once `waiting` is over.
    """
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(make)
        try:
            while not wait([made], _CHECK_AGAIN).done:
                waiting.check()
                waiting.say(partial(_query_writer, now))
        except BaseException:
            maker.cancel_safe(timeout=10)
            raise
        return made.result()


def _query_writer(connection: Connection) -> str:
    """Say which transaction keeps a new slot waiting."""
    oldest = query_oldest_writer(connection)
    if oldest is None:
        return "a new slot waits for a transaction that has written"
    what, began = oldest
    if began is None:
        return f"a new slot waits for the transaction of {what}; pg_read_all_stats would show since when it runs"
    return f"a new slot waits for the transaction of {what}, which has run since {began:%Y-%m-%d %H:%M:%S} UTC"


def hold(connection: Connection, snapshot: Snapshot) -> None:
    """Begin a transaction that sees the snapshot; raise SnapshotError if it is gone."""
    connection.execute(_ISOLATED)
    try:
        connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(snapshot.name))
    except (
        psycopg.errors.InvalidParameterValue,
        psycopg.errors.UndefinedObject,
        psycopg.errors.ObjectNotInPrerequisiteState,
    ) as error:
        raise SnapshotError(
            f"the server has no snapshot {snapshot.name} any more: it lasts as long as the connections that hold it; "
            "read it while they are open"
        ) from error


def _make_slot(
    connection: Connection, slot: str, *, two_phase: bool = False, failover: bool = False, temporary: bool = False
) -> tuple[str, Lsn]:
    options = "EXPORT_SNAPSHOT"
    # The checks before have made sure that the server has these options.
    wanted = [name for name, is_wanted in (("TWO_PHASE", two_phase), ("FAILOVER", failover)) if is_wanted]
    if wanted:
        options = f"({', '.join(['SNAPSHOT export', *wanted])})"
    kind = sql.SQL("TEMPORARY LOGICAL" if temporary else "LOGICAL")
    command = sql.SQL("CREATE_REPLICATION_SLOT {} {} pgoutput ").format(sql.Identifier(slot), kind) + sql.SQL(options)
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(command).fetchone()
    assert row is not None
    return row["snapshot_name"], Lsn(row["consistent_point"])


def hold_tables(connection: Connection, tables: Sequence[TableName], *, patience: float = math.inf) -> None:
    """Lock tables against TRUNCATE, rewriting and ALTER, which a snapshot does not hide.

    The locks come after the slot's creation, which waits for transactions that might wait for the locks. While some
    cannot be had, none is held: a migration that locks the same tables in another order would end in a deadlock.

    Args:
        connection: the session that holds the snapshot.
        tables: the tables, with all their partitions.
        patience: the longest wait, in seconds. It is 0 for a second session of the snapshot: behind another session's
            waiting TRUNCATE or ALTER it would wait for ever, as that one waits for the first session's locks.

    Raises SnapshotError if a table was changed in this way since the snapshot, or cannot be locked.
    """
    if not tables:
        return
    names = sql.SQL(", ").join(sql.Identifier(*table) for table in tables)
    shown = ", ".join(map(str, tables))
    deadline = time.monotonic() + patience
    try:
        while not try_to_lock(connection, sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE NOWAIT").format(names)):
            if time.monotonic() >= deadline:
                raise blocked(shown)
            time.sleep(_TRY_AGAIN)
    except psycopg.errors.UndefinedTable as error:
        raise SnapshotError(
            f"a table of {shown} was dropped or renamed: make the snapshot again", code="SNAPSHOT_STALE"
        ) from error
    # pg_class has the file's number in the snapshot, pg_relation_filenode the current one.
    rows = connection.execute(
        "SELECT format('%I.%I', namespace.nspname, class.relname) FROM pg_class AS class "
        "JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace "
        "WHERE class.relkind = 'r' AND class.relfilenode <> 0 "
        "AND class.relfilenode IS DISTINCT FROM pg_relation_filenode(class.oid) "
        f"AND class.oid IN ({_LOCKED})"
    ).fetchall()
    if rows:
        changed = ", ".join(row[0] for row in rows)
        raise SnapshotError(
            f"{changed} was truncated or rewritten when the snapshot was made: make it again", code="SNAPSHOT_STALE"
        )


def try_to_lock(connection: Connection, statement: sql.Composed) -> bool:
    """Lock tables, or none of them if that would mean to wait; return whether they are locked."""
    try:
        with connection.transaction():
            connection.execute(statement)
    except psycopg.errors.LockNotAvailable:
        return False
    return True


def blocked(tables: str) -> SnapshotError:
    """Return the error for tables on which another session waits for the end of the snapshot."""
    return SnapshotError(
        f"another session waits to truncate or alter {tables}, and later readers wait behind it until the snapshot "
        "ends: end that session, or make the snapshot again",
        code="SNAPSHOT_BLOCKED",
    )


def check_columns(holder: Connection, now: Connection) -> None:
    """Raise SnapshotError if the locked tables had other names or columns, or did not exist, at the snapshot's time."""
    locked = [row[0] for row in holder.execute(_LOCKED).fetchall()]
    # Tables are found by their names, which another may have had: the names are those in the catalog's own snapshot.
    query = (
        "SELECT class.oid::regclass::text, nspname, relname, attnum, attname, atttypid, atttypmod, attisdropped "
        "FROM pg_class AS class JOIN pg_namespace AS namespace ON namespace.oid = relnamespace "
        "LEFT JOIN pg_attribute ON attrelid = class.oid WHERE class.oid = ANY(%s)"
    )
    before, after = (set(connection.execute(query, (locked,)).fetchall()) for connection in (holder, now))
    if before != after:
        changed = ", ".join(sorted({row[0] for row in before ^ after}))
        raise SnapshotError(f"{changed} was altered when the snapshot was made: make it again", code="SNAPSHOT_STALE")


def _end(holder: Connection) -> None:
    """Raise SnapshotError if the tables have not been locked all the time."""
    try:
        holder.execute("COMMIT")
    except psycopg.OperationalError as error:
        raise SnapshotError(
            "the server has ended the session that held the tables, so that they could be changed while they were "
            f"read: make the snapshot again ({error})"
        ) from error
