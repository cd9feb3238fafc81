"""Verdicts of verify, and rows that somebody changed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from logicalrep.pipeline.formats.stored_table import Position
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.data_files import read_rows, write_rows
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.verify.verdicts import Verdict
from logicalrep.pipeline.verify.verifying import verify
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.reading import open_stored
from tests.postgres.servers import Database


def verdict_texts(verdicts: dict[str, Verdict]) -> dict[str, str]:
    """Return the results, and the reasons where there are some."""
    return {name: f"{verdict.result} {verdict.reason}".strip() for name, verdict in verdicts.items()}


def verify_tables(db: Database, storage: Path, *tables: str, **options: object) -> dict[str, Verdict]:
    names = [TableName("public", table) for table in tables]
    verdicts = verify(db.settings, Storage(str(storage)), names, **options)  # type: ignore[arg-type]
    return {verdict.table.name: verdict for verdict in verdicts}


def rewrite(storage: Path, table: str, change: object) -> None:
    """Replace the rows of a Delta table by those that a function makes of them."""
    log = open_stored(storage, f"public/{table}")
    files = list(log.files.values())
    rows = pa.concat_tables(
        read_rows(log.storage, log.folder, file, log.table.schema, log.table.names) for file in files
    )
    state = State.read(log.storage).tables[str(TableName("public", table))]
    changed = write_rows(log.storage, log.folder, log.table.stored, change(rows))  # type: ignore[operator]
    log.commit(changed, files, Position("a test", Lsn(state.lsn)))


def raise_values(rows: pa.Table, is_wanted: pa.Array) -> pa.Table:
    at = rows.schema.get_field_index("v")
    values = pc.if_else(is_wanted, pc.add(rows.column("v"), 1000), rows.column("v"))
    return rows.set_column(at, rows.schema.field(at), values.cast(pa.int32()))
