"""`query_status`, `pause`, `resync` and `drop`: of a destination that is replicated, and of one where a process is replicating."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import nullcontext
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from logicalrep.cli.main import main
from logicalrep.observe.events import RunEvent, WaitReported, WarningIssued
from logicalrep.observe.figures import LoadProgress, Phase
from logicalrep.observe.observer import Observer, Observers
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.operate.dropping import drop
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.operate.status import query_status
from logicalrep.pipeline.run.loop import TablesStoppedError
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.run.setup import query_unmet
from logicalrep.pipeline.state.requests import pause, read_paused_since, resume
from logicalrep.pipeline.state.state import Identity, State, StateError, States
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.publications import PublicationError
from logicalrep.postgres.slots.advancing import drop_slot
from logicalrep.postgres.slots.errors import SlotError
from logicalrep.transactions.table_names import TableName
from tests.pipeline.comparison import delta_rows, find_differences
from tests.pipeline.replicating import TABLES, replicate_meanwhile, replicate_once, settings
from tests.postgres.servers import Database
from tests.waiting import eventually

ORDERS = TableName("public", "orders")


def test_a_table_is_reloaded_by_the_process_that_runs(shop: Database, tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    with replicate_meanwhile(shop, tmp_path) as caught_up:
        caught_up()
        load = State.read(storage).tables["public.orders"].load
        assert resync(shop.settings, storage, [ORDERS])
        shop.execute("UPDATE orders SET price = 1 WHERE id < 100")
        eventually(lambda: State.read(storage).tables["public.orders"].load != load)
        caught_up()
        status = query_status(shop.settings, storage)
        assert status.is_running
        with pytest.raises(SlotError, match="in use by process"):
            drop(shop.settings, storage, deletes_tables=False)
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}


def test_a_table_is_reloaded_by_the_next_run(shop: Database, tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    replicate_once(shop, tmp_path)
    loads = {name: table.load for name, table in State.read(storage).tables.items()}
    assert not resync(shop.settings, storage, [ORDERS])
    shop.execute("DELETE FROM orders WHERE id < 100")
    replicate_once(shop, tmp_path)
    assert [name for name, table in State.read(storage).tables.items() if table.load != loads[name]] == [
        "public.orders"
    ]
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}
    with pytest.raises(StateError, match=r"has no table public\.nope; it has public\.audit, public\.customer"):
        resync(shop.settings, storage, [TableName("public", "nope")])


def test_resync_of_all_tables_adds_no_table(shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logicalrep.pipeline.run.run.start_engine", lambda *_: nullcontext(SequentialEngine()))
    replicate_once(shop, tmp_path, tables=(ORDERS,))
    assert main(["resync", "--all", "--dsn", shop.dsn, "--to", str(tmp_path)]) == 0
    assert list(State.read(Storage(str(tmp_path))).tables) == ["public.orders"]


def test_no_warning_tells_of_defaults_that_are_filled_in(db18: Database, tmp_path: Path) -> None:
    class Warned(Observer):
        def on_event(self, event: RunEvent) -> None:
            match event:
                case WarningIssued(text):
                    raise AssertionError(text)

    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    replicate_once(db18, tmp_path)
    db18.execute("ALTER TABLE t ADD v int DEFAULT 7")
    replicate_with(settings(db18, tmp_path, once=True), Warned(), engine=SequentialEngine())
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}


def test_a_role_that_owns_nothing_and_may_not_read_a_new_partition(db18: Database, tmp_path: Path) -> None:
    role = f"reader_{db18.name}"
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (0) TO (10)",
        "INSERT INTO t VALUES (1)",
        "CREATE PUBLICATION p FOR TABLE t WITH (publish_via_partition_root = true)",
        f"CREATE ROLE {role} LOGIN REPLICATION",
        "COMMENT ON PUBLICATION p IS 'made by logicalrep replicate'",
        f"GRANT SELECT ON t, t_1 TO {role}",
    )
    try:
        as_role = replace(
            settings(db18, tmp_path, once=True, publication="p"),
            dsn=db18.server.dsn_as(role, db18.name),
        )
        replicate_with(as_role, Observers(), engine=SequentialEngine())
        with db18.writer() as other, other.transaction():
            other.execute("INSERT INTO t VALUES (2)")
            status = query_status(as_role.connection, Storage(str(tmp_path)))
            assert status.oldest_transaction is not None
            assert status.oldest_transaction.startswith(f"process {other.info.backend_pid}")
            assert status.oldest_transaction_since is None
        # The rows of a partition that is made as one are sent; these have to be read.
        db18.execute(
            "CREATE TABLE t_2 (LIKE t INCLUDING ALL)",
            "INSERT INTO t_2 VALUES (11)",
            "ALTER TABLE t ATTACH PARTITION t_2 FOR VALUES FROM (10) TO (20)",
        )
        with pytest.raises(
            TablesStoppedError, match=r"denied for table t_2: let the owner run GRANT USAGE .* GRANT SELECT .* resync"
        ):
            replicate_with(as_role, Observers(), engine=SequentialEngine())
        db18.execute(f"GRANT SELECT ON t_2 TO {role}")
        resync(as_role.connection, Storage(str(tmp_path)), [TableName("public", "t")])
        replicate_with(as_role, Observers(), engine=SequentialEngine())
        assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}
        # The publication is its owner's.
        *_, stays, deleted = drop(as_role.connection, Storage(str(tmp_path)), deletes_tables=True, publication="p")
        assert (stays, deleted) == (
            'the publication p stays: let its owner run DROP PUBLICATION "p"',
            "deleted the table public.t",
        )
    finally:
        db18.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_a_table_is_removed_and_comes_back(shop: Database, tmp_path: Path) -> None:
    replicate_once(shop, tmp_path)
    orders = delta_rows(str(tmp_path / "public/orders"))
    shop.execute("DELETE FROM orders WHERE id < 100", "DELETE FROM customer WHERE id < 100")
    tables = [TableName("public", "customer"), TableName("public", "audit")]
    replicate_once(shop, tmp_path, tables=tuple(tables))
    assert list(State.read(Storage(str(tmp_path))).tables) == ["public.audit", "public.customer"]
    assert find_differences(shop.dsn, str(tmp_path), ["public.customer", "public.audit"]) == {}
    assert delta_rows(str(tmp_path / "public/orders")) == orders
    replicate_once(shop, tmp_path)
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}
    replicate_once(shop, tmp_path, tables=tuple(tables))
    shutil.rmtree(tmp_path / "public/orders")
    replicate_once(shop, tmp_path)
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}


def test_nothing_is_lost_before_the_first_start(
    shop: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query_unmet(settings(shop, tmp_path))
    status = query_status(shop.settings, Storage(str(tmp_path)))
    assert (status.lost, status.has_begun, status.tables) == (None, False, {})
    assert main(["status", "--dsn", shop.dsn, "--to", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert (
        output
        == "replication has not started: logicalrep replicate creates the publication and the slot, and loads tables\n"
    )
    replicate_once(shop, tmp_path)
    assert query_status(shop.settings, Storage(str(tmp_path))).has_begun


def test_a_lost_slot_needs_all_tables_reloaded(shop: Database, tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    replicate_once(shop, tmp_path)
    identity = Identity.read(storage)
    assert identity is not None
    drop_slot(shop.connection, identity.slot)
    shop.execute("DELETE FROM orders WHERE id < 100")
    with pytest.raises(SlotError, match=r"\[SLOT_LOST\].*resync --all"):
        replicate_once(shop, tmp_path)
    assert query_status(shop.settings, storage).lost == "it does not exist"
    resync(shop.settings, storage, [])
    replicate_once(shop, tmp_path)
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}


def test_a_publication_that_was_dropped_needs_all_tables_reloaded(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logicalrep.pipeline.run.run.start_engine", lambda *_: nullcontext(SequentialEngine()))
    db.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    replicate_once(db, tmp_path)
    identity = Identity.read(Storage(str(tmp_path)))
    assert identity is not None
    db.execute(f"DROP PUBLICATION {identity.publication}", "INSERT INTO t VALUES (2)")
    with pytest.raises(PublicationError, match=r"\[PUBLICATION_GONE\]"):
        replicate_once(db, tmp_path)
    assert main(["resync", "--all", "--dsn", db.dsn, "--to", str(tmp_path)]) == 0
    assert find_differences(db.dsn, str(tmp_path), ["public.t"]) == {}


def test_status_and_drop_on_the_command_line(
    shop: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = tmp_path / "lake"
    where = ["--dsn", shop.dsn, "--to", str(lake)]
    assert main(["status", *where]) == 1
    assert "[DESTINATION_EMPTY] nothing is replicated to" in capsys.readouterr().err
    replicate_once(shop, lake)
    assert main(["status", *where]) == 0
    assert "public.orders    following" in capsys.readouterr().out
    assert main(["status", "--json", *where]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["is_running"], status["lost"]) == (False, None)
    assert status["tables"]["public.orders"]["state"] == status["tables"]["public.orders"]["phase"] == "following"
    shop.execute("ALTER TABLE customer RENAME TO client")
    replicate_once(shop, lake)
    write_deltalake(str(lake / "of_others"), pa.table({"a": [1]}))
    assert main(["drop", "--delete-tables", *where]) == 2
    capsys.readouterr()
    assert main(["drop", "--delete-tables", "--yes", *where]) == 0
    assert "deleted the folder public/customer, of an earlier table" in capsys.readouterr().out
    assert shop.value("SELECT count(*) FROM pg_publication") == 0
    assert shop.value(f"SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{status['slot']}'") == 0
    assert [path.name for path in lake.iterdir()] == ["of_others"]
    assert DeltaTable(str(lake / "of_others")).to_pyarrow_table().num_rows == 1


def test_status_of_an_idle_server(shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage(str(tmp_path))
    replicate_once(shop, tmp_path)
    # What the server writes for itself, long after the last commit, is no lag of hours.
    long_ago = replace(State.read(storage), commit_timestamp="2020-01-01T00:00:00+00:00")
    States(storage).write(long_ago)
    shop.execute("CHECKPOINT")
    status = query_status(shop.settings, storage)
    assert status.lag_bytes
    assert status.lag_seconds is not None
    assert status.lag_seconds < 60
    # Nobody holds the copy of a process that was killed.
    progress = LoadProgress(6630, 10_000, "2026-01-01T00:00:00+00:00")
    orders = replace(long_ago.tables["public.orders"], phase=Phase.COPYING, progress=progress)
    States(storage).write(replace(long_ago, tables={**long_ago.tables, "public.orders": orders}))
    assert not query_status(shop.settings, storage).is_running
    assert query_status(shop.settings, storage).tables["public.orders"]["progress"] is None
    # While the server is idle the reported time advances.
    with replicate_meanwhile(shop, tmp_path, limits=Limits(idle_checkpoint_seconds=0.0)) as caught_up:
        caught_up()
        first = State.read(storage)
        eventually(lambda: replace(State.read(storage), caught_up=first.caught_up) == first != State.read(storage))
        eventually(lambda: query_status(shop.settings, storage).lag_seconds == 0)
    assert query_status(shop.settings, storage).load_snapshot is None


def test_status_while_a_table_loads(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    db18.execute(
        "CREATE TABLE large (id int PRIMARY KEY, v text)",
        "INSERT INTO large SELECT i, repeat('x', 100) FROM generate_series(1, 4000) AS i",
        "ANALYZE large",
    )
    # Parts of one small range each, at a rate that leaves time to look at them.
    where = ["--dsn", db18.dsn, "--to", str(tmp_path)]
    began = datetime.now(UTC)
    with replicate_meanwhile(db18, tmp_path, load_rate=0.04, load_sessions=1, limits=Limits(task_bytes=1)) as caught_up:

        def progress() -> dict[str, int | str]:
            tables = State.read(Storage(str(tmp_path))).tables
            return (asdict(tables["public.large"])["progress"] if "public.large" in tables else None) or {}

        eventually(lambda: 0 < int(progress().get("rows", 0)) < 4000)
        assert main(["status", "--json", *where]) == 0
        status = json.loads(capsys.readouterr().out)
        seen = status["tables"]["public.large"]["progress"]
        assert 0 < seen["rows"] < seen["estimate"] == 4000
        # The snapshot is that which the server says is held.
        for since in (seen["snapshot_since"], status["load_snapshot"]):
            assert abs(datetime.fromisoformat(since) - began) < timedelta(seconds=60)
        assert main(["status", *where]) == 0
        assert re.search(
            r"\n +copied [1-9]\d* of about 4000 rows, \d+%; the snapshot has been held since 20",
            capsys.readouterr().out,
        )
        caught_up()
        assert State.read(Storage(str(tmp_path))).tables["public.large"].progress is None


class PauseCounter(Observer):
    """Counts how often a process says that it has stopped."""

    def __init__(self) -> None:
        self.pauses = 0

    def on_event(self, event: RunEvent) -> None:
        match event:
            case WaitReported(text):
                self.pauses += text.startswith("paused since")


def test_a_paused_place_is_stopped_until_it_is_resumed(
    shop: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    storage, where, pause_counter = Storage(str(tmp_path)), ["--dsn", shop.dsn, "--to", str(tmp_path)], PauseCounter()
    replicate_once(shop, tmp_path)
    state = State.read(storage)
    assert main(["pause", *where]) == 0
    shop.execute("UPDATE orders SET price = 1 WHERE id < 100")
    assert main(["replicate", "--once", *where]) == 3
    assert "and replicate applies nothing: run logicalrep resume" in capsys.readouterr().err
    # The server ends a connection that has not answered for this long.
    shop.execute(f"ALTER DATABASE {shop.value('SELECT current_database()')} SET wal_sender_timeout = '1s'")

    def slot() -> list[tuple[object, ...]]:
        return shop.rows(
            "SELECT active_pid, confirmed_flush_lsn FROM pg_replication_slots WHERE database = current_database()"
        )

    def answers(seconds: int) -> None:
        """Wait until the process has received all that there is, and has answered this much later."""
        head, time_now = shop.rows("SELECT pg_current_wal_flush_lsn(), now()")[0]
        until = f"sent_lsn >= '{head}' AND reply_time > '{time_now}'::timestamptz + interval '{seconds} s'"
        eventually(lambda: shop.value(f"SELECT count(*) FROM pg_stat_replication WHERE {until}") == 1)

    def stands_still() -> None:
        # The last acknowledgement may be on its way.
        answers(1)
        slot_before = slot()
        answers(3)
        assert slot() == slot_before

    # A process that starts afterwards is stopped too, and holds the slot.
    with replicate_meanwhile(shop, tmp_path, pause_counter) as caught_up:
        eventually(lambda: pause_counter.pauses == 1)
        stands_still()
        assert State.read(storage) == state
        assert query_status(shop.settings, storage).paused_since == read_paused_since(storage) is not None
        assert resume(storage)
        caught_up()
        assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}
        # It takes up a pause while it runs.
        assert pause(storage)
        eventually(lambda: pause_counter.pauses == 2)
        state = State.read(storage)
        shop.execute("DELETE FROM orders WHERE id < 100")
        stands_still()
        assert State.read(storage) == state
    assert main(["status", *where]) == 0
    assert "paused since" in capsys.readouterr().out
    assert main(["resume", *where]) == 0
    replicate_once(shop, tmp_path)
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}
