"""The companion tables of a table: history and changes. Each has commits, and so a position, of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal

import numpy as np

from logicalrep.arrow.changes.change_batch import ChangeBatch
from logicalrep.arrow.changes.table_changes import TableChanges
from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.apply.events import Positions
from logicalrep.pipeline.catalog.matching import has_same_columns
from logicalrep.pipeline.engines.engine import Engine
from logicalrep.pipeline.errors import NeedsResync
from logicalrep.pipeline.formats.since_checkpoint import SinceCheckpoint, compare
from logicalrep.pipeline.formats.stored_table import Head, NewTable, Position, StoredTable, TableFormat
from logicalrep.pipeline.history.after_loads import write_change_files, write_marked_files, write_version_files
from logicalrep.pipeline.index.key_indexes import RowFinder
from logicalrep.pipeline.load.snapshot_copy import CopiedTable
from logicalrep.pipeline.schema.forms import CompanionDamagedError
from logicalrep.pipeline.schema.names import companion_folder
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import DamagedError
from logicalrep_runtime.scalars import Lsn

Companion = Literal["history", "changes"]
COMPANIONS: tuple[Companion, ...] = ("changes", "history")
"""The companion tables of a table, in the order of writing: all are written before the table itself."""
_EPOCH = 946_684_800_000_000
"""The microseconds from 1970 to 2000, PostgreSQL's epoch."""


def companions_of(settings: TableSettings) -> list[Companion]:
    is_wanted = {"history": settings.history, "changes": settings.append}
    return [companion for companion in COMPANIONS if is_wanted[companion]]


def opened_companions(tables: TableFormat, stored: StoredTable) -> dict[Companion, StoredTable] | None:
    """Return the companion tables of a table; None if a companion table is missing, or has rows of another load."""
    companions: dict[Companion, StoredTable] = {}
    for companion in companions_of(stored.table.settings):
        opened = tables.open(companion_folder(stored.folder, companion))
        if opened is None or opened.load != stored.load:
            return None
        companions[companion] = opened
    return companions


def compare_companion(stored: StoredTable, saved_head: Head | None) -> SinceCheckpoint:
    """Compare a companion table with its saved head; raises CompanionDamagedError if another program changed it."""
    since = compare(stored, saved_head)
    if since.foreign_change is not None:
        uri = stored.storage.uri_of(stored.folder)
        raise damaged(stored.folder, DamagedError(f"{uri}: {since.foreign_change}"))
    return since


def apply_companion(
    stored: StoredTable,
    changes: Sequence[ChangeBatch],
    position: Position,
    engine: Engine,
    *,
    may_lack_rows: bool = False,
    index: RowFinder | None = None,
) -> None:
    """Apply changes to a companion table, as `apply` does. Raises CompanionDamagedError for damaged files."""
    try:
        apply(stored, changes, position, engine, may_lack_rows=may_lack_rows, index=index)
    except DamagedError as error:
        raise damaged(stored.folder, error) from None


def replaced_companion(
    tables: TableFormat,
    folder: str,
    loaded: CopiedTable,
    new: NewTable,
    engine: Engine,
    *,
    buffered: Callable[[], Iterable[TableChanges]],
    before_application: str | None,
) -> StoredTable:
    """Move a companion table to the load's position in one commit; its rows stay.

    `buffered` reads the changes during the load. `before_application` is None if the table had no earlier load.
    """
    assert new.table.companion is not None
    own = companion_folder(folder, new.table.companion)
    previous = tables.open(own)
    # The load has the skipped changes; the companion table still lacks them.
    table = replace(new.table, skipped=() if previous is None else previous.table.skipped)
    if previous is not None:
        table = table.with_texts_like(previous.table)
    tables.prepare(own, table)
    try:
        if table.companion == "history":
            position = position_of(loaded)
            files = write_version_files(tables.storage, own, previous, folder, table, loaded.files, position, engine)
        elif previous is not None:
            was_applied = before_application is not None and previous.applied(before_application) is not None
            # If columns changed, the columns of each change are unknown: the changes until the load are not added.
            if was_applied and has_same_columns(previous.table, loaded.table):
                assert before_application is not None
                for changes in buffered():
                    _add_buffered(previous, changes, loaded.position, before_application, engine)
            files = write_change_files(previous, table, engine)
        else:
            files = []
    except DamagedError as error:
        raise damaged(own, error) from None
    return tables.replace(own, replace(new, table=table, files=files), previous)


def _add_buffered(stored: StoredTable, changes: TableChanges, end: Lsn, application: str, engine: Engine) -> None:
    batches = changes.between(last=int(end) - 1).readable().batches
    if batches:
        with suppress(NeedsResync):
            apply(stored, batches, Position(application, Lsn(int(batches[-1].lsns[-1]))), engine)


def add_marked_files(loaded: CopiedTable, previous: StoredTable | None, engine: Engine) -> CopiedTable:
    if previous is None or loaded.table.form != "marked":
        return loaded
    files = write_marked_files(previous, loaded.table, loaded.files, position_of(loaded), engine)
    return replace(loaded, files=[*loaded.files, *files])


def position_of(loaded: CopiedTable) -> Positions:
    """Return the position of a load: before all changes of a commit at its LSN."""
    taken = int(loaded.taken) + _EPOCH
    return Positions(*(np.array([number], np.int64) for number in (int(loaded.position), -1, taken)))


def damaged(folder: str, error: DamagedError | CompanionDamagedError) -> CompanionDamagedError:
    if isinstance(error, CompanionDamagedError):
        return error
    return CompanionDamagedError(
        f"{error.description}: restore it, or remove the folder {folder}, which the next load then creates anew"
    )
