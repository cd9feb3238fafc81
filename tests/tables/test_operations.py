"""`status`, `resync` and `drop`: of a place that is replicated, and of one where a process is replicating."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from logicalrep.cli.main import main
from logicalrep.postgres.slots import SlotError
from logicalrep.tables.delta.place import Place
from logicalrep.tables.operate.dropping import drop
from logicalrep.tables.operate.resync import resync
from logicalrep.tables.operate.status import status
from logicalrep.tables.replicate.state import Identity, State, StateError
from logicalrep.transactions.table_names import TableName
from tests.postgres.servers import Database
from tests.tables.comparison import differences
from tests.tables.test_replicate import TABLES, following, once, shop
from tests.waiting import eventually

__all__ = ["shop"]

ORDERS = TableName("public", "orders")


def test_a_table_is_loaded_again_by_the_process_that_runs(shop: Database, tmp_path: Path) -> None:
    place = Place(str(tmp_path))
    with following(shop, tmp_path) as caught_up:
        caught_up()
        load = State.read(place).tables["public.orders"].load
        assert resync(shop.settings, place, [ORDERS])
        shop.execute("UPDATE orders SET price = 1 WHERE id < 100")
        eventually(lambda: State.read(place).tables["public.orders"].load != load)
        caught_up()
        found = status(shop.settings, place)
        assert found.is_running
        with pytest.raises(StateError, match="in use by process"):
            drop(shop.settings, place, deletes_tables=False)
    assert differences(shop.dsn, str(tmp_path), TABLES) == {}


def test_a_table_is_loaded_again_by_the_next_run(shop: Database, tmp_path: Path) -> None:
    place = Place(str(tmp_path))
    once(shop, tmp_path)
    loads = {name: table.load for name, table in State.read(place).tables.items()}
    assert not resync(shop.settings, place, [ORDERS])
    shop.execute("DELETE FROM orders WHERE id < 100")
    once(shop, tmp_path)
    assert [name for name, table in State.read(place).tables.items() if table.load != loads[name]] == ["public.orders"]
    assert differences(shop.dsn, str(tmp_path), TABLES) == {}
    with pytest.raises(StateError, match=r"has no table public\.nope; it has public\.audit, public\.customer"):
        resync(shop.settings, place, [TableName("public", "nope")])


def test_a_lost_slot_needs_all_tables_loaded_again(shop: Database, tmp_path: Path) -> None:
    place = Place(str(tmp_path))
    once(shop, tmp_path)
    identity = Identity.read(place)
    assert identity is not None
    shop.execute(f"SELECT pg_drop_replication_slot('{identity.slot}')", "DELETE FROM orders WHERE id < 100")
    with pytest.raises(SlotError, match=r"\[SLOT_LOST\].*resync --all"):
        once(shop, tmp_path)
    assert status(shop.settings, place).lost == "it does not exist"
    resync(shop.settings, place, [])
    once(shop, tmp_path)
    assert differences(shop.dsn, str(tmp_path), TABLES) == {}


def test_status_and_drop_on_the_command_line(
    shop: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = tmp_path / "lake"
    where = ["--dsn", shop.dsn, "--to", str(lake)]
    assert main(["status", *where]) == 1
    assert "[PLACE_EMPTY] nothing is replicated to" in capsys.readouterr().err
    once(shop, lake)
    assert main(["status", *where]) == 0
    assert "public.orders    following" in capsys.readouterr().out
    assert main(["status", "--json", *where]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["is_running"], found["lost"]) == (False, None)
    assert found["tables"]["public.orders"]["state"] == "following"
    assert main(["drop", "--delete-tables", *where]) == 2
    assert main(["drop", "--delete-tables", "--yes", *where]) == 0
    assert shop.value("SELECT count(*) FROM pg_publication") == 0
    assert shop.value(f"SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{found['slot']}'") == 0
    assert [path for path in lake.rglob("*") if path.is_file()] == []
