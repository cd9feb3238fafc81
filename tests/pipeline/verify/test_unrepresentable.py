"""Values that a column's type cannot hold: an error, NULL, or a text beside it; the same in loads, changes and verify."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

from logicalrep.options.kinds import OptionError
from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.config.config import Config
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.stored_table import Position
from logicalrep.pipeline.operate.resync import read_known_settings
from logicalrep.pipeline.run.loop import TablesStoppedError
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.verify.verifying import verify
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.transactions.table_names import TableName
from logicalrep.values import ColumnValueError, column_type
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.reading import read_table
from tests.pipeline.replicating import replicate_once
from tests.pipeline.typed_changes import APP, change_batches, new_table, table_spec
from tests.postgres.servers import Database
from tests.values.value_literals import LITERALS

NUMERIC_10_2 = (10 << 16 | 2) + 4
COLUMNS = {"id": (23, -1), "at": (1114, -1), "n": (1700, NUMERIC_10_2), "a": (1007, -1), "at_text": (25, -1)}


def stored_rows(storage: Storage | Path, folder: str = "public/t") -> list[dict[str, Any]]:
    uri = storage.uri_of(folder) if isinstance(storage, Storage) else str(storage / folder)
    return read_table(uri).sort_by("id").to_pylist()


def test_types_lack_values_exactly_where_a_value_is_refused() -> None:
    for literal in LITERALS:
        type_ = column_type(literal.oid, literal.modifier)
        target = type_.spark
        try:
            value = type_.load("t", literal.text.encode())
            pa.array([value if target.convert is None else target.convert(value)], target.arrow())
        except ColumnValueError:
            continue  # The text itself is refused.
        except ValueError:
            assert target.lacks_values, literal
    lacking = {oid for oid in (1082, 1114, 1184, 1007, 1231) if column_type(oid).spark.lacks_values}
    assert lacking == {1082, 1114, 1184, 1007, 1231}
    assert column_type(1700, NUMERIC_10_2).spark.lacks_values
    assert not any(column_type(oid).spark.lacks_values for oid in (16, 20, 23, 25, 701, 1083, 1186, 1700, 2950))


@pytest.mark.parametrize("treatment", ["null", "text"])
@pytest.mark.parametrize("key", [("id",), None], ids=str)
def test_changes(tmp_path: Path, treatment: Any, key: tuple[str, ...] | None) -> None:
    storage = Storage(str(tmp_path))
    table = replace(table_spec(COLUMNS, key), settings=TableSettings(unrepresentable=treatment))
    assert not any(pa.types.is_floating(field.type) for field in table.schema)
    log = new_table(storage, table.with_texts(table.lacking))
    odd = {"id": "1", "at": "infinity", "n": "NaN", "a": "{{1},{2}}", "at_text": "own"}
    even = {"id": "2", "at": "2026-01-01 00:00:00", "n": "19.90", "a": "{1}", "at_text": None}
    apply(
        log,
        change_batches([("insert", None, odd), ("insert", None, even)], 10, key),
        Position(APP, Lsn(10)),
        SequentialEngine(),
    )
    first, second = stored_rows(storage)
    assert (first["at"], first["n"], first["a"], first["at_text"]) == (None, None, None, "own")
    assert (str(second["n"]), second["a"]) == ("19.90", [1])
    if treatment == "text":
        assert list(first) == ["id", "at", "at_text_2", "n", "n_text", "a", "a_text", "at_text"]
        assert (first["at_text_2"], first["n_text"], first["a_text"]) == ("infinity", "NaN", "{{1},{2}}")
        assert (second["at_text_2"], second["n_text"], second["a_text"]) == (None, None, None)
    else:
        assert list(first) == list(COLUMNS)
    # Both become what the other was; then the second goes.
    new_odd, new_even = even | {"id": "1"}, odd | {"id": "2"}
    updates = [("update", odd, new_odd), ("update", even, new_even), ("delete", new_even, None)]
    if key is not None:
        updates = [("update", None, new_odd), ("update", None, new_even), ("delete", {"id": "2"}, None)]
    apply(log, change_batches(updates, 20, key), Position(APP, Lsn(20)), SequentialEngine())
    (row,) = stored_rows(storage)
    assert row == second | {"id": 1}


def test_a_value_of_the_key_is_an_error_in_any_case(tmp_path: Path) -> None:
    storage, key = Storage(str(tmp_path)), ("at",)
    settings = TableSettings(unrepresentable="text")
    table = replace(table_spec({"at": (1114, -1), "on": (1082, -1)}, key), settings=settings)
    log = new_table(storage, table.with_texts(table.attnums))
    assert log.table.names == ("at", "on", "on_text")
    insert = change_batches([("insert", None, {"at": "infinity", "on": "infinity"})], 10, key)
    with pytest.raises(ColumnValueError, match="of the key"):
        apply(log, insert, Position(APP, Lsn(10)), SequentialEngine())
    assert (log.version, list(tmp_path.rglob("part-*"))) == (0, [])


def test_loads_changes_and_verify_agree(db18: Database, tmp_path: Path) -> None:
    for statement in (
        "CREATE TABLE t (id int PRIMARY KEY, at timestamptz, day date, n numeric(10,2), a int[])",
        "CREATE TABLE u (id int, n numeric(10,2)); ALTER TABLE u REPLICA IDENTITY FULL",
        "INSERT INTO t VALUES (1, 'infinity', '-infinity', 'NaN', '{{1},{2}}'), (2, now(), now(), 0.10, '{1}')",
        "INSERT INTO u VALUES (1, 'NaN'), (1, 'NaN'), (1, NULL), (1, 0.1)",
    ):
        db18.execute(statement)
    storage = tmp_path / "lake"
    with pytest.raises(TablesStoppedError, match="--unrepresentable null or text") as raised:
        replicate_once(db18, storage)
    # The error names the type of the stored column, the row and the setting, and nothing of Spark.
    assert "the stored type timestamp[us, tz=UTC] cannot hold it (in the row id=1); the setting unrepresentable" in str(
        raised.value
    )
    assert "Spark" not in str(raised.value)
    name = TableName("public", "t")
    for treatment in ("null", "text"):
        replicate_once(db18, storage, table_settings=TableSettings(unrepresentable=treatment))
        db18.execute("UPDATE t SET id = 5 - id, day = 'infinity', at = CASE id WHEN 2 THEN timestamptz '-infinity' END")
        db18.execute("DELETE FROM u WHERE ctid = (SELECT min(ctid) FROM u)")
        db18.execute("INSERT INTO u VALUES (1, 'NaN'), (1, NULL)")
        # As `resync` takes them.
        stored = read_known_settings(Storage(str(storage)))
        replicate_once(db18, storage, table_settings=stored.defaults, config=Config.of(stored.tables))
        assert read_known_settings(Storage(str(storage))).of(name).unrepresentable == treatment
        verdicts = list(verify(ConnectionSettings(db18.dsn), Storage(str(storage))))
        assert [(verdict.result, verdict.rows) for verdict in verdicts] == [
            ("equal", 2),
            ("equal", len(stored_rows(storage, "public/u"))),
        ]
        db18.execute("UPDATE t SET id = 5 - id")
        db18.execute("UPDATE t SET at = 'infinity' WHERE id = 1")
        replicate_once(db18, storage, table_settings=TableSettings(unrepresentable=treatment))
    first = stored_rows(storage, "public/t")[0]
    expected = {"id": 1, "at": None, "at_text": "infinity", "day": None, "day_text": "infinity", "n": None}
    assert first == expected | {"n_text": "NaN", "a": None, "a_text": "{{1},{2}}"}


@pytest.mark.parametrize("unrepresentable", ["null", "text"])
def test_changes_are_not_kept_with_other_values(unrepresentable: Literal["null", "text"]) -> None:
    with pytest.raises(OptionError, match="remove one of the two") as raised:
        TableSettings(append=True, unrepresentable=unrepresentable)
    assert raised.value.code == "OPTION_INVALID"
