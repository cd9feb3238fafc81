"""What a catalog says is damaged at random: replicate opens the right rows, no table, or one error with a code."""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("moto")

from logicalrep.pipeline.formats.stored_table import NewTable, Position
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.formats.damaging import MUTATIONS, changed_json, ids_of
from tests.pipeline.formats.iceberg.catalogs.kinds import CatalogOfTests, catalog_of
from tests.pipeline.formats.iceberg.tables import insert
from tests.pipeline.histories import table
from tests.pipeline.stored import APP

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore:.*unclosed:ResourceWarning")]
_TEXTS = ("", "\0", "..", "/etc/passwd", "https://example.org/x.metadata.json", "v1.metadata.json", None, 7, b"\xff")
"""Values for columns of a catalog's rows."""


def write_table(catalog: CatalogOfTests) -> None:
    spec = table(("id",), TableSettings(format="iceberg"))
    new = NewTable(spec, [], Position(APP, Lsn(999)), load="x", keep_hours=24)
    stored = catalog.open().replace("public/t", new, None)
    for number in range(3):
        insert(stored, 1000 + number, range(10 * number, 10 * number + 10))


def outcome_of(catalog: CatalogOfTests, expected: Counter[object]) -> str:
    """Return the code of the error of an opened table, or whether it has the right rows."""
    try:
        stored = catalog.open().open("public/t")
        if stored is None:
            return "no table"
        stored.foreign_change(-1)
        rows = ids_of(stored)
    except LogicalRepError as error:
        return error.code
    return "rows" if rows == expected else f"other rows of version {stored.version}"


def ids(count: int) -> Counter[object]:
    return Counter(range(count))


def test_rows_of_an_sql_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, outcomes = random.Random(3), Counter[str]()
    with catalog_of("sqlite", tmp_path, monkeypatch) as catalog:
        write_table(catalog)
        database = tmp_path / "catalog.db"
        data = database.read_bytes()
        with closing(sqlite3.connect(database)) as connection:
            columns = [row[1] for row in connection.execute("PRAGMA table_info(iceberg_tables)")]
        for number in range(200):
            column, value = columns[number % len(columns)], chance.choice(_TEXTS)
            with closing(sqlite3.connect(database)) as connection, connection:
                ((text,),) = connection.execute(f"SELECT {column} FROM iceberg_tables")
                if chance.random() < 0.5 and text:
                    value = chance.choice(MUTATIONS)(text.encode(), chance).decode(errors="replace")
                connection.execute(f"UPDATE OR IGNORE iceberg_tables SET {column} = ?", (value,))
            outcomes[outcome_of(catalog, ids(30))] += 1
            database.write_bytes(data)
        for _ in range(200):
            database.write_bytes(chance.choice(MUTATIONS)(data, chance))
            outcomes[outcome_of(catalog, ids(30))] += 1
        database.write_bytes(data)
        assert outcome_of(catalog, ids(30)) == "rows"
    check(outcomes)


def check(outcomes: Counter[str]) -> None:
    assert not [outcome for outcome in outcomes if outcome.startswith("other rows")], outcomes
    assert outcomes["rows"] > 20
    assert outcomes.total() - outcomes["rows"] > 20


def test_answers_of_a_rest_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, outcomes = random.Random(5), Counter[str]()
    with catalog_of("rest", tmp_path, monkeypatch) as catalog:
        write_table(catalog)
        assert catalog.server is not None
        answer: Callable[[list[str]], str] = catalog.server.answer_table

        def damaged(parts: list[str]) -> str:
            text = answer(parts)
            if chance.random() < 0.8:
                content: Any = changed_json(json.loads(text), chance)
                return json.dumps(content)
            return chance.choice(MUTATIONS)(text.encode(), chance).decode(errors="replace")

        monkeypatch.setattr(catalog.server, "answer_table", damaged)
        for _ in range(300):
            outcomes[outcome_of(catalog, ids(30))] += 1
        monkeypatch.undo()
    check(outcomes)
