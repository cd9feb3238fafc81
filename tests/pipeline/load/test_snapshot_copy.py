"""Loads on a real server: whose rows they have, what happens to them under DDL, and that nobody waits for them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from psycopg.errors import LockNotAvailable

from logicalrep.observe.events import CopyStarted, RunEvent, WaitReported
from logicalrep.observe.observer import Observer, Observers
from logicalrep.pipeline.catalog.definitions import CatalogTable, query_catalog_tables
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.index.key_indexes import KeyIndexes
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.load import copying
from logicalrep.pipeline.load.copying import limit_rate
from logicalrep.pipeline.load.snapshot_copy import CopiedTable, CopyFailed, LoadRequest, SnapshotCopy
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.run_context import RunContext
from logicalrep.pipeline.state.state import Identity, State
from logicalrep.pipeline.storage.patience import Patience
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.publications import query_published_relation
from logicalrep.postgres.retries import Wait
from logicalrep.postgres.server import Connection
from logicalrep.postgres.snapshots import Snapshot, hold_temporary_snapshot
from logicalrep.postgres.table_rows.parts import query_parts
from logicalrep.postgres.table_rows.reading import FileRows, copy_rows
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.comparison import delta_rows, find_differences
from tests.pipeline.partitioned_files import stored_table
from tests.pipeline.replicating import replicate_meanwhile, replicate_once, settings
from tests.postgres.servers import Database
from tests.waiting import eventually


class Heard(Observer):
    """What is said."""

    def __init__(self) -> None:
        self.waits: list[str] = []
        self.estimates: dict[str, int] = {}

    def on_event(self, event: RunEvent) -> None:
        match event:
            case CopyStarted(table, rows):
                self.estimates[table.name] = rows
            case WaitReported(text):
                self.waits.append(text)


class Before(SequentialEngine):
    """Does something once before the first part is copied."""

    def __init__(self, action: Callable[[], object]) -> None:
        self._action: Callable[[], object] | None = action

    def run(self, function: Callable[[Any], Any], items: Sequence[Any], nbytes: int) -> list[Any]:
        action, self._action = self._action, None
        if action is not None:
            action()
        return super().run(function, items, nbytes)


def loading(
    db: Database, storage: Path, *, dsn: str = "", engine: SequentialEngine | None = None, observer: Observer | None = None,
    stop: threading.Event | None = None, **options: Any,
) -> SnapshotCopy:  # fmt: skip
    observer, stop = observer or Observers(), stop or threading.Event()
    context = RunContext(
        indexes=KeyIndexes("", 0, pytest.fail),
        settings=ReplicateSettings(dsn=ConnectionSettings(dsn or db.dsn), to=str(storage), **options),
        storage=Storage(str(storage), {}),
        tables=table_format(Storage(str(storage), {})),
        identity=Identity("s", "p", 1, db.name),
        observer=observer,
        engine=engine or SequentialEngine(),
        patience=Patience(observer, stop, str, 30.0),
        stop=stop,
    )
    return SnapshotCopy(context, Wait(stop=stop, say=lambda text: observer.on_event(WaitReported(text))))


def load(db: Database, storage: Path, *names: str, **options: Any) -> list[CopiedTable | CopyFailed]:
    snapshot_copy = loading(db, storage, **options)
    oids: dict[str, int] = dict(db.connection.execute("SELECT relname, oid::bigint FROM pg_class").fetchall())
    wanted = [LoadRequest(f"t{number}", oids.get(name, 0)) for number, name in enumerate(names)]
    try:
        return list(
            snapshot_copy.load(
                {TableName("public", name): request for name, request in zip(names, wanted, strict=True)}
            )
        )
    finally:
        snapshot_copy.close()


def rows_of(storage: Path, loaded: CopiedTable | CopyFailed, folder: str = "t0") -> Counter[tuple[Any, ...]]:
    assert isinstance(loaded, CopiedTable), loaded
    tables = [pq.read_table(storage / folder / file.path).to_pydict().values() for file in loaded.files]
    return Counter(row for columns in tables for row in zip(*columns, strict=True))


def server_rows(db: Database, query: str) -> Counter[tuple[Any, ...]]:
    return Counter(db.rows(query))


ODD = '"; DROP TABLE plain; --'
SHAPES = {
    "an empty table": ("t", "CREATE TABLE t (id int PRIMARY KEY, v text)", "SELECT * FROM t"),
    "an odd name": (
        ODD,
        'CREATE TABLE """; DROP TABLE plain; --" ("a ""b"" \\\\ c" int PRIMARY KEY, "select" text);'
        'INSERT INTO """; DROP TABLE plain; --" SELECT i, \'v\' FROM generate_series(1, 100) AS i',
        'SELECT * FROM """; DROP TABLE plain; --"',
    ),
    "300 columns": (
        "t",
        f"CREATE TABLE t ({', '.join(f'c{number} int' for number in range(300))});"
        f"INSERT INTO t SELECT {', '.join(f'i + {number}' for number in range(300))} FROM generate_series(1, 20) AS i",
        "SELECT * FROM t",
    ),
    "many ranges": (
        "t",
        "CREATE TABLE t (id int PRIMARY KEY, v text); "
        "INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 20000) AS i",
        "SELECT * FROM t",
    ),
    "partitions of partitions, with other orders of columns": (
        "t",
        "CREATE TABLE t (id int, day int, v text, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);"
        "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (1) TO (2);"
        "CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (2) TO (4) PARTITION BY LIST (day);"
        "CREATE TABLE t3 (v text, gone int, day int NOT NULL, id int NOT NULL);"
        "ALTER TABLE t3 DROP COLUMN gone; ALTER TABLE t2 ATTACH PARTITION t3 FOR VALUES IN (3);"
        "CREATE TABLE t4 PARTITION OF t2 DEFAULT;"
        "INSERT INTO t SELECT i, 1 + i % 3, 'v' || i FROM generate_series(1, 300) AS i",
        "SELECT * FROM t",
    ),
    "a parent without the rows of its children": (
        "t",
        "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE child () INHERITS (t);"
        "INSERT INTO t VALUES (1); INSERT INTO child VALUES (2)",
        "SELECT * FROM ONLY t",
    ),
    "a generated column, which is not sent": (
        "t",
        "CREATE TABLE t (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED, v int);"
        "INSERT INTO t SELECT i FROM generate_series(1, 10) AS i",
        "SELECT id, v FROM t",
    ),
}


@pytest.mark.parametrize(("name", "statements", "query"), SHAPES.values(), ids=SHAPES)
def test_a_load_has_the_published_rows(db: Database, tmp_path: Path, name: str, statements: str, query: str) -> None:
    for statement in statements.split(";") if name != ODD else statements.split(";I"):
        db.execute(statement if not statement.startswith("NSERT") else f"I{statement}")
    listed = '"' + name.replace('"', '""') + '"'
    db.execute(f"CREATE PUBLICATION p FOR TABLE ONLY {listed} WITH (publish_via_partition_root = true)")
    (loaded,) = load(db, tmp_path, name)
    assert rows_of(tmp_path, loaded) == server_rows(db, query)


def test_a_server_without_ranges_of_row_addresses_is_read_in_parts_too(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before PostgreSQL 14 a range would read the whole file: rows are looked up by their destinations."""
    monkeypatch.setattr("logicalrep.postgres.table_rows.parts.server_major", lambda connection: 13)
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text)",
        "INSERT INTO t SELECT i, CASE WHEN i % 9 = 0 THEN repeat('x', 1000) END FROM generate_series(1, 200000) AS i",
        "UPDATE t SET v = 'y' WHERE id % 7 = 0",
        "DELETE FROM t WHERE id % 5 = 0 OR id BETWEEN 1000 AND 90000",
        "CREATE PUBLICATION p FOR TABLE t WHERE (id <> 3)",
    )
    (relation,) = [query_published_relation(db18.connection, TableName("public", "t"), ("p",))]
    assert relation is not None
    assert len(query_parts(db18.connection, relation, ("p",), size=4 << 20)) > 5
    assert len(query_parts(db18.connection, relation, ("p",))) == 1
    (loaded,) = load(db18, tmp_path, "t")
    assert rows_of(tmp_path, loaded) == server_rows(db18, "SELECT * FROM t WHERE id <> 3")


PUBLISHED = {
    "a row filter": ("FOR TABLE t WHERE (v > 5)", "", "SELECT id, v, w FROM t WHERE v > 5"),
    "a column list": ("FOR TABLE t (id, w)", "", "SELECT id, w FROM t"),
    "both": ("FOR TABLE t (id, w) WHERE (id < 10)", "", "SELECT id, w FROM t WHERE id < 10"),
    "generated columns": ("FOR TABLE t", " WITH (publish_generated_columns = stored)", "SELECT id, v, w, g FROM t"),
}


@pytest.mark.parametrize(("tables", "options", "query"), PUBLISHED.values(), ids=PUBLISHED)
def test_a_load_has_what_the_publication_sends(
    db18: Database, tmp_path: Path, tables: str, options: str, query: str
) -> None:
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v int, w text, g int GENERATED ALWAYS AS (v + 1) STORED)",
        "INSERT INTO t SELECT i, i % 10, 'w' FROM generate_series(1, 100) AS i",
        f"CREATE PUBLICATION p {tables}{options}",
    )
    (loaded,) = load(db18, tmp_path, "t")
    assert rows_of(tmp_path, loaded) == server_rows(db18, query)


DDL = {
    "truncate": "TRUNCATE t",
    "a rewrite": "ALTER TABLE t ALTER COLUMN v TYPE bigint USING length(v)",
    "a column": "ALTER TABLE t ADD COLUMN more int DEFAULT 1",
    "a renamed column": "ALTER TABLE t RENAME COLUMN v TO renamed",
    "drop": "DROP TABLE t",
    "another table of the name": "ALTER TABLE t RENAME TO old; ALTER TABLE twin RENAME TO t",
    "another schema of the name": "CREATE SCHEMA aside; ALTER TABLE t SET SCHEMA aside; ALTER TABLE twin RENAME TO t",
}


@pytest.mark.parametrize("statements", DDL.values(), ids=DDL)
def test_a_table_that_is_changed_meanwhile_is_reloaded(db18: Database, tmp_path: Path, statements: str) -> None:
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text)",
        "CREATE TABLE twin (id int PRIMARY KEY, v text)",
        "CREATE TABLE other (id int PRIMARY KEY)",
        "INSERT INTO t SELECT i, 'v' FROM generate_series(1, 100) AS i",
        "CREATE PUBLICATION p FOR TABLE t, twin, other",
    )

    def change() -> None:
        with db18.writer() as writer:
            writer.execute("SET lock_timeout = '1s'")
            for statement in statements.split(";"):
                writer.execute(statement.encode())

    heard = Heard()
    results = {
        result.name.name: result
        for result in load(db18, tmp_path, "t", "other", engine=Before(change), observer=heard, load_sessions=1)
    }
    changed = results["t"]
    assert isinstance(changed, CopyFailed), changed
    assert changed.may_retry
    assert [text.partition(":")[0] for text in heard.waits] == ["the load of public.t restarts"]
    assert isinstance(results["other"], CopiedTable)


DDL_OF_PARTITIONS = {
    "truncate": "TRUNCATE t_1",
    "a rewrite": "ALTER TABLE t ALTER COLUMN v TYPE bigint USING length(v)",
    "a column": "ALTER TABLE t ADD COLUMN more int DEFAULT 1",
    "a renamed partition": "ALTER TABLE t_1 RENAME TO renamed",
    "drop": "DROP TABLE t_1",
    "a renamed root": "ALTER TABLE t RENAME TO old; CREATE TABLE t (id int PRIMARY KEY, v text)",
}


@pytest.mark.parametrize("statements", DDL_OF_PARTITIONS.values(), ids=DDL_OF_PARTITIONS)
def test_a_partition_that_is_changed_meanwhile_is_reloaded(db18: Database, tmp_path: Path, statements: str) -> None:
    make_partitions(db18)

    def change() -> None:
        with db18.writer() as writer:
            for statement in statements.split(";"):
                writer.execute(statement.encode())

    (changed,) = load(db18, tmp_path, "t", engine=Before(change), load_sessions=1)
    assert isinstance(changed, CopyFailed), changed
    assert changed.may_retry


@pytest.mark.parametrize(
    "statement", ["ALTER TABLE t DETACH PARTITION t_1", "CREATE TABLE t_9 PARTITION OF t FOR VALUES FROM (90) TO (99)"]
)
def test_a_load_has_the_partitions_of_its_snapshot(db18: Database, tmp_path: Path, statement: str) -> None:
    make_partitions(db18)
    rows = server_rows(db18, "SELECT * FROM t")
    (loaded,) = load(db18, tmp_path, "t", engine=Before(lambda: db18.execute(statement)), load_sessions=1)
    assert rows_of(tmp_path, loaded) == rows


@pytest.mark.parametrize("fails", [False, True])
def test_no_query_of_the_catalog_waits_long_for_a_lock(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """Neither the queries for all tables of a group, nor the queries for each table if these fail."""
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE u (id int PRIMARY KEY)")
    db18.execute("CREATE PUBLICATION p FOR TABLE t, u")
    timeouts: list[str] = []

    def query(connection: Connection, oids: Sequence[int], *arguments: Any) -> dict[int, CatalogTable]:
        timeouts.extend(timeout for (timeout,) in connection.execute("SHOW lock_timeout").fetchall())
        if fails and len(oids) > 1:
            raise LockNotAvailable
        return query_catalog_tables(connection, oids, *arguments)

    monkeypatch.setattr("logicalrep.pipeline.load.snapshot_copy.query_catalog_tables", query)
    results = load(db18, tmp_path, "t", "u")
    assert all(isinstance(result, CopiedTable) for result in results)
    assert timeouts == ["5s"] * (3 if fails else 1)


def test_a_load_locks_a_partition_at_a_time(db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a lock on all partitions for the file of each, a load would cost the square of their number."""
    make_partitions(db18)
    locked: list[list[str]] = []

    def read(connection: Connection, rows: FileRows, observer: Connection) -> Iterator[memoryview | bytes]:
        query = (
            "SELECT relname FROM pg_locks JOIN pg_class ON pg_class.oid = relation "
            "WHERE pid = pg_backend_pid() AND relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace"
        )
        locked.append(sorted(name for (name,) in connection.execute(query).fetchall()))
        yield from copy_rows(connection, rows, observer)

    monkeypatch.setattr(copying, "copy_rows", read)
    (loaded,) = load(db18, tmp_path, "t")
    assert rows_of(tmp_path, loaded) == server_rows(db18, "SELECT * FROM t")
    assert sorted(locked) == [["t", "t_1"], ["t", "t_2"], ["t", "t_3"]]


def make_partitions(db: Database) -> None:
    db.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)",
        *(f"CREATE TABLE t_{i} PARTITION OF t FOR VALUES FROM ({i}0) TO ({i + 1}0)" for i in (1, 2, 3)),
        "INSERT INTO t SELECT i, 'v' FROM generate_series(10, 39) AS i",
        "CREATE PUBLICATION p FOR TABLE t WITH (publish_via_partition_root = true)",
    )


def test_ddl_waits_for_a_range_and_not_for_the_table(db18: Database, tmp_path: Path) -> None:
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text)",
        "INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 30000) AS i",
        "CREATE PUBLICATION p FOR TABLE t",
    )
    results: list[CopiedTable | CopyFailed] = []
    thread = threading.Thread(target=lambda: results.extend(load(db18, tmp_path, "t", load_sessions=1, load_rate=0.5)))
    thread.start()
    locks = "SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass AND mode = 'AccessShareLock' AND granted"
    try:
        eventually(lambda: db18.value(locks) != 0)
        time.sleep(1)
        with db18.writer() as writer:
            # At this rate the whole table takes seven seconds.
            writer.execute("SET lock_timeout = '2s'")
            writer.execute("ALTER TABLE t ADD COLUMN more int")
    finally:
        thread.join(60)
    (result,) = results
    assert isinstance(result, CopyFailed)
    assert result.may_retry


def test_a_killed_session_is_no_error(db18: Database, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    kill = (
        "SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots "
        "WHERE slot_name LIKE 'logicalrep_load_%' AND database = current_database()"
    )
    (result,) = load(db18, tmp_path, "t", engine=Before(lambda: db18.execute(kill)))
    assert isinstance(result, CopyFailed)
    assert result.may_retry


def test_rows_that_the_role_may_not_read_stop_their_table_alone(db18: Database, tmp_path: Path) -> None:
    role = f"reader_{db18.name}"
    db18.execute(
        "CREATE TABLE secret (id int PRIMARY KEY)",
        "CREATE TABLE filtered (id int PRIMARY KEY)",
        "ALTER TABLE filtered ENABLE ROW LEVEL SECURITY",
        "CREATE TABLE open (id int PRIMARY KEY)",
        "CREATE PUBLICATION p FOR TABLE secret, filtered, open",
        f"CREATE ROLE {role} LOGIN REPLICATION",
        f"GRANT SELECT ON filtered, open TO {role}",
    )
    try:
        dsn = db18.server.dsn_as(role, db18.name)
        results = {result.name.name: result for result in load(db18, tmp_path, "secret", "filtered", "open", dsn=dsn)}
        assert isinstance(results["open"], CopiedTable)
        for name, message in {"secret": 'GRANT SELECT ON "public"."secret"', "filtered": "row-level security"}.items():
            result = results[name]
            assert isinstance(result, CopyFailed)
            assert not result.may_retry
            assert message in result.reason
    finally:
        db18.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_a_prepared_transaction_in_the_way_is_named_and_the_load_can_end(db18: Database, tmp_path: Path) -> None:
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE PUBLICATION p FOR TABLE t",
        "BEGIN",
        "INSERT INTO t VALUES (1)",
        "PREPARE TRANSACTION 'left behind'",
    )
    heard, stop = Heard(), threading.Event()
    results: list[CopiedTable | CopyFailed] = []
    for ends in (True, False):
        heard.waits.clear()
        stop.clear()
        thread = threading.Thread(target=lambda: results.extend(load(db18, tmp_path, "t", observer=heard, stop=stop)))
        thread.start()
        eventually(lambda: bool(heard.waits))
        assert heard.waits[0].startswith(
            "a new slot waits for the transaction of the prepared transaction 'left behind'"
        )
        if ends:
            stop.set()
        else:
            db18.execute("ROLLBACK PREPARED 'left behind'")
        thread.join(20)
        assert not thread.is_alive()
        assert len(results) == (0 if ends else 1)
    assert isinstance(results[0], CopiedTable)


@pytest.mark.parametrize("sees_more", [True, False])
def test_a_transaction_that_keeps_the_first_slot_waiting_is_named_too(
    db18: Database, tmp_path: Path, sees_more: bool
) -> None:
    """The server does not tell everybody since when the transaction of another role runs."""
    role = f"reader_{db18.name}"
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE PUBLICATION p FOR TABLE t",
        f"CREATE ROLE {role} LOGIN REPLICATION",
        f"GRANT SELECT ON t TO {role}",
    )
    given = settings(db18, tmp_path, publication="p")
    if not sees_more:
        given = replace(given, dsn=db18.server.dsn_as(role, db18.name))
    heard, stop = Heard(), threading.Event()
    try:
        with db18.writer() as writer, writer.transaction():
            writer.execute("INSERT INTO t VALUES (1)")
            thread = threading.Thread(target=lambda: replicate_with(given, heard, engine=SequentialEngine(), stop=stop))
            thread.start()
            message = f"a new slot waits for the transaction of process {writer.info.backend_pid}"
            eventually(lambda: any(message in text for text in heard.waits))
            assert any("pg_read_all_stats" in text for text in heard.waits) != sees_more
            stop.set()
            thread.join(20)
            assert not thread.is_alive()
    finally:
        db18.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_rows_are_estimated_without_statistics(db18: Database, tmp_path: Path) -> None:
    make = "CREATE TABLE {} (id int PRIMARY KEY, a int, v text) WITH (autovacuum_enabled = false)"
    fill = "INSERT INTO {} SELECT i, i, repeat('x', 20) FROM generate_series(1, 20000) AS i"
    names = ("empty", "small", "fresh", "known", "grown")
    for name in names:
        db18.execute(make.format(name))
    for name in ("fresh", "known", "grown"):
        db18.execute(fill.format(name))
    # Before the first ANALYZE, only a large table has an estimate.
    db18.execute("INSERT INTO small VALUES (1, 1, 'x')", "UPDATE fresh SET v = repeat('x', 500)")
    db18.execute(
        "ANALYZE known, grown", "INSERT INTO grown SELECT i, i, repeat('x', 20) FROM generate_series(20001, 40000) AS i"
    )
    db18.execute(f"CREATE PUBLICATION p FOR TABLE {', '.join(names)}")
    heard = Heard()
    load(db18, tmp_path, *names, observer=heard)
    assert (heard.estimates["empty"], heard.estimates["small"], heard.estimates["known"]) == (0, 0, 20000)
    assert heard.estimates["fresh"] > 20000
    assert 38000 < heard.estimates["grown"] < 42000


def test_a_table_that_is_being_altered_delays_no_other_table(db18: Database, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)")
    with replicate_meanwhile(db18, tmp_path) as caught_up:
        caught_up()
        with db18.writer() as writer, writer.transaction():
            writer.execute("LOCK TABLE a IN ACCESS EXCLUSIVE MODE")
            for number in range(2):
                # The second after the server's tables have been looked for.
                time.sleep(number)
                db18.execute(f"INSERT INTO b VALUES ({number})")
                eventually(lambda: delta_rows(f"{tmp_path}/public/b").total() == number + 1, seconds=20)  # noqa: B023
        caught_up()


@pytest.mark.parametrize("is_ahead", [False, True], ids=["the stream is behind the copy", "the stream is ahead"])
def test_changes_during_a_load_are_applied_once(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_ahead: bool
) -> None:
    """Each change counts with the copy or with the stream, whichever of them is ahead; the stream has all of them."""
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v int)",
        "INSERT INTO t SELECT i, 0 FROM generate_series(1, 1000) AS i",
        "CREATE TABLE whole (v int)",
        "ALTER TABLE whole REPLICA IDENTITY FULL",
        "INSERT INTO whole SELECT 1 FROM generate_series(1, 100) AS i",
    )

    def change(number: int) -> None:
        db18.execute(
            f"UPDATE t SET v = v + 1, id = id + {1000 if number % 2 else -1000} WHERE id % 3 = {number % 3}",
            "DELETE FROM whole WHERE ctid IN (SELECT ctid FROM whole LIMIT 10)",
            f"INSERT INTO whole VALUES ({number}), ({number})",
        )

    # Only the first group's snapshot has changes around it, if the tables are not in one.
    numbers, are_made = [3, 2, 1, 0], threading.Event()

    @contextmanager
    def changed_around(*arguments: Any) -> Iterator[Snapshot]:
        # The copy has these changes, and the stream too.
        changes = [numbers.pop() for _ in numbers[:2]]
        for number in changes:
            change(number)
        with hold_temporary_snapshot(*arguments) as snapshot:
            for number in [numbers.pop() for _ in changes]:
                change(number)
            are_made.set()
            if changes and is_ahead:
                # The slot has passed them before the copy begins.
                end = Lsn(str(db18.value("SELECT pg_current_wal_insert_lsn()")))
                eventually(lambda: State.read(Storage(str(tmp_path), {})).lsn >= end)
                assert len(list(tmp_path.glob("_logicalrep/buffered/**/*.parquet"))) >= 2
            yield snapshot

    monkeypatch.setattr("logicalrep.pipeline.load.snapshot_copy.hold_temporary_snapshot", changed_around)
    with replicate_meanwhile(db18, tmp_path) as caught_up:
        assert are_made.wait(60)
        caught_up()
        assert find_differences(db18.dsn, str(tmp_path), ["public.t", "public.whole"]) == {}
        change(4)
        caught_up()
    assert find_differences(db18.dsn, str(tmp_path), ["public.t", "public.whole"]) == {}
    assert delta_rows(f"{tmp_path}/public/whole").total() == 100 - 50 + 10


def test_many_batches_that_came_during_a_load_take_few_commits(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each commit may rewrite all files of the table: one for each batch could take longer than the batches do."""
    db18.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t SELECT i, 0 FROM generate_series(1, 99) AS i"
    )
    kept = tmp_path / "_logicalrep/buffered"

    @contextmanager
    def with_many_batches(*arguments: Any) -> Iterator[Snapshot]:
        with hold_temporary_snapshot(*arguments) as snapshot:
            for number in range(1, 11):
                db18.execute(f"UPDATE t SET v = {number} WHERE id = {number}")
                eventually(lambda: len(list(kept.rglob("*.parquet"))) >= number)  # noqa: B023
            yield snapshot

    monkeypatch.setattr("logicalrep.pipeline.load.snapshot_copy.hold_temporary_snapshot", with_many_batches)
    with replicate_meanwhile(db18, tmp_path) as caught_up:
        eventually(lambda: len(list(kept.rglob("*.parquet"))) >= 10)
        caught_up()
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}
    assert DeltaTable(f"{tmp_path}/public/t").version() <= 2


def test_a_rate_is_limited_with_few_sleeps(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """A sleep for each row would take far longer than the rate says."""
    sleeps: list[float] = []

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    start = clock[0]
    assert len(list(limit_rate((bytes(100) for _ in range(10_000)), 1e6))) == 10_000
    assert clock[0] - start == pytest.approx(1, abs=0.02)
    assert len(sleeps) <= 100


def test_a_table_whose_name_another_table_has_at_the_snapshot_is_retried(db18: Database, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE a (id int)", "CREATE TABLE b (id int)", "CREATE PUBLICATION p FOR TABLE a, b")
    snapshot_copy = loading(db18, tmp_path)
    oid = int(str(db18.value("SELECT 'a'::regclass::oid::bigint")))
    try:
        (result,) = snapshot_copy.load({TableName("public", "b"): LoadRequest("b", oid)})
    finally:
        snapshot_copy.close()
    assert isinstance(result, CopyFailed)
    assert result.may_retry


@pytest.mark.parametrize(
    "columns",
    ["v text DEFAULT repeat('x', 90)", "a int DEFAULT 1", ", ".join(f"c{i} int8 DEFAULT {i}" for i in range(9))],
)
def test_the_files_of_a_load_are_full(db18: Database, tmp_path: Path, columns: str) -> None:
    """Upkeep would merge files that are not, and write their rows twice; the last file has the rest."""
    db18.execute(f"CREATE TABLE t (id int PRIMARY KEY, {columns})", "INSERT INTO t SELECT generate_series(1, 40000)")
    default = Limits()
    sizes = ("range_bytes", "task_bytes", "file_bytes", "file_rows")
    limits = replace(default, **{name: getattr(default, name) >> 7 for name in sizes})
    replicate_once(db18, tmp_path, limits=limits)
    *files, rest = sorted(
        stored_table(tmp_path, "public/t").files.values(), key=lambda file: file.is_full(limits), reverse=True
    )
    assert len(files) > 1
    assert all(file.is_full(limits) for file in files), [(file.rows, file.size) for file in (*files, rest)]
