"""Ends the replication to a destination."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
from psycopg import sql

from logicalrep.pipeline.catalog.publication_plan import is_ours
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings, catalog_of_tables
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import TableFormat
from logicalrep.pipeline.history.companion import COMPANIONS
from logicalrep.pipeline.operate.status import read_identity
from logicalrep.pipeline.schema.names import companion_folder
from logicalrep.pipeline.state.destination_names import confirm_names
from logicalrep.pipeline.state.state import DELETED_LAST, FOLDER, State
from logicalrep.pipeline.state.table_state import TableState
from logicalrep.pipeline.storage.data_files import DATA_FILE
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.slots.advancing import drop_slot
from logicalrep.postgres.slots.slot import find_slot
from logicalrep.postgres.slots.usage import check_free
from logicalrep_runtime.errors import LogicalRepError


def drop(
    settings: ConnectionSettings,
    storage: Storage,
    *,
    deletes_tables: bool,
    catalog: CatalogSettings | None = None,
    slot: str | None = None,
    publication: str | None = None,
) -> list[str]:
    """Drop the slot, the publication if it was created for the destination, and the destination's own files; return a
    sentence for each action. Nothing is dropped if the catalog does not answer (StorageError) or a file is
    damaged (MalformedFileError). Raises StateError, SlotError while a process replicates, or UnconfirmedNameError."""
    identity, state = read_identity(storage), State.read(storage)
    identity.check_catalog(catalog_of_tables(catalog))
    confirm_names(storage, identity, slot=slot, publication=publication)
    tables = table_format(storage, identity.table_format, catalog)
    sentences = []
    with settings.connect() as connection:
        current_slot = find_slot(connection, identity.slot)
        if current_slot is not None:
            check_free(connection, current_slot)
            drop_slot(connection, identity.slot)
            sentences.append(f"dropped the replication slot {identity.slot}")
        if is_ours(connection, identity.publication):
            statement = sql.SQL("DROP PUBLICATION {}").format(sql.Identifier(identity.publication))
            try:
                connection.execute(statement)
                sentences.append(f"dropped the publication {identity.publication}")
            except psycopg.errors.InsufficientPrivilege:
                text = statement.as_string(connection)
                sentences.append(f"the publication {identity.publication} stays: let its owner run {text}")
    deleted = _tables(tables, state.tables) if deletes_tables else {}
    for folder, label in deleted.items():
        if _is_ours(tables, folder):
            tables.remove(folder)
        else:
            # Only the state names this folder: it may hold another program's files.
            for path in storage.list(folder):
                if DATA_FILE.fullmatch(path.removeprefix(f"{folder}/")):
                    storage.delete(path)
        if label is not None:
            sentences.append(f"deleted {label}")
    for path in sorted(storage.list(FOLDER), key=_deletion_order):
        storage.delete(path)
    for folder in {FOLDER, *(path.partition("/")[0] for path in deleted)}:
        storage.remove_empty_folders(folder)
    return sentences


def _deletion_order(path: str) -> tuple[int, str]:
    """Return a sort key, so that `replicate` refuses a partly deleted destination: state.json, then older states."""
    return next((rank for rank, start in enumerate(DELETED_LAST, 1) if path.startswith(start)), 0), path


def _tables(stored: TableFormat, tables: Mapping[str, TableState]) -> dict[str, str | None]:
    """Return the folders of current and earlier tables, each with its description, None for a companion table."""
    texts: dict[str, str | None] = {table.folder: f"the table {name}" for name, table in tables.items()}
    folders = stored.find_folders()
    for folder in sorted(folders - texts.keys()):
        if _is_ours(stored, folder):
            texts[folder] = f"the folder {folder}, of an earlier table"
    return texts | {
        companion: None
        for folder in texts
        for companion_name in COMPANIONS
        if (companion := companion_folder(folder, companion_name)) in folders
    }


def _is_ours(tables: TableFormat, folder: str) -> bool:
    try:
        return tables.is_own(folder)
    except LogicalRepError:
        return False
