"""`logicalrep replicate` through a proxy that fails in each way, at each phase: afterwards the tables are the server's."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from logicalrep.observe.observer import Observers
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.comparison import find_differences
from tests.postgres.proxy import Proxy, start_proxy_to
from tests.postgres.servers import Database, create_database
from tests.waiting import eventually

pytestmark = pytest.mark.postgres

FAILURES: dict[str, dict[str, Any]] = {
    "the connections that there are are stuck": {"freeze": "old"},
    "nothing passes": {"freeze": "all"},
    "connections are reset at a byte": {"cut": 100},
    "both sides are told that the other one sends no more": {"half_close": True},
    "everything comes later": {"delay": 0.05},
}
# The bytes that the server has sent: within the first connection, the start, the load, and what follows.
PHASES = [1, 700, 3_000, 10_000, 30_000, 100_000, 1_000_000, 4_000_000, 8_000_000]
CORE = [("the connections that there are are stuck", 100_000)]


@pytest.mark.parametrize(
    ("failure", "phase"),
    [
        pytest.param(failure, phase, marks=() if (failure, phase) in CORE else pytest.mark.thorough)
        for failure in FAILURES
        for phase in PHASES
    ],
)
def test_a_proxy_that_fails_loses_nothing(failure: str, phase: int, tmp_path: Path) -> None:
    with create_database(18) as db, start_proxy_to(db.server.folder, db.name) as proxy:
        db.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE TABLE u (id int PRIMARY KEY)")
        db.execute("INSERT INTO t SELECT i, repeat(md5(i::text), 10) FROM generate_series(1, 10000) AS i")
        _fails(db, proxy, tmp_path / "lake", phase, FAILURES[failure])


def _fails(db: Database, proxy: Proxy, lake: Path, phase: int, failure: dict[str, Any]) -> None:
    # A server that does not notice by itself that a session's other side is gone.
    settings = ReplicateSettings(
        dsn=ConnectionSettings(f"{proxy.dsn} options='-c wal_sender_timeout=0'").with_patience(1),
        to=str(lake),
        every=0.0,
    )
    stop, errors = threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            replicate_with(settings, Observers(), engine=SequentialEngine(), stop=stop)
        except BaseException as error:
            errors.append(error)

    def has_happened() -> bool:
        assert not errors, errors
        if proxy.sent() < phase:
            db.execute("UPDATE t SET v = v || 'x' WHERE id <= 1000")
        return proxy.sent() >= phase

    def has_all() -> bool:
        assert not errors, errors
        state = State.read(Storage(str(lake)))
        return state.lsn >= target and [table.state for table in state.tables.values()] == ["following"] * 2

    proxy.when_sent(phase, **failure)
    thread = threading.Thread(target=run)
    thread.start()
    try:
        eventually(has_happened, seconds=240)
        if "delay" not in failure:
            # Somebody has found out, and tries again.
            eventually(lambda: proxy.connections_since() > 0 or bool(errors), seconds=240)
        proxy.thaw()
        proxy.cut(None)
        db.execute("DELETE FROM t WHERE id % 3 = 0", "INSERT INTO u VALUES (1)")
        target = Lsn(str(db.value("SELECT pg_current_wal_insert_lsn()")))
        eventually(has_all, seconds=240)
    finally:
        stop.set()
        thread.join(60)
    assert not errors, errors
    assert find_differences(db.dsn, str(lake), ["public.t", "public.u"]) == {}
