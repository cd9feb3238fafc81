"""The server is upgraded, fails over, is restored, or loses the slot: no table is silently wrong afterwards."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from logicalrep.cli.main import main
from logicalrep.observe.counts import Observed
from logicalrep.observe.health import health
from logicalrep.observe.observer import Observers
from logicalrep.pipeline.catalog.catalog import Catalog
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.operate.status import query_status
from logicalrep.pipeline.requirements.requirements import UnmetError
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.state.requests import pause, resume
from logicalrep.pipeline.state.state import State, StateError, States
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.local_server import LocalServer
from logicalrep.postgres.retries import Wait
from logicalrep.postgres.slots.errors import SlotError
from logicalrep.postgres.slots.slot import query_slot
from logicalrep.postgres.slots.standbys import standby_warnings
from tests.pipeline.comparison import delta_rows, find_differences
from tests.pipeline.replicating import SHOP, TABLES, Warnings, replicate_meanwhile, replicate_once, settings
from tests.postgres.servers import (
    Database,
    back_up,
    connect_writer,
    create_database,
    installation,
    start_standby_of,
    take_over,
)
from tests.waiting import eventually

pytestmark = pytest.mark.postgres

CHANGES = (
    "UPDATE customer SET city = 'Erlangen' WHERE id % 3 = 0",
    "DELETE FROM orders WHERE id % 7 = 0",
    "INSERT INTO audit VALUES ('2021-01-01', 'new')",
)


@contextmanager
def server(major: int, **settings: str) -> Iterator[Database]:
    """Yield the database of a server of its own, with the shop."""
    with LocalServer(installation(major), **settings) as local:
        database = Database(local, "postgres", major, connect_writer(local.dsn))
        database.execute(*SHOP.strip().rstrip(";").split(";\n"))
        yield database
        database.connection.close()


def at(local: LocalServer, major: int = 18) -> Database:
    return Database(local, "postgres", major, connect_writer(local.dsn))


def loads(lake: Path) -> dict[str, str | None]:
    return {name: table.load for name, table in State.read(Storage(str(lake))).tables.items()}


@contextmanager
def upgrade(old: LocalServer) -> Iterator[LocalServer]:
    """Stop a server, and yield its successor, which pg_upgrade creates."""
    new = LocalServer(installation(18))
    try:
        new.create()
        old.stop()
        # They are the default from PostgreSQL 18 on, and both servers have to agree.
        old.run("pg_checksums", "--enable", str(old.data))
        done = new.run(
            "pg_upgrade",
            "--username=postgres",
            "--no-sync",
            f"--old-bindir={old.installation.bin}",
            f"--new-bindir={new.installation.bin}",
            f"--old-datadir={old.data}",
            f"--new-datadir={new.data}",
        )
        assert done.returncode == 0, (done.stdout + done.stderr).decode()
        new.start()
        yield new
    finally:
        new.__exit__(None, None, None)


@pytest.mark.thorough
@pytest.mark.parametrize("major", [16, 18])
def test_an_upgraded_server_takes_the_place_of_the_first(tmp_path: Path, major: int) -> None:
    storage = Storage(str(tmp_path))
    with server(major) as old:
        replicate_once(old, tmp_path)
        old.execute(*CHANGES)
        replicate_once(old, tmp_path)
        old.connection.close()
        state, rows = State.read(storage), delta_rows(str(tmp_path / "public/orders"))
        with upgrade(old.server) as local:
            new = at(local)
            # pg_upgrade keeps logical slots from 17 on.
            assert new.value("SELECT count(*) FROM pg_replication_slots") == (1 if major >= 17 else 0)
            new.execute("DELETE FROM orders WHERE id < 100")
            with pytest.raises(StateError, match=r"\[OTHER_SERVER\].*resync --all --new-server"):
                replicate_once(new, tmp_path)
            with pytest.raises(StateError, match=r"\[OTHER_SERVER\]"):
                resync(new.settings, storage, [])
            assert State.read(storage) == state
            resync(new.settings, storage, [], new_server=True)
            assert delta_rows(str(tmp_path / "public/orders")) == rows
            replicate_once(new, tmp_path)
            assert find_differences(new.dsn, str(tmp_path), TABLES) == {}
            previous_loads = loads(tmp_path)
            new.execute(*CHANGES, "INSERT INTO orders VALUES (1, 1, 1, NULL, 'upgraded')")
            replicate_once(new, tmp_path)
            assert find_differences(new.dsn, str(tmp_path), TABLES) == {}
            assert loads(tmp_path) == previous_loads
            new.connection.close()


@pytest.mark.thorough
def test_a_standby_takes_over(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    # A slot that is there before the standby would be in its copy of the data, as none of its own.
    with (
        server(18, synchronized_standby_slots="standby") as primary,
        start_standby_of(primary.server, tmp_path / "backup") as local,
    ):
        primary.reconnect()
        standby = at(local)
        with pytest.raises(UnmetError, match=r"run on its primary CREATE PUBLICATION"):
            replicate_once(standby, tmp_path / "other")
        replicate_once(primary, lake)
        assert primary.value("SELECT failover FROM pg_replication_slots WHERE plugin = 'pgoutput'") is False

        def is_kept() -> bool:
            primary.execute("UPDATE customer SET city = 'Kept' WHERE id = 1", "SELECT pg_log_standby_snapshot()")
            kept = "SELECT count(*) FROM pg_replication_slots WHERE failover AND synced AND NOT temporary"
            return standby.value(kept) == 1

        # An existing slot becomes a failover slot.
        servers = f"host={primary.server.folder},{local.folder} target_session_attrs=read-write"
        both = ConnectionSettings(f"{servers} user=postgres dbname=postgres")
        with replicate_meanwhile(primary, lake, failover=True) as caught_up:
            eventually(is_kept)
            caught_up()
        assert query_status(primary.settings, Storage(str(lake))).standbys == {}
        assert query_status(both, Storage(str(lake))).standbys == {f"{local.folder}:5432": True}
        name = str(primary.value("SELECT slot_name FROM pg_replication_slots WHERE plugin = 'pgoutput'"))
        assert standby_warnings(both, primary.connection, name) == []
        (other,) = standby_warnings(both, primary.connection, "another")
        assert "is a standby without a synchronized copy of the slot" in other
        previous_loads = loads(lake)
        primary.execute(*CHANGES)
        head = primary.value("SELECT pg_current_wal_flush_lsn()")
        eventually(lambda: bool(standby.value(f"SELECT pg_last_wal_replay_lsn() >= '{head}'")))
        primary.connection.close()
        primary.server.stop("immediate")
        standby.execute("SELECT pg_promote()", "INSERT INTO audit VALUES (NULL, 'after the failover')")
        settings = ReplicateSettings(dsn=both, to=str(lake), once=True, failover=True)
        replicate_with(settings, Observers(), engine=SequentialEngine())
        assert find_differences(standby.dsn, str(lake), TABLES) == {}
        assert loads(lake) == previous_loads
        standby.connection.close()


def test_a_server_that_lacks_commits_is_refused(tmp_path: Path) -> None:
    """Its commits have the LSNs of those that the tables have, and would be taken for these."""
    lake = tmp_path / "lake"
    with server(18) as primary:
        replicate_once(primary, lake)
        primary.connection.close()
        back_up(primary.server, tmp_path / "backup")
        primary.reconnect()
        previous_state = State.read(Storage(str(lake)))
        primary.execute(*CHANGES)
        replicate_once(primary, lake)
        primary.connection.close()
        take_over(primary.server, tmp_path / "backup")
        primary.reconnect()
        eventually(lambda: not primary.value("SELECT pg_is_in_recovery()"))
        primary.execute("DELETE FROM orders WHERE id < 1000")
        with pytest.raises(SlotError, match=r"\[WAL_DIVERGED\].*resync --all"):
            replicate_once(primary, lake)
        # A process that was killed may have noted less than a table has: the table's own LSN counts.
        States(Storage(str(lake))).write(previous_state)
        previous_loads = loads(lake)
        replicate_once(primary, lake)
        assert loads(lake).keys() == previous_loads.keys()
        assert not loads(lake).items() & previous_loads.items()
        assert find_differences(primary.dsn, str(lake), TABLES) == {}
        primary.execute("INSERT INTO audit VALUES (NULL, 'later')")
        assert not resync(primary.settings, Storage(str(lake)), [])
        replicate_once(primary, lake)
        assert find_differences(primary.dsn, str(lake), TABLES) == {}


@pytest.mark.parametrize(
    ("setting", "reason"),
    [("max_slot_wal_keep_size = '1MB'", "wal_removed"), ("idle_replication_slot_timeout = '1s'", "idle_timeout")],
)
def test_the_server_ends_a_slot(shop: Database, tmp_path: Path, setting: str, reason: str) -> None:
    replicate_once(shop, tmp_path)
    lose_the_slot(shop, setting, reason)
    with pytest.raises(SlotError, match=rf"\[SLOT_LOST\].*lost \({reason}\).*resync --all"):
        replicate_once(shop, tmp_path)
    assert not resync(shop.settings, Storage(str(tmp_path)), [])
    replicate_once(shop, tmp_path)
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}


def test_the_server_ends_a_slot_that_is_read(shop: Database, tmp_path: Path) -> None:
    replicate_once(shop, tmp_path)
    storage, errors = Storage(str(tmp_path)), list[str]()
    pause(storage)

    def run() -> None:
        try:
            replicate_with(settings(shop, tmp_path, every=0.0), Observers(), engine=SequentialEngine())
        except Exception as error:
            errors.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    eventually(lambda: bool(shop.value("SELECT active FROM pg_replication_slots")))
    lose_the_slot(shop, "max_slot_wal_keep_size = '1MB'", "wal_removed")
    resume(storage)
    thread.join(60)
    assert len(errors) == 1
    assert re.search(r"^\[SLOT_LOST\].*run logicalrep resync --all", errors[0])


def test_a_run_replaces_a_lost_slot(shop: Database, tmp_path: Path) -> None:
    storage, observer = Storage(str(tmp_path)), Warnings()
    replicate_once(shop, tmp_path)
    previous_loads = loads(tmp_path)
    pause(storage)
    with replicate_meanwhile(shop, tmp_path, observer, on_lost_slot="resync") as caught_up:
        eventually(lambda: bool(shop.value("SELECT active FROM pg_replication_slots")))
        lose_the_slot(shop, "max_slot_wal_keep_size = '1MB'", "wal_removed")
        resume(storage)
        eventually(lambda: any("creates a new slot" in text for text in observer.texts))
        caught_up()
    assert any("the slot is lost (wal_removed): replicate creates a new slot" in text for text in observer.texts)
    assert not loads(tmp_path).items() & previous_loads.items()
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}


def test_a_slot_that_may_soon_be_lost(shop: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replicate_once(shop, tmp_path)
    name, observer, observed = str(shop.value("SELECT slot_name FROM pg_replication_slots")), Warnings(), Observed()
    replication = settings(shop, tmp_path)
    shop.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '96MB'", "SELECT pg_reload_conf()")
    try:
        eventually(lambda: query_slot(shop.connection, name).safe_wal_size is not None)
        with Catalog(replication, name, name, observer, (), Wait(60), replace(Limits(), catalog_seconds=0)) as catalog:
            catalog.check_slot()
            assert observer.texts == []
            for expected in ("less than a quarter of max_slot_wal_keep_size left", "passed max_slot_wal_keep_size"):
                while not any(expected in text for text in observer.texts):
                    shop.execute("DELETE FROM orders WHERE id = 1", "SELECT pg_switch_wal()")
                    catalog.check_slot()
                observed.sample(catalog.query_slot())
                is_alive, line = health(observed)
                assert is_alive
                assert expected in line
        assert len(observer.texts) == 2
        assert query_slot(shop.connection, name).safe_wal_size == 0
        assert main(["status", "--dsn", shop.dsn, "--to", str(tmp_path)]) == 0
        assert "max_slot_wal_keep_size is passed" in capsys.readouterr().out
    finally:
        shop.execute("ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()")


def test_a_renamed_database_is_followed(tmp_path: Path) -> None:
    lake, storage = tmp_path / "lake", Storage(str(tmp_path / "lake"))
    with create_database(18) as db:
        db.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
        replicate_once(db, lake)
        previous_loads = loads(lake)
        with create_database(18) as other, pytest.raises(StateError, match=r"not '\w+'\. If that database was renamed"):
            replicate_once(other, lake)
        db.connection.close()
        with connect_writer(db.server.dsn) as admin:
            admin.execute(f"ALTER DATABASE {db.name} RENAME TO {db.name}_renamed")
        try:
            renamed = Database(
                db.server, f"{db.name}_renamed", 18, connect_writer(db.server.dsn_as("postgres", f"{db.name}_renamed"))
            )
            with pytest.raises(StateError, match="start logicalrep replicate, which finds its slot there"):
                resync(renamed.settings, storage, [])
            renamed.execute("INSERT INTO t VALUES (2)")
            replicate_once(renamed, lake)
            assert find_differences(renamed.dsn, str(lake), ["public.t"]) == {}
            assert not resync(renamed.settings, storage, [])
            renamed.connection.close()
        finally:
            with connect_writer(db.server.dsn) as admin:
                admin.execute(f"ALTER DATABASE {db.name}_renamed RENAME TO {db.name}")
        assert loads(lake) == previous_loads


def lose_the_slot(shop: Database, setting: str, reason: str) -> None:
    shop.execute(f"ALTER SYSTEM SET {setting}", "SELECT pg_reload_conf()")
    try:

        def is_lost() -> bool:
            shop.execute("DELETE FROM orders WHERE id < 100", "SELECT pg_switch_wal()", "CHECKPOINT")
            return shop.value("SELECT invalidation_reason FROM pg_replication_slots") == reason

        eventually(is_lost)
    finally:
        shop.execute("ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()")
    time.sleep(0.1)
