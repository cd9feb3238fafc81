"""Requested reloads of tables, or of parts of tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from logicalrep.observe.figures import Standing
from logicalrep.pipeline.buffer.change_buffer import ChangeBuffer
from logicalrep.pipeline.buffer.pending_loads import ASKED_FOR, TableLoad
from logicalrep.pipeline.catalog.definitions import query_description
from logicalrep.pipeline.catalog.publishable import exists
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings, catalog_of_tables
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.load.deleted_keys import check_condition
from logicalrep.pipeline.masks.guard import masks_needed_error
from logicalrep.pipeline.operate.status import read_identity
from logicalrep.pipeline.state.destination_names import confirm_names
from logicalrep.pipeline.state.requests import (
    PartError,
    RequestedPart,
    RequestedPartition,
    request_part,
    request_resync,
)
from logicalrep.pipeline.state.state import State, StateError, States
from logicalrep.pipeline.state.stored_settings import StoredSettings
from logicalrep.pipeline.storage.storage import MalformedFileError, Storage
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.publications import query_published_tables
from logicalrep.postgres.server import query_server_identity
from logicalrep.postgres.slots.advancing import drop_slot
from logicalrep.postgres.slots.positions import outside_wal_reason
from logicalrep.postgres.slots.slot import find_slot
from logicalrep.postgres.table_rows.conditions import Condition
from logicalrep.transactions.table_names import TableName, table_name
from logicalrep_runtime.errors import LogicalRepError


def resync(
    settings: ConnectionSettings,
    storage: Storage,
    tables: Sequence[TableName],
    *,
    new_server: bool = False,
    new_slot: bool = False,
    slot: str | None = None,
    publication: str | None = None,
    refuse: Callable[[], object] = lambda: None,
) -> bool:
    """Request the reload of tables, or of all if none is named, which also replaces a lost slot. `refuse` is called
    first if no process runs; with `new_slot`, none may. Return whether a running process takes it.
    Raises StateError or UnconfirmedNameError."""
    identity, states = read_identity(storage), States(storage)
    state = states.last
    names = {name: table_name(name) for name in state.tables}
    unknown = [str(table) for table in tables if table not in names.values()]
    if unknown:
        raise StateError(f"{storage.uri} has no table {', '.join(unknown)}; it has {', '.join(names) or 'none'}")
    with settings.connect() as connection:
        system, database = query_server_identity(connection)
        is_other = new_server and (identity.system_identifier, identity.database) != (system, database)
        if not is_other:
            identity.check(system_identifier=system, database=database)
        current_slot = find_slot(connection, identity.slot)
        if current_slot is not None and current_slot.active_pid is not None and not new_slot:
            request_resync(storage, list(tables or names.values()))
            return True
        refuse()
        is_useless = (
            is_other
            or new_slot
            or current_slot is None
            or current_slot.lost is not None
            # A slot at another position does not prove that the server has all commits of the tables.
            or current_slot.confirmed.lsn != state.lsn
            or outside_wal_reason(settings, current_slot, state.position(system)) is not None
        )
        if not tables and is_useless:
            confirm_names(storage, identity, slot=slot, publication=publication)
            if current_slot is not None:
                drop_slot(connection, identity.slot)
            # OIDs and positions of the old slot are no longer valid.
            tables_without_oids = {name: replace(table, oid=None) for name, table in state.tables.items()}
            states.write(State(tables=tables_without_oids, until=state.until))
    buffer = ChangeBuffer(storage)
    for name, table in state.tables.items():
        if not tables or names[name] in tables:
            buffer.remove(table.folder)
            buffer.save_pending_load(TableLoad(table.folder, ASKED_FOR, table.load))
    if is_other:
        # The identity changes last: until then the command can be repeated.
        identity.replace_server(storage, system_identifier=system, database=database)
    return False


def resync_part(
    settings: ConnectionSettings,
    storage: Storage,
    name: TableName,
    condition: Condition | None = None,
    *,
    refuse: Callable[[], object] = lambda: None,
) -> bool:
    """Request the reload of a part by key; keys that the server lacks are removed. Return whether a running process
    takes it. Raises StateError, PartError or ConditionError."""
    identity, state = read_identity(storage), State.read(storage)
    names = [table_name(text) for text in state.tables]
    with settings.connect() as connection:
        system, database = query_server_identity(connection)
        identity.check(system_identifier=system, database=database)
        connection.execute(f"SET lock_timeout = '{storage.limits.lock_seconds}s'")
        table, partition = name, None
        if name not in names:
            above = connection.execute(_PARTITION, list(name)).fetchall()
            stored_tables = [row for row in above if TableName(*row[:2]) in names]
            if not stored_tables:
                raise StateError(f"{storage.uri} has no table {name}; it has {', '.join(state.tables) or 'none'}")
            table, partition = TableName(*stored_tables[0][:2]), RequestedPartition(stored_tables[0][2], name)
        if state.tables[str(table)].state is Standing.STOPPED:
            raise PartError(f"{table} is stopped: run logicalrep resync {table}, which reloads the whole table")
        part = RequestedPart(table, condition, partition)
        publications = (identity.publication,)
        described = query_description(connection, table, publications, read_known_settings(storage).of(table))
        if described is None:
            raise PartError(f"the server no longer has a table {table}")
        check_condition(connection, described, publications, part)
        slot = find_slot(connection, identity.slot)
        is_running = slot is not None and slot.active_pid is not None
        if not is_running:
            refuse()
        request_part(storage, part)
    return is_running


# The ancestors of a partition.
_PARTITION = """
WITH RECURSIVE above AS (
    SELECT class.oid AS partition, class.oid FROM pg_class AS class
    JOIN pg_namespace AS namespace ON namespace.oid = relnamespace
    WHERE nspname = %s AND relname = %s AND relispartition
    UNION ALL
    SELECT above.partition, inhparent FROM above JOIN pg_inherits ON inhrelid = above.oid
)
SELECT nspname, relname, partition::bigint
FROM above JOIN pg_class AS class ON class.oid = above.oid
JOIN pg_namespace AS namespace ON namespace.oid = relnamespace
"""


def query_known_tables(settings: ConnectionSettings, storage: Storage) -> tuple[TableName, ...]:
    """Return the tables of a destination that can be reloaded; tables that it does not have are not among them."""
    names = [table_name(name) for name in State.read(storage).tables]
    with settings.connect() as connection:
        published = query_published_tables(connection, (read_identity(storage).publication,))
        # A new server may lack the publication, which the run creates there.
        return tuple(name for name in names if (name in published if published else exists(connection, name)))


def read_known_settings(storage: Storage) -> StoredSettings:
    stored = StoredSettings.read(storage)
    if stored is None and State.read(storage).tables:
        # Without the settings, masked or omitted columns would be loaded in clear.
        raise MalformedFileError(
            f"the settings of the tables in {storage.uri} are missing: run replicate with --config"
        )
    return stored or StoredSettings()


def refuse_unknown_masks(storage: Storage, catalog: CatalogSettings | None) -> None:
    """Raise StateError if a destination has masked or omitted columns: others may have changed it, so only the
    operator's masks are trusted."""
    identity, stored = read_identity(storage), read_known_settings(storage)
    masked = {str(name) for name, settings in stored.tables.items() if settings.protected}
    masked |= {str(name) for name in stored.protected.values()}
    identity.check_catalog(catalog_of_tables(catalog))
    tables = table_format(storage, identity.table_format, catalog)
    for name, table in State.read(storage).tables.items():
        with suppress(LogicalRepError):
            opened = tables.open(table.folder)
            if opened is not None and opened.table.settings.protected:
                masked.add(name)
    if masked:
        raise masks_needed_error(storage, sorted(masked))
