"""Numerics without a bound as decimals and doubles: in loads, changes, verify, and with schema changes."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from logicalrep.pipeline.config.nodes import ConfigError
from logicalrep.pipeline.config.reading import read_config
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.run.loop import TablesStoppedError
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.verify.verdicts import Verdict
from logicalrep.pipeline.verify.verifying import verify
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.transactions.table_names import TableName
from tests.pipeline.reading import read_table
from tests.pipeline.replicating import replicate_for_warnings, replicate_meanwhile, replicate_once
from tests.postgres.servers import Database
from tests.waiting import eventually

CONFIG = {"tables": {"t": {"numeric": {"price": "decimal(20,4)", "ratio": "double", "id": "double", "other": "text"}}}}


def stored_rows(folder: Path, table: str = "t") -> list[tuple[object, ...]]:
    rows = read_table(str(folder / "public" / table)).to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=str)


def test_a_table_has_its_numbers_in_the_types_of_its_settings(db18: Database, tmp_path: Path) -> None:
    db18.execute(
        "CREATE TABLE t (id numeric PRIMARY KEY, price numeric, ratio numeric, other numeric, short numeric(6,2))",
        "CREATE TABLE u (id int PRIMARY KEY, v numeric)",
        "INSERT INTO t VALUES (1, 1.50000, 0.1, 1.0, 2.5), (2.0, NULL, 'NaN', 'NaN', NULL)",
        "INSERT INTO u VALUES (1, 12345678901234567890.5)",
    )
    replicate_once(db18, tmp_path, config=CONFIG, numeric="decimal(38,6)")
    assert stored_rows(tmp_path) == [
        ("1", Decimal("1.5000"), 0.1, "1.0", Decimal("2.50")),
        ("2.0", None, pytest.approx(float("nan"), nan_ok=True), "NaN", None),
    ]
    assert stored_rows(tmp_path, "u") == [(1, Decimal("12345678901234567890.500000"))]
    db18.execute(
        "UPDATE t SET price = -7, ratio = 1e20 WHERE id = 1",
        "INSERT INTO t VALUES (3, 0.0001, 'Infinity', 1e-3, 0)",
        "DELETE FROM t WHERE id = 2",
        "INSERT INTO u VALUES (2, 0.000001000)",
    )
    replicate_once(db18, tmp_path, config=CONFIG, numeric="decimal(38,6)")
    assert stored_rows(tmp_path) == [
        ("1", Decimal("-7.0000"), 1e20, "1.0", Decimal("2.50")),
        ("3", Decimal("0.0001"), float("inf"), "0.001", Decimal("0.00")),
    ]
    assert stored_rows(tmp_path, "u")[1] == (2, Decimal("0.000001"))
    assert find_differences(db18, tmp_path) == {}


def find_differences(db: Database, folder: Path) -> dict[str, Verdict]:
    verdicts = verify(ConnectionSettings(db.dsn), Storage(str(folder)))
    return {str(verdict.table): verdict for verdict in verdicts if verdict.result != "equal"}


@pytest.mark.parametrize("in_changes", [False, True], ids=["load", "changes"])
def test_a_number_that_does_not_fit_is_treated_as_all_such_values(
    db18: Database, tmp_path: Path, in_changes: bool
) -> None:
    create = "CREATE TABLE {} (id int PRIMARY KEY, v numeric)"
    insert = "INSERT INTO {} VALUES (1, 1.2345), (2, 123456), (3, 'NaN'), (4, 1.5)"
    names = {"e": "error", "n": "null", "t": "text"}
    tables = {name: {"numeric": "decimal(5,2)", "unrepresentable": how} for name, how in names.items()}
    db18.execute(*(create.format(name) for name in names))
    if in_changes:
        replicate_once(db18, tmp_path, config={"tables": tables})
    db18.execute(*(insert.format(name) for name in names))
    with pytest.raises(TablesStoppedError, match=r"1.2345.*numeric|numeric.*1.2345"):
        replicate_once(db18, tmp_path, config={"tables": tables})
    assert stored_rows(tmp_path, "n") == [(1, None), (2, None), (3, None), (4, Decimal("1.50"))]
    assert stored_rows(tmp_path, "t") == [
        (1, None, "1.2345"), (2, None, "123456"), (3, None, "NaN"), (4, Decimal("1.50"), None)
    ]  # fmt: skip
    assert find_differences(db18, tmp_path).keys() == {"public.e"}


def test_values_that_do_not_fit_are_counted_and_told_once(db18: Database, tmp_path: Path) -> None:
    numbers = {"unrepresentable": "text", "numeric": {"v": "decimal(5,2)"}}
    config = {"tables": {"t": numbers, "public.past": {"unrepresentable": "null", "history": True}}}

    def counts() -> dict[str, dict[str, int]]:
        return {name: dict(table.unrepresentable) for name, table in State.read(Storage(str(tmp_path))).tables.items()}

    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v numeric, d date)",
        "CREATE TABLE past (id int PRIMARY KEY, d date)",
        "INSERT INTO t VALUES (1, 1.2345, 'infinity'), (2, 123456, NULL), (3, 1, NULL)",
        "INSERT INTO past VALUES (1, '2026-01-01')",
    )
    warnings = replicate_for_warnings(db18, tmp_path, config=config)
    assert [text for text in warnings if "do not fit" in text] == [
        "public.t: 2 values of v do not fit decimal(5,2): they are NULL, with their texts in v_text; status counts "
        "them, and later ones too",
        "public.t: 1 values of d do not fit date: they are NULL, with their texts in d_text; status counts "
        "them, and later ones too",
    ]
    assert counts() == {"public.t": {"v": 2, "d": 1}, "public.past": {}}

    db18.execute(
        "UPDATE t SET v = 'NaN' WHERE id = 3", "INSERT INTO t VALUES (4, 9999, NULL)", "DELETE FROM t WHERE id = 1"
    )
    db18.execute("INSERT INTO past VALUES (2, 'infinity')", "UPDATE past SET d = '-infinity' WHERE id = 1")
    warnings = replicate_for_warnings(db18, tmp_path, config=config)
    assert [text for text in warnings if "do not fit" in text] == [
        "public.past: 2 values of d do not fit date: they are NULL; status counts them, and later ones too"
    ]
    assert counts() == {"public.t": {"v": 4, "d": 1}, "public.past": {"d": 2}}
    assert [text for text in replicate_for_warnings(db18, tmp_path, config=config) if "do not fit" in text] == []
    # A load counts anew.
    resync(ConnectionSettings(db18.dsn), Storage(str(tmp_path)), [TableName("public", "t")])
    warnings = replicate_for_warnings(db18, tmp_path, config=config)
    assert [text[:24] for text in warnings if "do not fit" in text] == ["public.t: 3 values of v "]
    assert counts()["public.t"] == {"v": 3}
    assert find_differences(db18, tmp_path) == {}


def test_schema_changes(db18: Database, tmp_path: Path) -> None:
    config = {"tables": {"t": {"numeric": {"a": "decimal(10,3)", "b": "double"}, "optional": True}}}
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, a numeric, b numeric)", "INSERT INTO t VALUES (1, 1.5, 1e-1), (2, 2, 2)"
    )
    replicate_once(db18, tmp_path, config=config)
    db18.execute("ALTER TABLE t ADD c numeric DEFAULT 2.50", "UPDATE t SET a = 3.25 WHERE id = 2")
    replicate_once(db18, tmp_path, config=config)
    assert stored_rows(tmp_path) == [(1, Decimal("1.500"), 0.1, "2.50"), (2, Decimal("3.250"), 2.0, "2.50")]
    # A value that no statement wrote anew has the server's text, not its decimal's text.
    db18.execute("ALTER TABLE t RENAME a TO d", "UPDATE t SET d = 7 WHERE id = 2")
    replicate_once(db18, tmp_path, config={"tables": {"t": {"numeric": {"b": "double"}}}})
    assert stored_rows(tmp_path) == [(1, "1.5", 0.1, "2.50"), (2, "7", 2.0, "2.50")]
    assert find_differences(db18, tmp_path) == {}


def test_a_column_renamed_while_it_is_followed_has_the_type_of_its_new_name(db18: Database, tmp_path: Path) -> None:
    config = {"tables": {"t": {"numeric": {"a": "decimal(10,3)"}}}}
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, a numeric)", "INSERT INTO t VALUES (1, 1.5), (2, 2)")
    with replicate_meanwhile(db18, tmp_path, config=config) as caught_up:
        caught_up()
        db18.execute("ALTER TABLE t RENAME a TO d", "UPDATE t SET d = 7 WHERE id = 2")
        caught_up()
        eventually(lambda: stored_rows(tmp_path) == [(1, "1.5"), (2, "7")])
        db18.execute("ALTER TABLE t RENAME d TO a", "UPDATE t SET a = 8 WHERE id = 2")
        caught_up()
        eventually(lambda: stored_rows(tmp_path) == [(1, Decimal("1.500")), (2, Decimal("8.000"))])
    assert find_differences(db18, tmp_path) == {}


@pytest.mark.parametrize("value", ["decimal(50,1)", {"a": "float"}, ["double"]], ids=str)
def test_a_type_that_is_none_is_a_mistake_of_the_file(value: object) -> None:
    with pytest.raises(ConfigError, match=r"'numeric' of t.*(expected text, double or decimal|must be a text)"):
        read_config({"tables": {"t": {"numeric": value}}}, TableSettings())
