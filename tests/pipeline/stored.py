"""Tables at a destination for tests of one part of replicate, and their rows as PostgreSQL's texts."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import pyarrow as pa

from logicalrep.pipeline.engines.engine import LocalValue
from logicalrep.pipeline.formats import opening
from logicalrep.pipeline.formats.delta.delta_log import DeltaLog
from logicalrep.pipeline.formats.stored_table import NewTable, Position, StoredTable
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_formats import FormatName
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.histories import Row, table
from tests.pipeline.reading import read_table

APP = "logicalrep/1/1/x"

KEYS = [("id",), ("b", "id"), None]

WriteMode = Literal["copy-on-write", "merge-on-read"]

MODES: tuple[WriteMode, ...] = ("copy-on-write", "merge-on-read")

MARKS_IN_SMALL_FILES = Limits(small_file_bytes=1, marked_share=1)
"""Rows are marked also where files are small, unless all of them go."""


def new_log(
    storage: Storage, key: tuple[str, ...] | None, folder: str = "public/t", mode: WriteMode = "copy-on-write"
) -> DeltaLog:
    log = new_stored(storage, key, folder, mode)
    assert isinstance(log, DeltaLog)
    return log


def new_stored(
    storage: Storage,
    key: tuple[str, ...] | None,
    folder: str = "public/t",
    mode: WriteMode = "copy-on-write",
    table_format: FormatName = "delta",
) -> StoredTable:
    """Return a new table in a format."""
    tables = opening.table_format(storage, table_format)
    spec = table(key, TableSettings(write_mode=mode, format=table_format))
    return tables.replace(
        folder, NewTable(spec, [], Position(APP, Lsn(999)), load="x", keep_hours=24), tables.open(folder)
    )


def new_stored_table(storage: Storage, spec: TableSpec) -> StoredTable:
    """Return a new table of a spec, in Delta's format."""
    position = Position(APP, Lsn(999))
    return opening.table_format(storage).replace(
        "public/t", NewTable(spec, [], position, load="x", keep_hours=24), None
    )


class PicklingTasks:
    """A runner that passes everything on as Spark does."""

    def run(self, function: Callable[[Any], Any], items: Sequence[Any], nbytes: int) -> list[Any]:
        return [pickle.loads(pickle.dumps(function(pickle.loads(pickle.dumps(item))))) for item in items]

    def run_together(self, function: Callable[[Any], Any], item: Any, nbytes: int) -> Any:
        return self.run(function, [item], nbytes)[0]

    def share(self, value: Any) -> AbstractContextManager[LocalValue[Any]]:
        return nullcontext(LocalValue(value))

    def check(self) -> None:
        pass


def rows_at(storage: Storage) -> Counter[Row]:
    """Read the table with another program, and return its rows as PostgreSQL's texts."""
    return texts_of(read_table(storage.uri_of("public/t"), storage.storage_options))


def texts_of(rows: pa.Table) -> Counter[Row]:
    """Return rows as PostgreSQL's texts."""

    def text(value: Any) -> str | None:
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, float):
            return {"nan": "NaN", "inf": "Infinity", "-0.0": "-0"}.get(repr(value), repr(value))
        return str(value)

    return Counter(tuple(map(text, row)) for row in zip(*rows.to_pydict().values(), strict=True))
