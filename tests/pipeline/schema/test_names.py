"""Folders and columns of names of every kind."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from deltalake import DeltaTable

from logicalrep.pipeline.apply.applying import apply
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.delta.delta_log import DeltaLog
from logicalrep.pipeline.formats.stored_table import Position
from logicalrep.pipeline.schema.names import column_names, table_folder
from logicalrep.pipeline.storage.storage import InvalidDestinationError, Storage
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.histories import History
from tests.pipeline.odd_names import ODD_NAMES
from tests.pipeline.stored import APP, new_log


def test_folders_stay_within_the_place_and_differ() -> None:
    names = [TableName(schema, name) for schema in (*ODD_NAMES, "_logicalrep") for name in ODD_NAMES]
    folders = [table_folder(name) for name in names]
    assert len(set(folders)) == len(names)
    for folder in folders:
        assert folder.count("/") == 1
        assert not any(part.startswith(".") or part in ("", "_logicalrep") for part in folder.split("/"))
    assert table_folder(TableName("Odd Schema", 'Odd.Table "q"')) == 'Odd Schema/Odd.Table "q"'
    assert table_folder(TableName("public", "orders"), ["public/Orders"]) == "public/orders"
    assert table_folder(TableName("public", "Orders"), ["public/orders"]) == "public/~4Frders"


def test_a_table_that_differs_in_case_alone_stays_in_the_folder_of_its_schema() -> None:
    assert table_folder(TableName("Odd Schema", "T"), ["Odd Schema/t"]) == "Odd Schema/~54"
    assert table_folder(TableName("Odd Schema", "ü"), ["Odd Schema/Ü"]) == "Odd Schema/ü"
    # Schemas that differ in case have two folders, each with all of its tables.
    taken = ["sales/orders"]
    for name in ("orders", "items", "Orders"):
        taken.append(table_folder(TableName("Sales", name), taken))
    assert taken[1:] == ["~53ales/orders", "~53ales/items", "~53ales/~4Frders"]
    # A schema whose folder had the schema's own name keeps that folder.
    assert table_folder(TableName("Sales", "items"), ["Sales/items2", "sales/orders"]) == "Sales/items"
    assert table_folder(TableName("Sales", "orders"), ["Sales/items", "sales/orders"]) == "~53ales/orders"


@pytest.mark.parametrize("name", ODD_NAMES)
def test_tables_with_odd_names_are_read_back(tmp_path: Path, name: str) -> None:
    storage = Storage(str(tmp_path / "a destination"))
    folder = table_folder(TableName("Odd Schema", name))
    log = new_log(storage, ("id",), folder)
    history = History(("id",), random.Random(1))
    for _ in range(4):
        history.insert()
        apply(log, history.take(), Position(APP, Lsn(history.lsn - 1)), SequentialEngine())
    log.write_checkpoint()
    opened = DeltaLog.open(storage, folder)
    assert opened is not None
    assert opened.files.keys() == log.files.keys()
    assert DeltaTable(tmp_path / "a destination" / folder).to_pyarrow_table().num_rows == len(history.rows)
    assert [path.name for path in tmp_path.iterdir()] == ["a destination"]


@pytest.mark.parametrize("path", ["a%20b", "x/%2e"])
def test_a_place_that_readers_take_for_another_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(InvalidDestinationError, match="another character"):
        Storage(str(tmp_path / path))
    with pytest.raises(InvalidDestinationError, match="another character"):
        Storage(f"s3://lake/{path.replace('%', '%25')}")


def test_columns_that_readers_refuse_are_changed() -> None:
    assert column_names(["a b", "a_b", "A_B", "a,b"]) == {"a b": "a_b_3", "a_b": "a_b", "A_B": "A_B_2", "a,b": "a_b_4"}
    assert column_names(["x", "Ä", "ä", "(=)"]) == {"x": "x", "Ä": "Ä", "ä": "ä_2", "(=)": "___"}
    assert column_names(["a.b", "a_b", "_POS"], ".", {"_pos"}) == {"a.b": "a_b_2", "a_b": "a_b", "_POS": "_POS_2"}
