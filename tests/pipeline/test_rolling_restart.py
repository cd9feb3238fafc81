"""A new process starts while the previous one still runs, waits for its slot, and resumes from its last checkpoint."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from logicalrep.observe.events import RunEvent, StepStarted
from logicalrep.observe.observer import Observer
from logicalrep.pipeline.run import setup
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.server import Connection
from logicalrep.postgres.slots.errors import SlotError
from logicalrep.postgres.slots.slot import Slot, query_slot
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import TABLES, replicate_meanwhile, replicate_once
from tests.postgres.servers import Database
from tests.waiting import eventually


class Steps(Observer):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def on_event(self, event: RunEvent) -> None:
        match event:
            case StepStarted(text):
                self.texts.append(text)


def loads(lake: Path) -> dict[str, str | None]:
    return {name: table.load for name, table in State.read(Storage(str(lake))).tables.items()}


def change(shop: Database) -> None:
    shop.execute("UPDATE orders SET price = price + 1 WHERE id < 100")


@pytest.mark.parametrize("moment", ["while it waits for the slot", "between its looks at the checkpoint and the slot"])
def test_a_rolling_restart_reloads_nothing(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    lake, steps = tmp_path / "lake", Steps()
    replicate_once(shop, lake)
    previous_loads = loads(lake)
    with ExitStack() as stack:
        first = stack.enter_context(ExitStack())
        caught_up = first.enter_context(replicate_meanwhile(shop, lake))
        caught_up()
        looks: list[str] = []

        def pass_the_position() -> None:
            position = State.read(Storage(str(lake))).lsn
            change(shop)
            caught_up()
            confirmed = "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE NOT temporary"
            eventually(lambda: Lsn(str(shop.value(confirmed))) > position)

        def look(connection: Connection, name: str) -> Slot:
            if not looks and "between" in moment:
                looks.append(name)
                pass_the_position()
            return query_slot(connection, name)

        monkeypatch.setattr(setup, "query_slot", look)
        second_caught_up = stack.enter_context(replicate_meanwhile(shop, lake, observer=steps))
        eventually(lambda: any(text.startswith("starting to read the slot") for text in steps.texts))
        if "while" in moment:
            pass_the_position()
        first.close()
        change(shop)
        second_caught_up()
    assert loads(lake) == previous_loads
    assert find_differences(shop.dsn, str(lake), TABLES) == {}


def test_a_slot_that_another_reader_advanced_is_an_error(shop: Database, tmp_path: Path) -> None:
    replicate_once(shop, tmp_path)
    change(shop)
    shop.execute(
        "SELECT pg_replication_slot_advance(slot_name, pg_current_wal_insert_lsn()) FROM pg_replication_slots "
        f"WHERE database = '{shop.name}'"
    )
    with pytest.raises(SlotError, match=r"\[POSITION_PASSED\].*resync --all"):
        replicate_once(shop, tmp_path)
