"""Servers whose walsenders use outdated definitions of a table: no change of it is lost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from logicalrep.arrow.changes.change_batch import NEW
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.load import renewal
from logicalrep.pipeline.run.receiving import ChangeReceiver
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.preflight.checks import check
from logicalrep.postgres.preflight.findings import Needs
from logicalrep.postgres.server import query_wal_head
from logicalrep.postgres.server_faults import has_stale_sessions, loses_new_tables
from logicalrep.postgres.slots.creating import create_slot
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import TABLES, replicate_meanwhile, replicate_once
from tests.postgres.servers import Database, start_server_of
from tests.waiting import eventually

pytestmark = pytest.mark.postgres


def compare_while_more_comes(db: Database, storage: Path, caught_up: Callable[[], None], *tables: str) -> None:
    """Compare tables of `id` and `v` with the server's, after some rounds of changes."""
    for start in (1000, 2000):
        for table in tables:
            db.execute(
                f"INSERT INTO {table} SELECT i, 'later' FROM generate_series({start}, {start} + 9) AS i",
                f"UPDATE {table} SET v = 'changed' WHERE id % 10 = 1",
            )
        caught_up()
        assert find_differences(db.dsn, str(storage), tables) == {}


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["14.17", "16.8"])
@pytest.mark.parametrize("is_ours", [True, False], ids=["our publication", "a user's publication"])
def test_a_table_published_during_an_open_transaction_that_wrote_it_loses_no_row(
    tmp_path: Path, version: str, is_ours: bool
) -> None:
    with start_server_of(version) as db, closing(db.writer()) as writer:
        db.execute("CREATE TABLE one (id int PRIMARY KEY, v text)", "CREATE TABLE t (id int PRIMARY KEY, v text)")
        create_slot(db.connection, "stream")
        db.execute("CREATE PUBLICATION of_stream FOR TABLE one")
        (warning,) = check(db.connection, Needs(slot="stream", publications=("of_stream",)))
        assert warning.startswith(f"This is PostgreSQL {version}, from before May 2025")
        options: dict[str, str] = {}
        if not is_ours:
            db.execute("CREATE PUBLICATION p FOR TABLE one")
            options = {"publication": "p"}
        replicate_once(db, tmp_path, tables=(TableName("public", "one"),), **options)
        writer.execute("BEGIN")
        writer.execute("INSERT INTO t VALUES (1, 'open')")
        db.execute("INSERT INTO one VALUES (1, 'meanwhile')")
        with replicate_meanwhile(db, tmp_path, **options) as caught_up:
            if not is_ours:
                db.execute("ALTER PUBLICATION p ADD TABLE t")
            eventually(lambda: "public.t" in State.read(Storage(str(tmp_path))).tables)
            writer.execute("COMMIT")
            compare_while_more_comes(db, tmp_path, caught_up, "public.t", "public.one")


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["14.23"])
def test_attached_and_detached_partitions_lose_no_row(tmp_path: Path, version: str) -> None:
    with start_server_of(version) as db:
        db.execute(
            "CREATE TABLE root (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)",
            "CREATE TABLE root1 PARTITION OF root FOR VALUES FROM (0) TO (1000)",
            "CREATE TABLE leaf (id int PRIMARY KEY, v text)",
            "CREATE TABLE rest PARTITION OF root FOR VALUES FROM (2000) TO (9000)",
        )
        with replicate_meanwhile(db, tmp_path) as caught_up:
            caught_up()
            db.execute("INSERT INTO leaf VALUES (1500, 'before')", "INSERT INTO root VALUES (1, 'before')")
            caught_up()
            db.execute("ALTER TABLE root ATTACH PARTITION leaf FOR VALUES FROM (1000) TO (2000)")
            eventually(lambda: "public.leaf" not in State.read(Storage(str(tmp_path))).tables)
            compare_while_more_comes(db, tmp_path, caught_up, "public.root")
            db.execute("ALTER TABLE root DETACH PARTITION leaf", "INSERT INTO leaf VALUES (5000, 'no partition')")
            eventually(lambda: "public.leaf" in State.read(Storage(str(tmp_path))).tables)
            db.execute("DELETE FROM leaf WHERE id < 1600")
            caught_up()
            assert find_differences(db.dsn, str(tmp_path), ["public.root", "public.leaf"]) == {}


WALSENDER = "SELECT active_pid FROM pg_replication_slots WHERE NOT temporary"


def test_loads_from_a_server_with_stale_sessions_wait_for_a_new_session(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One session is enough for all tables that are wanted at once, and for later batches."""
    monkeypatch.setattr(renewal, "has_stale_sessions", lambda connection: True)
    with replicate_meanwhile(shop, tmp_path) as caught_up:
        eventually(lambda: bool(State.read(Storage(str(tmp_path))).tables))
        caught_up()
        first = shop.value(WALSENDER)
        shop.execute("UPDATE customer SET city = 'Fürth' WHERE id < 9")
        caught_up()
        assert shop.value(WALSENDER) == first
        shop.execute("CREATE TABLE later (id int PRIMARY KEY)", "INSERT INTO later VALUES (1)")
        for number in range(2, 100):
            shop.execute(f"INSERT INTO later VALUES ({number})", f"DELETE FROM orders WHERE id = {number}")
        eventually(lambda: "public.later" in State.read(Storage(str(tmp_path))).tables)
        caught_up()
        assert shop.value(WALSENDER) != first
    assert find_differences(shop.dsn, str(tmp_path), [*TABLES, "public.later"]) == {}


VERSIONS = {
    "10.23": (True, True), "13.20": (True, True), "13.23": (True, False), "14.17": (True, True),
    "14.18": (True, False), "15.12": (True, True), "15.13": (False, False), "16.8": (True, True),
    "16.9": (False, False), "17.4": (True, True), "17.5": (False, False), "18.0": (False, False),
}  # fmt: skip


@pytest.mark.parametrize(("version", "expected"), VERSIONS.items())
def test_which_servers_have_stale_sessions(version: str, expected: tuple[bool, bool]) -> None:
    major, minor = map(int, version.split("."))
    connection: Any = SimpleNamespace(info=SimpleNamespace(server_version=major * 10000 + minor))
    assert (has_stale_sessions(connection), loses_new_tables(connection)) == expected


def test_a_receiver_resumes_at_the_checkpoint_and_not_at_the_slot(db18: Database) -> None:
    """After a crash of the server the slot may be at an earlier position, which was decoded already."""
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    slot = create_slot(db18.connection, "s")
    db18.execute("INSERT INTO t VALUES (1)")
    between = query_wal_head(db18.connection)
    db18.execute("INSERT INTO t VALUES (2)")
    options = PluginOptions(publication_names=("p",), proto_version=4, streaming="parallel")
    for acknowledged, ids in ((Lsn(0), ["1", "2"]), (slot.confirmed.lsn, ["1", "2"]), (between, ["2"])):
        with ChangeReceiver(db18.settings, "s", options, state=State(acknowledged), limits=Limits()) as receiver:
            target, read_ids = query_wal_head(db18.connection), []
            while True:
                changes = receiver.take()
                read_ids += [
                    text for part in changes.parts for batch in part.batches for text in batch.texts(NEW)[0].to_pylist()
                ]
                if changes.end >= target:
                    break
                receiver.wait(0.1)
        assert read_ids == ids
