"""The progress of a destination and of its slot on the server."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from logicalrep.observe.lag import lag_seconds
from logicalrep.pipeline.schema.stored_json import plain
from logicalrep.pipeline.state.requests import read_paused_since
from logicalrep.pipeline.state.state import Identity, State, StateError
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.server import query_oldest_load, query_oldest_writer
from logicalrep.postgres.slots.slot import Slot, find_slot, query_missing_wal
from logicalrep.postgres.slots.standbys import query_standby_copies


@dataclass(frozen=True, slots=True)
class Status:
    slot: str
    publication: str
    is_running: bool
    """Whether a process reads the slot."""
    lsn: str
    """Every commit before it is in the tables that follow."""
    lag_bytes: int | None
    """The bytes of WAL that the server has written since; None without a slot."""
    lag_seconds: float | None
    """The most seconds that the tables may lag: since their last commit, or since they last had all commits, whichever
    is later. 0 if the server has written no WAL since; None if unknown."""
    retained_bytes: int | None
    """The bytes of WAL that the server retains for the slot."""
    safe_wal_size: int | None
    """The bytes of WAL that max_slot_wal_keep_size leaves; None without a bound."""
    paused_since: str | None
    """The start time of the pause, ISO 8601 in UTC; None if the destination is not paused."""
    lost: str | None
    """The reason why the slot is lost; None otherwise."""
    standbys: dict[str, bool | None] | None
    """Whether each standby in the DSN has a synchronized copy of the slot; None without a failover slot."""
    oldest_transaction: str | None
    """A text about the oldest open transaction that has written: WAL is retained from its start on; else None."""
    oldest_transaction_since: str | None
    """Its start time, in UTC; None for another role's transaction, without the rights of pg_read_all_stats."""
    load_snapshot: str | None
    """The start time, in UTC, of the oldest load's snapshot in this database, of any destination; else None."""
    tables: dict[str, dict[str, Any]]
    """The tables by name: `state`, `phase`, `lsn`, `version` and so on, as in `_logicalrep/state.json`."""

    @property
    def has_begun(self) -> bool:
        return self.lag_bytes is not None or self.lost is not None

    def to_json(self) -> dict[str, object]:
        return {
            "slot": self.slot,
            "publication": self.publication,
            "is_running": self.is_running,
            "lsn": self.lsn,
            "lag_bytes": self.lag_bytes,
            "lag_seconds": self.lag_seconds,
            "retained_bytes": self.retained_bytes,
            "safe_wal_size": self.safe_wal_size,
            "paused_since": self.paused_since,
            "lost": self.lost,
            "standbys": self.standbys,
            "oldest_transaction": self.oldest_transaction,
            "oldest_transaction_since": self.oldest_transaction_since,
            "load_snapshot": self.load_snapshot,
            "tables": self.tables,
        }


def query_status(settings: ConnectionSettings, storage: Storage) -> Status:
    identity = read_identity(storage)
    state = State.read(storage)
    with settings.connect() as connection:
        slot = find_slot(connection, identity.slot)
        if slot is not None and slot.lost is None:
            slot = replace(slot, lost=query_missing_wal(connection, slot))
        (oldest, began), load = query_oldest_writer(connection) or (None, None), query_oldest_load(connection)
    is_running = slot is not None and slot.active_pid is not None
    if not is_running:
        # A killed process left the progress of its copies, whose snapshots ended with it.
        state = state.without_progress
    lag = None if slot is None else max(slot.head - state.lsn, 0)
    times = [datetime.fromisoformat(text) for text in (state.commit_timestamp, state.caught_up) if text is not None]
    return Status(
        slot=identity.slot,
        publication=identity.publication,
        is_running=is_running,
        lsn=str(state.lsn),
        lag_bytes=lag,
        lag_seconds=None if slot is None else lag_seconds(lag, slot.time, *times),
        retained_bytes=None if slot is None else slot.retained_bytes,
        safe_wal_size=None if slot is None else slot.safe_wal_size,
        paused_since=read_paused_since(storage),
        lost=_why_lost(slot, state),
        standbys=query_standby_copies(settings, slot.name) if slot is not None and slot.failover else None,
        oldest_transaction=oldest,
        oldest_transaction_since=None if began is None else began.isoformat(),
        load_snapshot=None if load is None else load.isoformat(),
        tables={name: {"state": table.state, **plain(table)} for name, table in state.tables.items()},
    )


def _why_lost(slot: Slot | None, state: State) -> str | None:
    if slot is not None:
        return slot.lost
    # Before the first start, there is no slot to lose.
    return "it does not exist" if state.lsn else None


def read_identity(storage: Storage) -> Identity:
    """Return a destination's identity. Raises StateError if nothing is replicated there."""
    identity = Identity.read(storage)
    if identity is None:
        raise StateError(f"nothing is replicated to {storage.uri}", code="DESTINATION_EMPTY")
    return identity
