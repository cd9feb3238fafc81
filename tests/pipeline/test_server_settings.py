"""Tables are the same whatever settings the role and the database have."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from logicalrep.observe.observer import Observers
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.verify.verifying import verify
from logicalrep.postgres.connection import ConnectionSettings
from tests.pipeline.reading import read_table
from tests.pipeline.replicating import replicate_once
from tests.postgres.hostile_settings import HOSTILE, ODD, with_settings
from tests.postgres.servers import Database

_TYPES = {
    "date": "'2026-02-03'",
    "timestamp": "'2026-02-03 04:05:06.789'",
    "timestamptz": "'2026-02-03 04:05:06+00'",
    "interval": "'1 year -2 days 03:04:05'",
    "float4": "0.1",
    "float8": "0.1::float8 + 0.2",
    "bytea": "'\\x00ff5c'",
    "text": "E'a\\\\b''c\"ä'",
    "\"Odd Name\"": "'odd'",
    "tstzrange": "'[2026-02-03 04:05:06+00,)'",
    "date[]": "'{2026-02-03,NULL}'",
    "tsvector": "'a b'",
    "money": "'1.50'",
}  # fmt: skip


def _replicate(connection: ConnectionSettings, folder: Path) -> None:
    settings = ReplicateSettings(connection, str(folder), once=True)
    replicate_with(settings, Observers(), engine=SequentialEngine())


@pytest.mark.parametrize("of", ["ROLE", pytest.param("DATABASE", marks=pytest.mark.thorough)])
def test_tables_are_the_same(db16_and_18: Database, tmp_path: Path, of: Literal["ROLE", "DATABASE"]) -> None:
    db = db16_and_18
    db.execute('CREATE DOMAIN "Odd Name" AS text', "CREATE SCHEMA hidden", "CREATE TABLE hidden.t (id int)")
    columns = ", ".join(f'"Column {number}" {type_}' for number, type_ in enumerate(_TYPES))
    db.execute(f"CREATE TABLE t (id int, k text, {columns}, PRIMARY KEY (id, k))")
    values = ", ".join(_TYPES.values())
    db.execute("ALTER TABLE t ENABLE ROW LEVEL SECURITY", f"INSERT INTO t VALUES (1, 'NULL', {values})")
    copy, expected = tmp_path / "copy", tmp_path / "expected"
    with with_settings(db, of, {**ODD, **HOSTILE}) as connection:
        _replicate(connection, copy)
        db.execute(
            f"INSERT INTO t VALUES (2, E'a\\\\b', {values}), (3, 'NULL', {values})", "UPDATE t SET id = 4 WHERE id = 1"
        )
        _replicate(connection, copy)
        db.execute("ALTER TABLE t ADD c float8 DEFAULT 0.1", f"INSERT INTO t VALUES (5, 'x', {values}, 0.3)")
        _replicate(connection, copy)
        results = {str(verdict.table): verdict.result for verdict in verify(connection, Storage(str(copy)))}
    assert results == {"public.t": "equal"}
    replicate_once(db, expected)
    rows = [read_table(str(folder / "public/t")).sort_by("id").to_pylist() for folder in (copy, expected)]
    assert len(rows[0]) == 4
    assert rows[0] == rows[1]
