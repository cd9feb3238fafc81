"""The end of replicating to a place."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
from psycopg import sql

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.slots import check_free, drop_slot, find_slot
from logicalrep.tables.delta.delta_log import DeltaLog, WriterError
from logicalrep.tables.delta.names import folder_beside
from logicalrep.tables.delta.place import Place
from logicalrep.tables.follow.state import FOLDER, State, TableState
from logicalrep.tables.history.beside import BESIDES
from logicalrep.tables.load.publishing import is_ours
from logicalrep.tables.operate.status import known


def drop(settings: ConnectionSettings, place: Place, *, deletes_tables: bool) -> list[str]:
    """Drop the slot, the publication if it was made for the place, and the place's own files.

    Args:
        settings: the server.
        place: the place.
        deletes_tables: whether the tables' files are removed too.

    Returns what was done, a sentence each.

    Raises:
        StateError: nothing is replicated to the place.
        SlotError: a process still replicates to it.
    """
    identity = known(place)
    done = []
    with settings.connect() as connection:
        slot = find_slot(connection, identity.slot)
        if slot is not None:
            check_free(connection, slot)
            drop_slot(connection, identity.slot)
            done.append(f"dropped the replication slot {identity.slot}")
        if is_ours(connection, identity.publication):
            statement = sql.SQL("DROP PUBLICATION {}").format(sql.Identifier(identity.publication))
            try:
                connection.execute(statement)
                done.append(f"dropped the publication {identity.publication}")
            except psycopg.errors.InsufficientPrivilege:
                text = statement.as_string(connection)
                done.append(f"the publication {identity.publication} stays: let its owner run {text}")
    if deletes_tables:
        done += _deleted(place, State.read(place).tables)
    # The identity goes last: until then the command can be run again.
    files = sorted(place.list(FOLDER), key=lambda path: path.endswith("/place.json"))
    for path in files:
        place.delete(path)
    place.remove_empty_folders()
    return done


def _deleted(place: Place, tables: Mapping[str, TableState]) -> list[str]:
    """Delete tables, and others that the place got before: of earlier names, or that are not replicated any more."""
    names = {table.folder: f"the table {name}" for name, table in tables.items()}
    folders = {path.partition("/_delta_log/")[0] for path in place.list("") if "/_delta_log/" in path}
    beside = {folder_beside(folder, each) for folder in folders for each in BESIDES}
    done = []
    for folder in sorted(folders | names.keys(), key=lambda folder: (folder not in names, folder)):
        try:
            DeltaLog.open(place, folder)
        except WriterError:
            # Another program's.
            continue
        for path in place.list(folder):
            place.delete(path)
        if folder not in beside:
            done.append(f"deleted {names.get(folder, f'the folder {folder}, of an earlier table')}")
    return done


__all__ = ["drop"]
