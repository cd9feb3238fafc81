"""A server that is put back to an earlier state on its timeline is found out, and a crash is not taken for that."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.run.checkpoints import Checkpoints
from logicalrep.pipeline.run.receiving import ChangeReceiver
from logicalrep.pipeline.state.state import State, States
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.local_server import LocalServer
from logicalrep.postgres.server import Connection, query_wal_head
from logicalrep.postgres.slots.errors import SlotError
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.comparison import delta_rows, find_differences
from tests.pipeline.replicating import replicate_meanwhile, replicate_once
from tests.postgres.restores import crash, put_back, restart, snapshot_volume, write_wal_past
from tests.postgres.servers import Database, back_up, connect_writer, installation
from tests.waiting import eventually

pytestmark = pytest.mark.postgres

DIVERGED = r"\[WAL_DIVERGED\].*restored to an earlier state.*resync --all"
COPIES = [back_up, snapshot_volume]


@contextmanager
def replicated(major: int, lake: Path, **settings: str) -> Iterator[Database]:
    """Yield the database of a server of its own, with a table that is replicated."""
    with LocalServer(installation(major), fsync="off", **settings) as server:
        database = Database(server, "postgres", major, connect_writer(server.dsn))
        database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        replicate_once(database, lake)
        database.execute("INSERT INTO t VALUES (3, 'c')")
        replicate_once(database, lake)
        yield database
        database.connection.close()


def state(lake: Path) -> State:
    return State.read(Storage(str(lake)))


def loads(lake: Path) -> dict[str, str | None]:
    return {name: table.load for name, table in state(lake).tables.items()}


def confirmed(db: Database) -> Lsn:
    return Lsn(str(db.value("SELECT confirmed_flush_lsn FROM pg_replication_slots")))


def with_server_away(db: Database, action: Callable[[LocalServer], object]) -> None:
    db.connection.close()
    action(db.server)
    db.reconnect()


def move_position(db: Database, lake: Path) -> None:
    """Have the position acknowledged after WAL without changes of tables."""
    with replicate_meanwhile(db, lake) as caught_up:
        write_wal_past(db.connection, Lsn(state(lake).lsn + 50_000))
        caught_up()
        eventually(lambda: confirmed(db) == state(lake).lsn)


@pytest.mark.parametrize(
    ("major", "copy", "lost", "written"),
    [
        (18, snapshot_volume, True, True),
        (16, back_up, False, True),
        *(
            pytest.param(major, copy, lost, written, marks=pytest.mark.thorough)
            for major in (15, 16, 18)
            for copy in COPIES
            for lost, written in ((True, True), (True, False), (False, True))
        ),
    ],
)
def test_a_server_that_is_put_back_is_refused(
    tmp_path: Path, major: int, copy: Callable[[LocalServer, Path], None], lost: bool, written: bool
) -> None:
    """After the copy the server writes rows or other WAL, and other rows or WAL under the same LSNs once put back."""
    lake, table = tmp_path / "lake", str(tmp_path / "lake/public/t")
    with replicated(major, lake) as db:
        with_server_away(db, lambda server: copy(server, tmp_path / "copy"))
        if lost:
            db.execute("UPDATE t SET v = 'lost' WHERE id = 1", "INSERT INTO t VALUES (4, 'lost')")
            replicate_once(db, lake)
        else:
            move_position(db, lake)
        position, rows = state(lake).lsn, delta_rows(table)
        statements = ["DELETE FROM t WHERE id = 3", "INSERT INTO t VALUES (4, 'written')"] if written else []

        def write(connection: Connection) -> None:
            for statement in statements:
                connection.execute(statement)

        with_server_away(db, lambda server: put_back(server, tmp_path / "copy", write, past=position))
        db.execute("INSERT INTO t VALUES (5, 'later')")
        # Nothing is acknowledged, so that a second try does not pass either.
        for _ in range(2):
            with pytest.raises(SlotError, match=DIVERGED):
                replicate_once(db, lake)
        assert (state(lake).lsn, delta_rows(table)) == (position, rows)
        assert not resync(db.settings, Storage(str(lake)), [])
        replicate_once(db, lake)
        assert find_differences(db.dsn, str(lake), ["public.t"]) == {}


@pytest.mark.parametrize("major", [18, pytest.param(16, marks=pytest.mark.thorough)])
def test_a_server_is_put_back_while_replicate_runs(tmp_path: Path, major: int) -> None:
    lake = tmp_path / "lake"
    with replicated(major, lake) as db:
        with_server_away(db, lambda server: back_up(server, tmp_path / "copy"))

        def run() -> None:
            with replicate_meanwhile(db, lake) as caught_up:
                db.execute("INSERT INTO t VALUES (4, 'lost')")
                caught_up()
                position = state(lake).lsn
                with_server_away(db, lambda server: put_back(server, tmp_path / "copy", past=position))
                db.execute("INSERT INTO t VALUES (5, 'later')")
                caught_up()

        with pytest.raises(AssertionError, match=r"SlotError.* and has the commit of transaction"):
            run()
        assert delta_rows(str(lake / "public/t")).total() == 4


@pytest.mark.parametrize(
    ("major", "runs"),
    [(18, False), *(pytest.param(*case, marks=pytest.mark.thorough) for case in ((16, False), (16, True), (18, True)))],
)
def test_a_server_that_crashes_is_not_refused(tmp_path: Path, major: int, runs: bool) -> None:
    """The crash puts the slot back, after commits of tables and after other WAL."""
    lake = tmp_path / "lake"
    with replicated(major, lake) as db:
        previous_loads = loads(lake)
        for number in (4, 5):
            # While a transaction is open, the server has no reason to store the slot.
            with contextlib.closing(db.writer()) as writer:
                writer.execute("BEGIN")
                writer.execute("CREATE TEMPORARY TABLE held ()")
                db.execute("CHECKPOINT", f"INSERT INTO t VALUES ({number}, 'd')", "UPDATE t SET v = 'e' WHERE id = 1")
                replicate_once(db, lake)
                if number == 5:
                    move_position(db, lake)
                if runs:
                    with replicate_meanwhile(db, lake) as caught_up:
                        with_server_away(db, crash)
                        db.execute(f"INSERT INTO t VALUES ({number + 10}, 'f')")
                        caught_up()
                else:
                    with_server_away(db, crash)
                    assert confirmed(db) < state(lake).lsn
                    db.execute(f"INSERT INTO t VALUES ({number + 10}, 'f')")
                    replicate_once(db, lake)
        assert find_differences(db.dsn, str(lake), ["public.t"]) == {}
        assert loads(lake) == previous_loads


def test_commits_that_no_checkpoint_covers_are_proven_by_a_server_that_was_not_restarted(tmp_path: Path) -> None:
    """A killed process has committed to a table, and has not saved that in a checkpoint."""
    lake = tmp_path / "lake"
    with replicated(18, lake) as db:
        previous_state, previous_loads = state(lake), loads(lake)
        # The process was killed before it acknowledged, too.
        with_server_away(db, lambda server: back_up(server, tmp_path / "copy"))
        db.execute("INSERT INTO t VALUES (4, 'lost')")
        replicate_once(db, lake)
        with_server_away(db, lambda server: put_back(server, tmp_path / "copy", past=state(lake).lsn))
        db.execute("INSERT INTO t VALUES (5, 'later')")
        States(Storage(str(lake))).write(previous_state)
        replicate_once(db, lake)
        assert find_differences(db.dsn, str(lake), ["public.t"]) == {}
        assert loads(lake) != previous_loads
        previous_state, previous_loads = state(lake), loads(lake)
        slot = "SELECT pg_copy_logical_replication_slot(slot_name, 'kept') FROM pg_replication_slots"
        db.execute(slot, "INSERT INTO t VALUES (6, 'g')")
        replicate_once(db, lake)
        name = db.value("SELECT slot_name FROM pg_replication_slots WHERE slot_name <> 'kept'")
        db.execute(
            f"SELECT pg_drop_replication_slot('{name}')",
            f"SELECT pg_copy_logical_replication_slot('kept', '{name}')",
            "SELECT pg_drop_replication_slot('kept')",
        )
        States(Storage(str(lake))).write(previous_state)
        replicate_once(db, lake)
        assert find_differences(db.dsn, str(lake), ["public.t"]) == {}
        assert loads(lake) == previous_loads


LAST_COMMITS = {
    "streamed": "INSERT INTO t SELECT i, repeat('x', 200) FROM generate_series(100, 4000) AS i",
    "streamed, and partly rolled back": """
        DO $$ BEGIN
            INSERT INTO t SELECT i, repeat('x', 200) FROM generate_series(5000, 9000) AS i;
            BEGIN
                UPDATE t SET v = 'rolled back';
                RAISE EXCEPTION 'rolled back';
            EXCEPTION WHEN raise_exception THEN
            END;
        END $$""",
    "streamed, and rolled back but for nothing": """
        DO $$ BEGIN
            PERFORM pg_current_xact_id();
            BEGIN
                UPDATE t SET v = 'rolled back';
                RAISE EXCEPTION 'rolled back';
            EXCEPTION WHEN raise_exception THEN
            END;
        END $$""",
    "prepared": "BEGIN; INSERT INTO t VALUES (-1, 'p'); PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'",
    "a table that is not replicated": "INSERT INTO unpublished VALUES (1)",
    "truncated": "TRUNCATE t",
    "an unlogged table": "INSERT INTO unlogged VALUES (1)",
    "a new column": "ALTER TABLE t ADD COLUMN w int DEFAULT 5",
    "a row of another origin": """
        SELECT pg_replication_origin_session_setup('o');
        INSERT INTO t VALUES (-2, 'o');
        SELECT pg_replication_origin_session_reset()""",
}


@pytest.mark.thorough
@pytest.mark.parametrize("major", [15, 16, 18])
def test_a_crash_after_a_commit_of_each_kind_is_not_refused(tmp_path: Path, major: int) -> None:
    """The session that checks a commit gets it whole, whatever way it came."""
    lake = tmp_path / "lake"
    with replicated(major, lake, logical_decoding_work_mem="64kB", max_prepared_transactions="5") as db:
        db.execute(
            "CREATE TABLE unpublished (id int)",
            "CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY)",
            "SELECT pg_replication_origin_create('o')",
        )
        previous_loads, tables = loads(lake), ["public.t"]
        for kind, statements in LAST_COMMITS.items():
            with contextlib.closing(db.writer()) as writer:
                writer.execute("BEGIN")
                writer.execute("CREATE TEMPORARY TABLE held ()")
                db.execute("CHECKPOINT")
                for statement in [statements] if "$$" in statements else statements.split(";"):
                    db.execute(statement)
                replicate_once(db, lake)
                assert find_differences(db.dsn, str(lake), tables) == {}, kind
                # The server stores the slot once its restart_lsn has reached the transaction that is held; then no more.
                for _ in range(2):
                    move_position(db, lake)
                with_server_away(db, crash)
                assert confirmed(db) < state(lake).lsn
                replicate_once(db, lake)
                assert find_differences(db.dsn, str(lake), tables) == {}, kind
                assert loads(lake)["public.t"] == previous_loads["public.t"], kind


@pytest.mark.thorough
def test_an_earlier_slot_of_the_same_name_is_refused(tmp_path: Path) -> None:
    """The new slot has sent no commit that the server of then would lack, but the tables have one by their load."""
    lake = tmp_path / "lake"
    with replicated(18, lake) as db:
        with_server_away(db, lambda server: back_up(server, tmp_path / "copy"))
        db.execute("INSERT INTO t VALUES (4, 'lost')")
        assert not resync(db.settings, Storage(str(lake)), [], new_slot=True)
        replicate_once(db, lake)
        with_server_away(db, lambda server: put_back(server, tmp_path / "copy", past=state(lake).lsn))
        with pytest.raises(SlotError, match=r"\[WAL_DIVERGED\].*another slot of that name.*resync --all"):
            replicate_once(db, lake)
        assert not resync(db.settings, Storage(str(lake)), [])
        replicate_once(db, lake)
        assert find_differences(db.dsn, str(lake), ["public.t"]) == {}


SLOTS = "SELECT confirmed_flush_lsn::text, restart_lsn::text FROM pg_replication_slots"


class Killed(BaseException):
    """Ends a run like a kill."""


class Search:
    """A server, and a destination that must be right or refuse it, whatever happens to both."""

    def __init__(self, db: Database, folder: Path, chance: random.Random) -> None:
        self.db, self.lake, self.copy, self.chance = db, folder / "lake", folder / "copy", chance
        self.was_put_back = False
        self.refused = self.put_back_times = 0
        self.steps: list[str] = []

    def write(self) -> None:
        row, number = self.chance.randrange(20), self.chance.randrange(10**6)
        self.db.execute(
            self.chance.choice(
                (
                    f"INSERT INTO t VALUES ({row}, '{number}') ON CONFLICT (id) DO UPDATE SET v = '{number}'",
                    f"DELETE FROM t WHERE id = {row}",
                    f"UPDATE t SET v = '{number}' WHERE id < {row}",
                )
            )
        )

    def write_other_wal(self) -> None:
        end = query_wal_head(self.db.connection) + self.chance.choice((10, 2_000, 20_000))
        write_wal_past(self.db.connection, Lsn(end))

    def checkpoint(self) -> None:
        self.db.execute("CHECKPOINT")

    def crash(self) -> None:
        with_server_away(self.db, crash)

    def restart(self) -> None:
        with_server_away(self.db, restart)

    def take_copy(self) -> None:
        shutil.rmtree(self.copy, ignore_errors=True)
        with_server_away(self.db, lambda server: self.chance.choice(COPIES)(server, self.copy))

    def put_back(self) -> None:
        if not self.copy.exists():
            return
        spare = self.copy.with_name("spare")
        subprocess.run(["cp", "-a", self.copy, spare], check=True)
        with_server_away(self.db, lambda server: put_back(server, spare))
        self.was_put_back = True
        self.put_back_times += 1
        if self.chance.random() < 0.8:
            for action in self.chance.choices((self.write, self.write_other_wal), k=3):
                action()
            write_wal_past(self.db.connection, state(self.lake).lsn)

    def replicate(self) -> None:
        """Replicate; perhaps the process is killed before a checkpoint, or before it acknowledges one."""
        killed = self.chance.choice((None, None, (Checkpoints, "save"), (ChangeReceiver, "acknowledge")))
        self.steps.append(f"from {state(self.lake).lsn} with the slots {self.db.rows(SLOTS)}")
        storage = Storage(str(self.lake))
        try:
            with pytest.MonkeyPatch.context() as patch:
                if killed is not None:
                    patch.setattr(killed[0], killed[1], _kill)
                replicate_once(self.db, self.lake)
        except Killed:
            self.steps.append(f"killed in {killed}")
            return
        except SlotError as error:
            if not self.was_put_back or error.code not in ("WAL_DIVERGED", "POSITION_PASSED", "SLOT_LOST"):
                raise
            self.steps.append(f"refused: {error}")
            self.refused += 1
            assert not resync(self.db.settings, storage, [])
            # The next run loads all tables, and may be killed meanwhile.
            self.was_put_back = False
            return
        self.was_put_back = False
        assert find_differences(self.db.dsn, str(self.lake), ["public.t"]) == {}

    def run(self, seconds: float) -> None:
        actions = [self.write] * 5 + [self.write_other_wal] * 2 + [self.replicate] * 6
        actions += [self.checkpoint, self.crash, self.restart, self.take_copy, self.put_back, self.put_back]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            action = self.chance.choice(actions)
            self.steps.append(action.__name__)
            action()


def _kill(*_: object, **__: object) -> None:
    raise Killed


@pytest.mark.thorough
@pytest.mark.parametrize("major", [15, 16, 18])
def test_crashes_kills_and_servers_that_are_put_back_at_random(tmp_path: Path, major: int) -> None:
    seed = int(os.environ.get("SEED", random.randrange(10**6)))
    with replicated(major, tmp_path / "lake") as db:
        search = Search(db, tmp_path, random.Random(seed))
        try:
            search.run(60 * float(os.environ.get("SEARCH", "0.5")))
        except BaseException:
            print("seed", seed, search.steps)
            raise
        print("put back", search.put_back_times, "refused", search.refused, "steps", len(search.steps))
