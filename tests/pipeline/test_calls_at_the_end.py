"""`--call-on-stop` calls once for each error that ends a run, or precedes it."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logicalrep.cli.main import main
from logicalrep.observe.events import CheckpointSaved, RunEvent
from logicalrep.observe.observer import Observer, Observers
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.postgres.connection import ConnectError
from logicalrep.postgres.local_server import LocalServer
from logicalrep_runtime.errors import LogicalRepError
from tests.pipeline.replicating import replicate_once, settings
from tests.postgres.servers import Database, connect_writer, installation

pytestmark = pytest.mark.postgres


class Command:
    """A command for `--call-on-stop`, and the codes that it got."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "calls"
        self.text = f"cat >> {shlex.quote(str(self._file))} && echo >> {shlex.quote(str(self._file))}"

    @property
    def codes(self) -> list[str]:
        calls = [json.loads(line) for line in self._file.read_text().splitlines()] if self._file.exists() else []
        return [call["code"] for call in calls if call["event"] == "ended"]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


def drop_slot(db: Database) -> None:
    db.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()"
    )


def stop_table(db: Database) -> None:
    db.execute("ALTER TABLE t ADD r regclass")


@pytest.mark.parametrize(
    ("prepare", "options"),
    [
        (None, {"slot": "a name with spaces"}),
        (None, {"listen": "203.0.113.1:1"}),
        (drop_slot, {}),
        (stop_table, {}),
    ],
)
def test_a_run_that_ends_with_an_error_calls(
    db18: Database,
    tmp_path: Path,
    command: Command,
    prepare: Callable[[Database], None] | None,
    options: dict[str, Any],
) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)")
    if prepare is not None:
        replicate_once(db18, tmp_path / "lake")
        prepare(db18)
    with pytest.raises(LogicalRepError) as raised:
        replicate_once(db18, tmp_path / "lake", call_on_stop=command.text, **options)
    assert command.codes == [raised.value.code]


def test_a_server_that_is_away_while_it_is_followed_or_at_the_start_calls(tmp_path: Path, command: Command) -> None:
    is_following = threading.Event()

    class Following(Observer):
        def on_event(self, event: RunEvent) -> None:
            if isinstance(event, CheckpointSaved):
                is_following.set()

    with LocalServer(installation(18)) as server:
        database = Database(server, "postgres", 18, connect_writer(server.dsn))
        database.execute("CREATE TABLE t (id int PRIMARY KEY)")
        run = settings(database, tmp_path / "lake", retry_timeout=0.1, call_on_stop=command.text)
        errors: list[BaseException] = []

        def replicate() -> None:
            try:
                replicate_with(run, Following(), engine=SequentialEngine())
            except ConnectError as error:
                errors.append(error)

        thread = threading.Thread(target=replicate)
        thread.start()
        assert is_following.wait(300)
        database.connection.close()
        server.stop()
        thread.join(300)
        assert len(errors) == 1
        assert command.codes == ["SERVER_AWAY"]
        with pytest.raises(ConnectError):
            replicate_with(run, Observers(), engine=SequentialEngine())
    assert command.codes == ["SERVER_AWAY", "SERVER_AWAY"]


@pytest.mark.parametrize("option", [["--every", "soon"], ["--tables", '"'], ["--dsn", "x"]])
def test_a_command_that_does_not_begin_calls(tmp_path: Path, command: Command, option: list[str]) -> None:
    arguments = ["replicate", "--dsn", "dbname=x", "--to", str(tmp_path / "lake"), "--call-on-stop", command.text]
    assert main([*arguments, *option]) in (1, 2)
    assert len(command.codes) == 1
