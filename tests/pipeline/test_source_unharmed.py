"""replicate harms neither the server nor its application: a test for each way to harm them."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from logicalrep.observe.observer import Observers
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.state.requests import pause
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.local_server import LocalServer
from logicalrep.postgres.preflight.checks import check
from logicalrep.postgres.preflight.findings import Needs, PreflightError
from logicalrep.postgres.preflight.synchronous import SynchronousStandbyError
from tests.pipeline.replicating import replicate_meanwhile, replicate_once, settings
from tests.postgres.servers import Database, connect_writer, installation
from tests.waiting import eventually

pytestmark = pytest.mark.postgres

OURS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
HELD = {
    "locks": f"SELECT relation::regclass FROM pg_locks WHERE relation >= 16384 AND pid IN (SELECT pid {OURS})",
    "snapshots": f"SELECT query {OURS} AND (backend_xmin IS NOT NULL OR state ~ 'idle in transaction')",
    "transactions": f"SELECT query {OURS} AND backend_xid IS NOT NULL",
    "slots of loads": "SELECT slot_name FROM pg_replication_slots WHERE temporary AND database = current_database()",
}
"""What is held only for a moment at a time once the tables are loaded."""


def test_nothing_is_held_once_the_tables_are_loaded(shop: Database, tmp_path: Path) -> None:
    slot = f"FROM pg_replication_slots WHERE database = '{shop.name}'"
    with replicate_meanwhile(shop, tmp_path) as caught_up:
        caught_up()
        for query in HELD.values():
            eventually(lambda query=query: shop.rows(query) == [])  # type: ignore[misc]
        # WAL of tables and databases that are not replicated is not retained either.
        shop.execute("INSERT INTO bare SELECT FROM generate_series(1, 2000)")
        head = shop.value("SELECT pg_current_wal_flush_lsn()")
        eventually(lambda: bool(shop.value(f"SELECT confirmed_flush_lsn >= '{head}' {slot}")))
        # Every statement of the application works, and waits for nobody.
        shop.execute(
            "SET lock_timeout = '5s'",
            "UPDATE bare SET v = 1",
            "DELETE FROM bare",
            "UPDATE audit SET what = 'other'",
            "ALTER TABLE orders ADD COLUMN more int",
            "TRUNCATE customer",
            "VACUUM FULL orders",
            "DROP TABLE audit",
        )
    eventually(lambda: shop.rows(f"SELECT pid {OURS}") == [])
    assert shop.rows(f"SELECT temporary, active {slot}") == [(False, False)]


def test_no_commit_waits_for_it(tmp_path: Path) -> None:
    """The server would take it for a synchronous standby, as it takes every walsender for one by `*`."""
    with (
        LocalServer(installation(18), synchronous_standby_names="'*'") as local,
        closing(connect_writer(local.dsn)) as connection,
    ):
        connection.execute("SET synchronous_commit = local")
        db = Database(local, "postgres", 18, connection)
        db.execute("CREATE TABLE t (id serial PRIMARY KEY)")
        with pytest.raises(PreflightError, match=r"\[SYNCHRONOUS_STANDBY\] Each COMMIT waits") as raised:
            replicate_once(db, tmp_path)
        assert db.rows("SELECT FROM pg_publication") == db.rows("SELECT FROM pg_replication_slots") == []
        for mode, is_refused in (("walsender", True), ("auto", True), ("peek", False)):
            needs = Needs(slot="s", publications=("p",), create_slot=True, mode=mode)  # type: ignore[arg-type]
            with pytest.raises(PreflightError) as failure:
                check(db.connection, needs)
            codes = [finding.code for finding in failure.value.findings]
            assert codes == ["SYNCHRONOUS_STANDBY"] * is_refused + ["PUBLICATION_MISSING"]
        remedy = re.search(r"run (ALTER SYSTEM .*) and (SELECT .*)\.$", str(raised.value))
        assert remedy is not None
        for is_paused in (False, True):
            db.execute(*remedy.groups())
            eventually(lambda: db.value("SHOW synchronous_standby_names") == "")
            stop, engine = threading.Event(), SequentialEngine()
            with closing(connect_writer(local.dsn)) as application, ThreadPoolExecutor(2) as pool:
                ended = pool.submit(replicate_with, settings(db, tmp_path), Observers(), stop=stop, engine=engine)
                try:
                    eventually(lambda: db.value("SELECT count(*) FROM pg_stat_replication") == 1)
                    if is_paused:
                        pause(Storage(str(tmp_path)))
                    db.execute("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
                    committed = pool.submit(application.execute, "INSERT INTO t DEFAULT VALUES")
                    assert isinstance(ended.exception(60), SynchronousStandbyError)
                finally:
                    stop.set()
                    db.execute(*remedy.groups())
                committed.result(60)
