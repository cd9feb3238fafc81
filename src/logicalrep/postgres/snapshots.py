"""A new slot with a snapshot of the tables at its start, so that a copy and later changes have every row once.

The server exports the snapshot to other sessions while the session that created the slot is idle. Needs psycopg 3.
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
_CHECK_INTERVAL = 1.0
"""The seconds between checks of the creation of a slot."""
WRITERS_INTERVAL = 5.0
"""The seconds between lines about the transactions that a new slot waits for."""
_LOCK_INTERVAL = 0.05
"""The seconds between attempts to lock tables."""
_LOCKED = "SELECT relation FROM pg_locks WHERE locktype = 'relation' AND pid = pg_backend_pid()"


class SnapshotError(SlotError):
    """The snapshot has ended or cannot be created; the text has the reason and the remedy."""

    code = "SNAPSHOT_GONE"


@dataclass(frozen=True, slots=True)
class Snapshot:
    name: str
    slot: str
    lsn: Lsn
    """The slot's position: the snapshot has every earlier commit, the slot every later commit."""
    taken: TimestampTz
    """A server time not after any later change."""

    def __str__(self) -> str:
        return f"{self.name}@{self.slot}@{self.lsn}@{int(self.taken)}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the snapshot of a text that `str` wrote. Raises ValueError for any other text."""
        parts = text.split("@")
        if len(parts) != 4 or not all(parts):
            raise ValueError(f"{text!r} is not a snapshot")
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
    """Hold a new slot's snapshot and locks against TRUNCATE and ALTER; an exception in the context drops the slot.

    Raises SnapshotError if a table was altered before the lock, or the session that holds the locks has ended.
    """
    with settings.connect() as holder, settings.connect(replication=True) as maker:
        if find_slot(holder, slot) is not None:
            raise SnapshotError(
                f"replication slot {slot!r} already exists, but a snapshot is created together with its slot: "
                "use another name; or, if no query continues from this slot, first run "
                f"SELECT pg_drop_replication_slot({sql.Literal(slot).as_string()})",
                code="SLOT_EXISTS",
            )
        taken = TimestampTz.from_datetime(query_server_time(holder))
        name, lsn = _create_slot(holder, maker, slot, two_phase=two_phase, failover=failover)
        try:
            snapshot = Snapshot(name, slot, lsn, taken)
            hold(holder, snapshot)
            hold_tables(holder, tables)
            with settings.connect() as observer:
                check_columns(holder, observer)
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
    """Return the snapshot's name and position; it lasts as long as `maker`.

    The first slot is advanced to the second slot's position, past its own start, see `create_slot`. A slot with
    two_phase would miss transactions that were prepared in between; one with failover would wait for standbys.
    """
    if two_phase or failover or not can_be_moved(holder):
        return _make_slot(maker, slot, two_phase=two_phase, failover=failover)
    new_slot = create_slot(holder, slot)
    try:
        name, lsn = _make_slot(maker, f"logicalrep_new_{secrets.token_hex(8)}", temporary=True)
        advance_slot(holder, new_slot, lsn)
    except BaseException:
        drop_slot(holder, slot)
        raise
    return name, lsn


@contextmanager
def hold_temporary_snapshot(settings: ConnectionSettings, waiting: Wait) -> Iterator[Snapshot]:
    """Hold the snapshot of a new temporary slot, without locks; the creation waits as in `run_and_report_waits`."""
    slot = f"logicalrep_load_{secrets.token_hex(8)}"
    with settings.connect() as observer, settings.connect(replication=True) as maker:
        taken = TimestampTz.from_datetime(query_server_time(observer))
        make = partial(_make_slot, maker, slot, temporary=True)
        name, lsn = run_and_report_waits(make, maker, observer, waiting)
        yield Snapshot(name, slot, lsn, taken)


def run_and_report_waits(
    make: Callable[[], _Result], maker: Connection, observer: Connection, waiting: Wait
) -> _Result:
    """Return the result of `make`, which waits for all open transactions that have written.

    Every second it reports the oldest transaction to `waiting`, as `observer` sees it; when that is over, it cancels
    `maker` and raises Ended.
    """
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(make)
        try:
            while not wait([future], _CHECK_INTERVAL).done:
                waiting.check()
                waiting.say(partial(_query_writer, observer))
        except BaseException:
            maker.cancel_safe(timeout=10)
            raise
        return future.result()


def _query_writer(connection: Connection) -> str:
    oldest = query_oldest_writer(connection)
    if oldest is None:
        return "a new slot waits for a transaction that has written"
    what, began = oldest
    if began is None:
        return f"a new slot waits for the transaction of {what}; pg_read_all_stats would show since when it runs"
    return f"a new slot waits for the transaction of {what}, which has run since {began:%Y-%m-%d %H:%M:%S} UTC"


def hold(connection: Connection, snapshot: Snapshot) -> None:
    """Begin a transaction with the snapshot. Raises SnapshotError if the snapshot has ended."""
    connection.execute(_ISOLATED)
    try:
        connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(snapshot.name))
    except (
        psycopg.errors.InvalidParameterValue,
        psycopg.errors.UndefinedObject,
        psycopg.errors.ObjectNotInPrerequisiteState,
    ) as error:
        raise SnapshotError(
            f"the snapshot {snapshot.name} has ended: it lasts as long as the connections that hold it; read it while "
            "they are open"
        ) from error


def _make_slot(
    connection: Connection, slot: str, *, two_phase: bool = False, failover: bool = False, temporary: bool = False
) -> tuple[str, Lsn]:
    options = "EXPORT_SNAPSHOT"
    # Earlier checks ensure that the server has these options.
    slot_options = [name for name, is_requested in (("TWO_PHASE", two_phase), ("FAILOVER", failover)) if is_requested]
    if slot_options:
        options = f"({', '.join(['SNAPSHOT export', *slot_options])})"
    kind = sql.SQL("TEMPORARY LOGICAL" if temporary else "LOGICAL")
    command = sql.SQL("CREATE_REPLICATION_SLOT {} {} pgoutput ").format(sql.Identifier(slot), kind) + sql.SQL(options)
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(command).fetchone()
    assert row is not None
    return row["snapshot_name"], Lsn(row["consistent_point"])


def hold_tables(
    connection: Connection,
    tables: Sequence[TableName],
    *,
    patience: float = math.inf,
    with_partitions: bool = True,
) -> None:
    """Lock tables against TRUNCATE, rewrites and ALTER, which a snapshot does not hide.

    The tables must be locked after the slot's creation, which waits for transactions that might wait for the locks.
    All tables are locked or none: otherwise a migration that locks the tables in another order would deadlock.

    `patience` in seconds must be 0 for a second session with the snapshot: behind a TRUNCATE or ALTER that waits for
    the first session's locks, it would wait forever. Raises SnapshotError for rewritten or locked tables.
    """
    if not tables:
        return
    only = sql.SQL("" if with_partitions else "ONLY ")
    names = sql.SQL(", ").join(only + sql.Identifier(*table) for table in tables)
    listed_names = ", ".join(map(str, tables))
    deadline = time.monotonic() + patience
    try:
        while not try_to_lock(connection, sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE NOWAIT").format(names)):
            if time.monotonic() >= deadline:
                raise blocked(listed_names)
            time.sleep(_LOCK_INTERVAL)
    except psycopg.errors.UndefinedTable as error:
        raise SnapshotError(
            f"a table of {listed_names} was dropped or renamed: make the snapshot again", code="SNAPSHOT_STALE"
        ) from error
    # pg_class has the file's number in the snapshot, pg_relation_filenode its current number.
    locked = [row[0] for row in connection.execute(_LOCKED).fetchall()]
    rows = connection.execute(
        "SELECT format('%%I.%%I', namespace.nspname, class.relname) FROM pg_class AS class "
        "JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace "
        "WHERE class.relkind = 'r' AND class.relfilenode <> 0 "
        "AND class.relfilenode IS DISTINCT FROM pg_relation_filenode(class.oid) "
        "AND class.oid = ANY(%s)",
        (locked,),
    ).fetchall()
    if rows:
        changed = ", ".join(row[0] for row in rows)
        raise SnapshotError(
            f"{changed} was truncated or rewritten when the snapshot was made: make it again", code="SNAPSHOT_STALE"
        )


def try_to_lock(connection: Connection, statement: sql.Composed) -> bool:
    try:
        with connection.transaction():
            connection.execute(statement)
    except psycopg.errors.LockNotAvailable:
        return False
    return True


def blocked(tables: str) -> SnapshotError:
    return SnapshotError(
        f"another session waits to truncate or alter {tables}, and later readers wait behind it until the snapshot "
        "ends: end that session, or make the snapshot again",
        code="SNAPSHOT_BLOCKED",
    )


def check_columns(holder: Connection, observer: Connection) -> None:
    """Raise SnapshotError if the locked tables differ in names or columns between the snapshot and now."""
    locked = [row[0] for row in holder.execute(_LOCKED).fetchall()]
    # The tables were locked by name, and another table may have had the name: compare the names in the snapshot.
    query = (
        "SELECT class.oid::regclass::text, nspname, relname, attnum, attname, atttypid, atttypmod, attisdropped "
        "FROM pg_class AS class JOIN pg_namespace AS namespace ON namespace.oid = relnamespace "
        "LEFT JOIN pg_attribute ON attrelid = class.oid WHERE class.oid = ANY(%s)"
    )
    snapshot_columns, current_columns = (
        set(connection.execute(query, (locked,)).fetchall()) for connection in (holder, observer)
    )
    if snapshot_columns != current_columns:
        changed = ", ".join(sorted({row[0] for row in snapshot_columns ^ current_columns}))
        raise SnapshotError(f"{changed} was altered when the snapshot was made: make it again", code="SNAPSHOT_STALE")


def _end(holder: Connection) -> None:
    try:
        holder.execute("COMMIT")
    except psycopg.OperationalError as error:
        raise SnapshotError(
            "the server ended the session that locked the tables, and they may have changed while they were read: make "
            f"the snapshot again ({error})"
        ) from error
