"""Tables loaded again because somebody asks for it."""

from __future__ import annotations

from collections.abc import Sequence

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.slots import drop_slot, find_slot
from logicalrep.tables.config.config import Config, Entry
from logicalrep.tables.delta.delta_log import DeltaLog
from logicalrep.tables.delta.place import Place
from logicalrep.tables.follow.kept import Kept, Mark
from logicalrep.tables.follow.state import State, StateError
from logicalrep.tables.operate.status import known
from logicalrep.tables.replicate.requests import request_resync
from logicalrep.transactions.table_names import TableName, table_names


def resync(settings: ConnectionSettings, place: Place, tables: Sequence[TableName]) -> bool:
    """Have tables loaded again; readers have the old rows until the new ones are whole.

    Args:
        settings: the server.
        place: the place.
        tables: the tables; none for all, which also makes a new slot where the slot is lost or was moved.

    Returns whether a running process does it; otherwise the next one does.

    Raises:
        StateError: nothing is replicated to the place, or it has no such table.
    """
    identity = known(place)
    state = State.read(place)
    names = {name: table_names(name)[0] for name in state.tables}
    unknown = [str(table) for table in tables if table not in names.values()]
    if unknown:
        raise StateError(f"{place.uri} has no table {', '.join(unknown)}; it has {', '.join(names) or 'none'}")
    with settings.connect() as connection:
        slot = find_slot(connection, identity.slot)
        if slot is not None and slot.active_pid is not None:
            request_resync(place, list(tables or names.values()))
            return True
        is_useless = slot is None or slot.lost is not None or slot.confirmed.lsn > state.lsn
        if not tables and is_useless:
            if slot is not None:
                drop_slot(connection, identity.slot)
            # Nothing of the old slot counts any more.
            State(tables=state.tables).write(place)
    kept = Kept(place)
    for name, table in state.tables.items():
        if not tables or names[name] in tables:
            kept.remove(table.folder)
            kept.mark(Mark(table.folder, table.load, "asked for"))
    return False


def known_settings(place: Place) -> Config:
    """Return the settings with which a place's tables were loaded, so that they can be loaded again like that."""
    logs = {name: DeltaLog.open(place, table.folder) for name, table in State.read(place).tables.items()}
    return Config(
        {
            table_names(name)[0]: Entry(f"the table {name}", log.table.settings, is_optional=True)
            for name, log in logs.items()
            if log is not None
        }
    )


__all__ = ["known_settings", "resync"]
