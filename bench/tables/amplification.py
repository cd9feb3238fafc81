"""The cost of a batch of random updates of a large table: by copying files, and by marking rows in deletion vectors.

The tables are made without a server, and the batches are applied in this process, as an engine does it for one table.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.tables.setting import Setting
from logicalrep.arrow.changes.change_batch import ChangeBatch
from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.formats.stored_table import NewTable, Position, StoredTable
from logicalrep.pipeline.index.key_indexes import KeyIndexes, TableIndex
from logicalrep.pipeline.schema.table_formats import FormatName
from logicalrep.pipeline.schema.table_settings import TableSettings, WriteMode
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import write_rows
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.upkeep.merging import merge_next
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.tags import UPDATE
from logicalrep.values import TypeCatalog
from logicalrep_protocol import v1
from logicalrep_protocol.v1 import ReplicaIdentity
from logicalrep_runtime.scalars import Lsn, Oid
from tests.pipeline.evidence import evidence

_SIZES = (1, 10)
"""The rows of the tables, as multiples of the scale."""
_UPDATES = (10, 100, 1_000, 100_000)
_ROUNDS = 3
APP = "logicalrep/1/1/bench"
_FILE_ROWS = 1 << 20
_WAYS: tuple[tuple[WriteMode, bool], ...] = (
    ("copy-on-write", False),
    ("copy-on-write", True),
    ("merge-on-read", False),
    ("merge-on-read", True),
)
"""The write modes, each without and with an index."""
_GROWTH = (1, 10, 100)
"""The rows of the tables of `of_index`, as multiples of the scale."""
NARROW = {"id": (20, -1), "a": (23, -1), "b": (23, -1), "filler": (25, -1)}
_WIDE = {
    "id": (20, -1),
    "customer": (23, -1),
    "price": (1700, (12 << 16 | 2) + 4),
    "note": (25, -1),
    "placed": (1184, -1),
    "is_paid": (16, -1),
    "details": (3802, -1),
    "token": (2950, -1),
}
"""The types and modifiers of columns."""


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure both modes beside each other."""
    for name, columns in (("4 columns", NARROW), ("8 columns", _WIDE)):
        for size in _SIZES:
            yield from of_table(setting.folder, name, columns, size * setting.scale, _UPDATES)


def of_index(setting: Setting) -> Iterator[dict[str, Any]]:
    """Measure a thousand random updates, which an index finds and which are marked, as the table grows."""
    for size in _GROWTH:
        yield from of_table(setting.folder, "4 columns", NARROW, size * setting.scale, (1_000,), _WAYS[-1:])


def of_table(
    folder: Path,
    name: str,
    columns: dict[str, tuple[int, int]],
    rows: int,
    updates: tuple[int, ...],
    ways: tuple[tuple[WriteMode, bool], ...] = _WAYS,
) -> Iterator[dict[str, Any]]:
    """Measure random updates of a table with so many rows, in write modes without and with an index."""
    for mode, is_indexed in ways:
        storage = Storage(str(folder / f"{len(columns)}-{rows}-{mode}-{is_indexed}"))
        stored = make_table(storage, columns, rows, mode)
        index = _index(stored, folder, rows) if is_indexed else None
        chance, lsn = np.random.default_rng(1), 1000
        for count in updates:
            costs = []
            for _ in range(_ROUNDS):
                lsn += 1
                ids = chance.choice(rows, count, replace=False)
                costs.append(_cost(stored, updates_of(columns, ids, lsn), lsn, index))
            written, read, processor, seconds = (statistics.median(values) for values in zip(*costs, strict=True))
            yield {
                "measured": f"{count:,} random updates of {rows:,} rows x {name}, {mode}{', index' * is_indexed}",
                "written, MB": round(written / 1e6, 3),
                "read, MB": round(read / 1e6, 1),
                "CPU-seconds": round(processor, 3),
                "seconds": round(seconds, 3),
            }


def _index(stored: StoredTable, folder: Path, rows: int) -> TableIndex | None:
    """Return the whole index of a table; None for a table that is too small to have one."""
    index = KeyIndexes(stored.storage.uri, 50 * rows, print, folder / "indexes").of(stored)
    while index is not None and index.is_behind(stored):
        index.follow(stored)
    return index


def _cost(
    stored: StoredTable, changes: ChangeBatch, lsn: int, index: TableIndex | None
) -> tuple[float, float, float, float]:
    """Apply changes; return the bytes written and read, and the seconds of the processor and of the clock."""
    old_usage, began = usage(), time.monotonic()
    apply(stored, [changes], Position(APP, Lsn(lsn)), SequentialEngine(), index=index)
    took = time.monotonic() - began
    written, read, processor = (
        new_figure - old_figure for new_figure, old_figure in zip(usage(), old_usage, strict=True)
    )
    while merge_next(stored, SequentialEngine()):
        pass
    stored.maintain(0)
    return written, read, processor, took


def usage() -> tuple[float, float, float]:
    """Return the bytes that this process has written and read, and its processor seconds."""
    io = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    used = resource.getrusage(resource.RUSAGE_SELF)
    return float(io["wchar"]), float(io["rchar"]), used.ru_utime + used.ru_stime


def make_table(
    storage: Storage,
    columns: dict[str, tuple[int, int]],
    rows: int,
    mode: WriteMode,
    format_name: FormatName = "delta",
) -> StoredTable:
    """Make a table of columns, by their types and modifiers, with so many rows."""
    described = _described(columns)
    numbers = tuple(range(1, len(columns) + 1))
    settings = TableSettings(write_mode=mode, format=format_name)
    facts = evidence(
        [(n, column.name, column.type_id, -1) for n, column in zip(numbers, described.columns, strict=True)]
    )
    spec = TableSpec(described, TypeCatalog(), ("id",), numbers, ((1, 1),), facts, settings=settings)
    stored = table_format(storage, format_name).replace(
        "public/t", NewTable(spec, [], Position(APP, Lsn(1)), load="bench", keep_hours=24), None
    )
    files = []
    for first in range(0, rows, _FILE_ROWS):
        ids = np.arange(first, min(first + _FILE_ROWS, rows))
        texts = _texts(columns, ids, 0)
        parsed = [_parsed(text, field.type) for text, field in zip(texts, spec.stored, strict=True)]
        files += write_rows(storage, "public/t", spec.stored, pa.table(parsed, schema=spec.stored))
    stored.commit(files, [], Position(APP, Lsn(2)))
    return stored


def _described(columns: dict[str, tuple[int, int]]) -> TableDescription:
    return TableDescription(
        relation_id=Oid(1),
        schema="public",
        name="t",
        replica_identity=ReplicaIdentity.DEFAULT,
        columns=tuple(
            v1.Column(flags=int(name == "id"), name=name, type_id=Oid(type_), type_modifier=modifier)
            for name, (type_, modifier) in columns.items()
        ),
        types=(None,) * len(columns),
    )


def _parsed(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(type_):
        return pc.utf8_slice_codeunits(texts, 0, 19).cast(pa.timestamp("us")).cast(type_)
    return pc.equal(texts, "t") if pa.types.is_boolean(type_) else texts.cast(type_)


def updates_of(columns: dict[str, tuple[int, int]], ids: Any, lsn: int) -> ChangeBatch:
    """Return updates of rows, as the server sends them."""
    count, nothing = len(ids), pa.nulls(len(ids), pa.string())
    numbers = [np.full(count, lsn), np.arange(count), np.zeros(count, np.int64), np.ones(count, np.int64)]
    return ChangeBatch.of(
        _described(columns),
        np.full(count, UPDATE, np.uint8),
        np.zeros(count, np.uint8),
        [array.astype(np.int64) for array in numbers],
        np.zeros((count, len(columns)), bool),
        [nothing] * len(columns),
        _texts(columns, ids, lsn),
    )


def _texts(columns: dict[str, tuple[int, int]], ids: Any, seed: int) -> list[pa.Array]:
    """Return the texts of rows' values as the server sends them; the same for the same ids and seed."""
    # A hash of each row's number, so that values compress as those of a table do.
    mixed = (ids.astype(np.uint64) + np.uint64(seed)) * np.uint64(0x9E3779B97F4A7C15)
    numbers = (mixed >> np.uint64(40)).astype(np.int64)
    forms = {
        20: lambda: _decimal(ids),
        23: lambda: _decimal(numbers % 100_000),
        1700: lambda: [f"{number // 100}.{number % 100:02}" for number in numbers % 1_000_000],
        25: lambda: pc.binary_join_element_wise("note", _decimal(numbers % 5000), "of this order", " "),
        1184: lambda: [f"2026-11-{1 + number % 28:02} {number % 24:02}:{number % 60:02}:00+00" for number in numbers],
        16: lambda: np.where(numbers % 2 == 0, "t", "f"),
        3802: lambda: [f'{{"size": {number % 50}, "colour": "c{number % 7}"}}' for number in numbers],
        2950: lambda: [
            f"{number:032x}"[:8] + f"-0000-4000-8000-{number % (1 << 48):012x}" for number in mixed.tolist()
        ],
    }
    return [pa.array(forms[type_]()).cast(pa.string()) for type_, _ in columns.values()]


def _decimal(numbers: Any) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


__all__ = ["APP", "NARROW", "make_table", "measure", "of_index", "of_table", "updates_of", "usage"]
