"""Errors of one table on a real server: replicate stops that table with the reason, and follows the other tables."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from logicalrep.observe.events import CopyStarted, RunEvent
from logicalrep.observe.observer import Observer
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.run.loop import TablesStoppedError
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.storage.storage import Storage, StorageError
from logicalrep.pipeline.table_errors import is_table_error
from logicalrep.pipeline.tables.tries import Tries
from logicalrep.postgres.connection import ConnectError
from logicalrep.transactions.table_names import TableName
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import Warnings, replicate_meanwhile, replicate_once, settings
from tests.postgres.servers import Database, create_database
from tests.waiting import eventually

BAD = TableName("public", "bad")


class Mentions(Observer):
    """The lines about stopped tables."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def on_event(self, event: RunEvent) -> None:
        if event.level > logging.INFO and "stopped: " in (line := event.line() or ""):
            self.lines.append(line)


def stops(
    db: Database, storage: Path, reason: str, engine: SequentialEngine | None = None, *, is_kept: bool = False
) -> None:
    """Replicate twice: `bad` alone is stopped, which both runs mention, and `good` has what came meanwhile."""
    for number in range(2):
        db.execute(f"INSERT INTO good VALUES ({1000 + number})")
        mentions = Mentions()
        with pytest.raises(TablesStoppedError, match=reason) as raised:
            replicate_with(settings(db, storage, once=True), mentions, engine=engine or SequentialEngine())
        # A table without a copy, or with a refused commit, is tried again at each start.
        (line,) = mentions.lines
        assert line.startswith(("public.bad is stopped: ", "public.bad is still stopped: "))
        assert "public.good" not in str(raised.value)
        changes = "its changes from that commit on are buffered" if is_kept else "its changes are not buffered"
        assert changes in str(raised.value)
        assert "run logicalrep resync public.bad " in str(raised.value)
        assert find_differences(db.dsn, str(storage), ["public.good"]) == {}
        db.execute("DELETE FROM good WHERE id >= 1000")


def goes_on(db: Database, storage: Path) -> None:
    """Load the table again once its error is mended."""
    resync(db.settings, Storage(str(storage)), [BAD])
    replicate_once(db, storage)
    assert find_differences(f"{db.dsn} client_encoding=utf8", str(storage), ["public.good", "public.bad"]) == {}


def prepare(db: Database) -> None:
    db.execute(
        "CREATE TABLE good (id int PRIMARY KEY)",
        "INSERT INTO good VALUES (1)",
        "CREATE TABLE bad (id int PRIMARY KEY, v text)",
        "INSERT INTO bad SELECT i, repeat('x', 100) FROM generate_series(1, 1000) AS i",
    )


def test_a_damaged_page_stops_its_table_alone(db18: Database, tmp_path: Path) -> None:
    prepare(db18)
    path = db18.server.data / str(db18.value("SELECT pg_relation_filepath('bad')"))
    db18.connection.close()
    # The server must not have the page in its memory.
    db18.server.stop()
    with path.open("r+b") as file:
        page = file.read(100)
        file.seek(0)
        file.write(b"\xff" * 100)
    db18.server.start()
    db18.reconnect()
    stops(db18, tmp_path, r"public\.bad: \[TABLE_FAILED\].*invalid page in block 0 .*SQLSTATE XX001")
    with path.open("r+b") as file:
        file.write(page)
    goes_on(db18, tmp_path)


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("is_there_before", "reason"),
    [
        (True, 'invalid byte sequence for encoding "UTF8": 0xff .SQLSTATE 22021'),
        (False, r"\[VALUE_NOT_TEXT\] a value of the column v is not text in the session's encoding, UTF8"),
    ],
    ids=["in a load", "in a change"],
)
def test_a_byte_that_is_no_text_stops_its_table_alone(tmp_path: Path, is_there_before: bool, reason: str) -> None:
    with create_database(18, "SQL_ASCII") as db:
        prepare(db)
        if not is_there_before:
            replicate_once(db, tmp_path)
        db.execute(
            r"""DO $$ BEGIN
                INSERT INTO bad VALUES (5000, 'sound');
                INSERT INTO bad VALUES (5001, convert_from('\xff', 'SQL_ASCII'));
                INSERT INTO good VALUES (2);
            END $$""",
            "UPDATE bad SET v = 'later' WHERE id = 7",
        )
        stops(db, tmp_path, reason, is_kept=not is_there_before)
        db.execute("DELETE FROM bad WHERE id = 5001", "UPDATE bad SET v = 'last' WHERE id = 8")
        goes_on(db, tmp_path)


def test_a_folder_of_another_program_stops_its_table_alone(db18: Database, tmp_path: Path) -> None:
    prepare(db18)
    write_deltalake(str(tmp_path / "public" / "bad"), pa.table({"a": [1]}))
    stops(db18, tmp_path, r"public\.bad: \[DESTINATION_DIFFERS\].*is a Delta table of another program")
    (tmp_path / "public" / "bad").rename(tmp_path / "theirs")
    goes_on(db18, tmp_path)


class Failing(SequentialEngine):
    """Fails for one table, as nobody foresaw."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def run(self, function: Callable[[Any], Any], items: Sequence[Any], nbytes: int) -> list[Any]:
        self._check(function, items[0])
        return super().run(function, items, nbytes)

    def run_together(self, function: Callable[[Any], Any], item: Any, nbytes: int) -> Any:
        self._check(function, item)
        return super().run_together(function, item, nbytes)

    def _check(self, function: Callable[[Any], Any], item: Any) -> None:
        if function.__name__ == self.kind and item.table.relation.name == "bad":
            raise pa.ArrowInvalid("offset overflow while concatenating arrays")


@pytest.mark.parametrize("kind", ["copy", "_reduce_and_rewrite"])
def test_an_error_that_nobody_foresaw_stops_its_table_alone(db18: Database, tmp_path: Path, kind: str) -> None:
    prepare(db18)
    if kind != "copy":
        replicate_once(db18, tmp_path)
        db18.execute("UPDATE bad SET v = 'changed' WHERE id < 10")
    stops(db18, tmp_path, r"\[TABLE_FAILED\].*ArrowInvalid: offset overflow", Failing(kind))
    goes_on(db18, tmp_path)


def test_a_table_without_columns_keeps_nobody_waiting(db18: Database, tmp_path: Path) -> None:
    observer = Warnings()
    prepare(db18)
    db18.execute("CREATE TABLE empty ()", "ALTER TABLE empty REPLICA IDENTITY FULL", "INSERT INTO empty DEFAULT VALUES")
    replicate_with(settings(db18, tmp_path, once=True), observer, engine=SequentialEngine())
    assert any(text.startswith("public.empty is not replicated, as it has no columns") for text in observer.texts)
    db18.execute("ALTER TABLE empty ADD COLUMN v int DEFAULT 7")
    replicate_once(db18, tmp_path)
    assert find_differences(db18.dsn, str(tmp_path), ["public.good", "public.empty"]) == {}


def test_a_loading_table_can_be_requested_a_second_time(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(db18)
    # Requests are taken when it looks at the server's catalog, by default every five seconds.
    limits = Limits(task_bytes=1)
    begun: list[str] = []

    class Heard(Observer):
        def on_event(self, event: RunEvent) -> None:
            match event:
                case CopyStarted(table):
                    begun.append(table.name)

    # The first two loads take about ten seconds: they are given up. The last has few rows.
    with replicate_meanwhile(
        db18, tmp_path, Heard(), look_again=0.2, limits=limits, load_rate=0.01, load_sessions=1
    ) as caught_up:
        eventually(lambda: "bad" in begun)
        for number in range(2):
            if number == 1:
                db18.execute("DELETE FROM bad WHERE id > 20")
            assert resync(db18.settings, Storage(str(tmp_path)), [BAD])
            eventually(lambda wanted=number + 2: begun.count("bad") >= wanted)  # type: ignore[misc]
        db18.execute("UPDATE bad SET v = 'changed' WHERE id < 10")
        caught_up()
    assert find_differences(db18.dsn, str(tmp_path), ["public.good", "public.bad"]) == {}
    assert begun.count("bad") == 3


ERRORS = {
    "a damaged page": (psycopg.errors.DataCorrupted(), True),
    "a file that is gone": (psycopg.errors.UndefinedFile(), True),
    "a value": (psycopg.errors.DivisionByZero(), True),
    "the bound of temporary files": (psycopg.errors.ConfigurationLimitExceeded(), True),
    "the server's disk": (psycopg.errors.DiskFull(), False),
    "too many connections": (psycopg.errors.TooManyConnections(), False),
    "a shutdown": (psycopg.errors.AdminShutdown(), False),
    "a broken connection": (psycopg.OperationalError("server closed the connection"), False),
    "credentials": (psycopg.errors.InvalidPassword(), False),
    "no connection": (ConnectError("no"), False),
    "the destination": (StorageError("away"), False),
    "this machine's disk": (OSError(28, "No space left on device"), False),
    "a defect": (KeyError("v"), True),
}


@pytest.mark.parametrize(("error", "is_own"), ERRORS.values(), ids=ERRORS)
def test_which_errors_stop_a_table(error: Exception, is_own: bool) -> None:
    assert is_table_error(error) is is_own


def test_a_load_stops_after_equal_failures_and_retries_after_different_ones(clock: list[float]) -> None:
    tries, most = Tries(), Limits().load_tries
    results = [tries.count_failure(f"process {number} locks it", True, most) for number in range(most)]
    assert results == [True] * (most - 1) + [False]
    tries = Tries()
    assert all(tries.count_failure("the server is away", False, most) for _ in range(3 * most))
    assert all(tries.count_failure(reason, True, most) for reason in ("altered", "truncated") * most)
    assert not tries.take_due()
    clock[0] += 60
    assert [tries.take_due(), tries.take_due()] == [True, False]
