"""When the catalog is looked at: behind Relation messages that come again, once for all of them, and now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from logicalrep.observe.events import RunEvent, WaitReported
from logicalrep.pipeline.catalog import catalog
from logicalrep.pipeline.catalog.catalog import Catalog, CatalogRefresh
from logicalrep.pipeline.catalog.publishing import Published, ensure_publication
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.postgres.retries import LOCKED, Wait
from tests.pipeline.companions import companion_differences
from tests.pipeline.observed_loads import CopyNames, create_two_tables, read_ids
from tests.pipeline.reading import read_table
from tests.pipeline.replicating import Warnings, replicate_meanwhile, replicate_once, settings
from tests.postgres.servers import Database
from tests.waiting import eventually

TABLES = ["a", "b", "c", "d", "e"]
COPIES = [f"public.{name}" for name in TABLES]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """The OIDs of the tables that each look behind messages is about."""
    refreshed: list[set[int]] = []
    refresh = Catalog.refresh

    def counted(self: Catalog, oids: Collection[int]) -> CatalogRefresh:
        refreshed.append(set(oids))
        return refresh(self, oids)

    monkeypatch.setattr(Catalog, "refresh", counted)
    return refreshed


def oids(db: Database, *names: str) -> set[int]:
    return {int(str(db.value(f"SELECT '{name}'::regclass::oid::bigint"))) for name in names}


@pytest.mark.parametrize("error", LOCKED)
def test_a_refresh_that_waits_for_locks_is_no_error(
    error: type[psycopg.Error], db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends one of two sessions that wait for each other's locks, such as a migration's and this one."""
    observer = Warnings()

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(catalog, "ensure_publication", fail)
    monkeypatch.setattr(catalog, "query_unproven_partitions", lambda *_: (1,))
    monkeypatch.setattr(catalog, "query_empty_tables", fail)
    spec: Any = None
    with Catalog(settings(db18, tmp_path), "p", "s", observer, (), Wait(0), Limits()) as looking:
        assert looking.query_tables() is None
        assert looking.unsent_partitions(spec, spec) is None
    assert [text.partition(",")[0] for text in observer.texts] == ["another session has locked a table"]


def test_one_refresh_serves_all_messages_and_rows_need_none(
    db18: Database, tmp_path: Path, looks: list[set[int]]
) -> None:
    db18.execute(*(f"CREATE TABLE {name} (id int PRIMARY KEY)" for name in TABLES))
    db18.execute(f"CREATE PUBLICATION p FOR TABLE {', '.join(TABLES)}")
    observer = CopyNames()
    with replicate_meanwhile(db18, tmp_path, observer, 5.0, publication="p") as caught_up:
        caught_up()
        # A session of the slot sends each table's message before its first row.
        db18.execute(*(f"INSERT INTO {name} VALUES (1)" for name in TABLES))
        caught_up()
        observer.names.clear()
        looks.clear()
        for row in range(2, 30):
            db18.execute(*(f"INSERT INTO {name} VALUES ({row})" for name in TABLES))
        caught_up()
        assert looks == []
        with db18.connection.transaction():
            db18.execute(*(f"ALTER TABLE {name} ADD x int DEFAULT 5" for name in TABLES))
            db18.execute(*(f"INSERT INTO {name} VALUES (100, 6)" for name in TABLES))
        caught_up()
        # More looks follow only if the first ones came too early.
        assert looks
        assert all(look == oids(db18, *TABLES) for look in looks)
        # The messages of the transaction's end are sent with the next rows.
        db18.execute(*(f"INSERT INTO {name} VALUES (101, 6)" for name in TABLES))
        caught_up()
        looks.clear()
        db18.execute("ALTER TABLE b ADD y int", "INSERT INTO b VALUES (102, 6, 7)", "INSERT INTO c VALUES (102, 6)")
        caught_up()
        assert looks
        assert all(look == oids(db18, "b") for look in looks)
    assert observer.names == []
    assert companion_differences(db18, tmp_path, COPIES, TableSettings()) == {}


class Waits(CopyNames):
    """A report that also keeps what is waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[str] = []

    def on_event(self, event: RunEvent) -> None:
        super().on_event(event)
        match event:
            case WaitReported(text):
                self.waits.append(text)


def test_a_refresh_that_does_not_see_the_transaction_is_repeated_and_logged_after_a_second(
    db18: Database, tmp_path: Path, unseen: set[int], looks: list[set[int]]
) -> None:
    create_two_tables(db18)
    observer = Waits()
    with replicate_meanwhile(db18, tmp_path, observer, 5.0, publication="p") as caught_up:
        caught_up()
        db18.execute("INSERT INTO a VALUES (1)")
        caught_up()
        db18.execute("ALTER TABLE a ADD x int DEFAULT 5")
        looks.clear()
        with db18.connection.transaction():
            db18.execute("INSERT INTO a VALUES (2, 6)")
            unseen.add(int(str(db18.value("SELECT pg_current_xact_id()::text::bigint"))))
        eventually(lambda: len(looks) > 1)
        eventually(lambda: any("public.a wait" in text for text in observer.waits))
        assert read_ids(tmp_path, "a") == [1]
        unseen.clear()
        caught_up()
    assert companion_differences(db18, tmp_path, ["public.a"], TableSettings()) == {}


UNSENT: dict[str, Callable[[Path], bool]] = {
    "CREATE TABLE more (id int PRIMARY KEY)": lambda storage: any(
        (storage / "public/more" / log).exists() for log in ("_delta_log", "metadata")
    ),
    "DROP TABLE r1": lambda storage: read_ids(storage, "r") == [20],
    "ALTER TYPE mood RENAME VALUE 'low' TO 'down'": lambda storage: moods(storage) == ["down"],
}
"""Statements, and what the copy has after each."""


def moods(storage: Path) -> list[str]:
    return [str(mood) for mood in read_table(str(storage / "public/m"))["m"].to_pylist()]


def test_changes_without_a_message_are_found_by_the_refresh_every_five_seconds(
    db18: Database, tmp_path: Path, looks: list[set[int]]
) -> None:
    assert Limits().catalog_seconds == 5.0
    db18.execute(
        "CREATE TYPE mood AS ENUM ('low')",
        "CREATE TABLE m (id int PRIMARY KEY, m mood)",
        "INSERT INTO m VALUES (1, 'low')",
        "CREATE TABLE r (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE r1 PARTITION OF r FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE r2 PARTITION OF r FOR VALUES FROM (10) TO (30)",
        "INSERT INTO r VALUES (1), (20)",
    )
    with replicate_meanwhile(db18, tmp_path) as caught_up:
        caught_up()
        for statement, is_there in UNSENT.items():
            looks.clear()
            db18.execute(statement)
            eventually(partial(is_there, tmp_path))
            assert looks == []


@pytest.mark.parametrize("is_prepared", [False, True], ids=["streamed", "streamed and prepared"])
def test_a_message_in_a_streamed_transaction_counts_once_that_commits(
    db18: Database, tmp_path: Path, looks: list[set[int]], is_prepared: bool
) -> None:
    create_two_tables(db18)
    db18.execute(f"ALTER DATABASE {db18.name} SET logical_decoding_work_mem = '64kB'")
    of_a, observer = oids(db18, "a"), CopyNames()
    streamed = "SELECT coalesce(sum(stream_count), 0) FROM pg_stat_replication_slots"
    with replicate_meanwhile(db18, tmp_path, observer, 5.0, publication="p") as caught_up:
        caught_up()
        db18.execute("INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)")
        caught_up()
        observer.names.clear()
        looks.clear()
        streamed_before = int(str(db18.value(streamed)))
        with db18.writer() as other:
            for statement in (
                "BEGIN",
                "ALTER TABLE a ADD x int DEFAULT 5",
                "INSERT INTO a SELECT i, 6 FROM generate_series(10, 5000) AS i",
                "SAVEPOINT s",
                "ALTER TABLE a ADD gone text",
                "INSERT INTO a SELECT i, 6, 'gone' FROM generate_series(10000, 15000) AS i",
                "ROLLBACK TO s",
                "INSERT INTO a SELECT i, 6 FROM generate_series(20000, 25000) AS i",
            ):
                other.execute(statement.encode())
            eventually(lambda: int(str(db18.value(streamed))) > streamed_before)
            if is_prepared:
                other.execute("PREPARE TRANSACTION 'of_a'")
            db18.execute("INSERT INTO b VALUES (2)")
            eventually(lambda: read_ids(tmp_path, "b") == [1, 2])
            assert not [look for look in looks if look & of_a]
            assert read_ids(tmp_path, "a") == [1]
            other.execute("COMMIT PREPARED 'of_a'" if is_prepared else "COMMIT")
        caught_up()
        assert [look for look in looks if look & of_a]
    assert observer.names == []
    assert companion_differences(db18, tmp_path, ["public.a", "public.b"], TableSettings()) == {}


def test_a_refresh_without_transactions_since_the_last_one_is_one_query(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicate_once(db18, tmp_path)
    name = str(db18.value("SELECT pubname FROM pg_publication"))
    refreshes: list[str] = []

    def ensured(*arguments: Any, **named: Any) -> Published:
        refreshes.append(name)
        return ensure_publication(*arguments, **named)

    monkeypatch.setattr(catalog, "ensure_publication", ensured)

    def tables(look: Catalog) -> set[str]:
        return {str(table) for table in look.query_tables() or ()}

    def is_quiet(look: Catalog) -> bool:
        # The server itself, such as its autovacuum, may end transactions.
        count = len(refreshes)
        tables(look)
        return len(refreshes) == count

    with Catalog(settings(db18, tmp_path), name, name, Warnings(), (), Wait(60), Limits()) as look:
        assert tables(look) == set()
        eventually(lambda: is_quiet(look))
        db18.execute("CREATE TABLE t (id int PRIMARY KEY)")
        assert tables(look) == {"public.t"}
        eventually(lambda: is_quiet(look))
        with db18.writer() as writer:
            with writer.transaction():
                writer.execute("CREATE TABLE u (id int PRIMARY KEY)")
                tables(look)
                eventually(lambda: is_quiet(look))
            # The transaction ran at the last refresh.
            assert tables(look) == {"public.t", "public.u"}
            with writer.transaction():
                writer.execute("LOCK TABLE t")
                writer.execute("CREATE TABLE v (id int PRIMARY KEY)")
        with db18.writer() as other, other.transaction():
            other.execute("LOCK TABLE v IN SHARE UPDATE EXCLUSIVE MODE")
            assert tables(look) == {"public.t", "public.u"}
        # No transaction has written since, but a table has waited for a lock.
        assert tables(look) == {"public.t", "public.u", "public.v"}


def test_a_new_table_joins_after_a_wait(db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replicate_once(db18, tmp_path)
    name = str(db18.value("SELECT pubname FROM pg_publication"))
    waiting = settings(db18, tmp_path, join_after=3600)
    with Catalog(waiting, name, name, Warnings(), (), Wait(60), Limits()) as look:
        db18.execute("CREATE TABLE passing (id int PRIMARY KEY)", "CREATE TABLE t (id int PRIMARY KEY)")
        assert look.query_tables() == {}
        db18.execute("DROP TABLE passing")
        assert look.query_tables() == {}
        monkeypatch.setattr(catalog, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 4000))
        # The table joins without any transaction since the last refresh.
        assert {str(table) for table in look.query_tables() or ()} == {"public.t"}
        db18.execute("CREATE TABLE passing (id int PRIMARY KEY)", "INSERT INTO passing VALUES (1)")
        assert {str(table) for table in look.query_tables() or ()} == {"public.t"}
    # A start does not know since when a table exists.
    replicate_once(db18, tmp_path, join_after=3600)
    assert read_ids(tmp_path, "passing") == [1]
