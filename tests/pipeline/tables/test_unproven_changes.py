"""Changes of tables that names alone do not tell: each case has tables of its own, and all of them share two runs.

After each case the copy has the server's rows. A case says whether its table is loaded again for that, or followed.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.operate.resync import resync
from logicalrep.pipeline.operate.status import query_status
from logicalrep.pipeline.run.loop import TablesStoppedError
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.tables.table import Table
from logicalrep.postgres.server import query_wal_head
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.companions import ALL_COMPANIONS, companion_differences
from tests.pipeline.observed_loads import CopyNames, create_two_tables, read_ids, run_once, split_statements
from tests.pipeline.replicating import replicate_meanwhile, replicate_once, settings
from tests.postgres.servers import Database
from tests.waiting import eventually

_PLAIN = "CREATE TABLE {t} (id serial PRIMARY KEY, v int, w int); INSERT INTO {t} (v, w) SELECT i, -i FROM generate_series(1, 9) AS i"
_LAST = "CREATE TABLE {t} (id serial PRIMARY KEY, v int); INSERT INTO {t} (v) SELECT i FROM generate_series(1, 9) AS i"
_ROOT = (
    "CREATE TABLE {t} (id int, day int, PRIMARY KEY (id, day)) PARTITION BY RANGE (day); "
    "CREATE TABLE {t}_1 PARTITION OF {t} FOR VALUES FROM (1) TO (2); INSERT INTO {t} SELECT i, 1 FROM generate_series(1, 9) AS i"
)
_KEYLESS = (
    "CREATE TABLE {t} (id int, day int) PARTITION BY RANGE (day); ALTER TABLE {t} REPLICA IDENTITY FULL; "
    "CREATE TABLE {t}_1 PARTITION OF {t} FOR VALUES FROM (1) TO (2); INSERT INTO {t} SELECT i, 1 FROM generate_series(1, 9) AS i"
)
_FULL = (
    "CREATE TABLE {t} (id int, version int NOT NULL, v text, PRIMARY KEY (id)); ALTER TABLE {t} REPLICA IDENTITY FULL; "
    "INSERT INTO {t} VALUES (1, 1, 'one'), (2, 1, 'two')"
)
_MOOD = (
    "CREATE TYPE {t}_mood AS ENUM ('low', 'high'); CREATE TABLE {t} (id serial PRIMARY KEY, m {t}_mood); "
    "INSERT INTO {t} (m) VALUES ('low'), ('high')"
)


@dataclass(frozen=True)
class Case:
    """A table and what happens to it, statements in transactions of their own if there is no BEGIN."""

    setup: str
    changed: str
    is_loaded: bool
    since: int = 0
    """The first version of PostgreSQL that has the statements."""


CASES = {
    "a column dropped and added again": Case(
        _LAST, "ALTER TABLE {t} DROP v; ALTER TABLE {t} ADD v int; INSERT INTO {t} (v) VALUES (77)", True
    ),
    "in one statement, with a default": Case(
        _LAST, "ALTER TABLE {t} DROP v, ADD v int DEFAULT 5; INSERT INTO {t} (v) VALUES (77)", True
    ),
    "a column dropped and added again with another type": Case(
        _LAST, "ALTER TABLE {t} DROP v; ALTER TABLE {t} ADD v text; INSERT INTO {t} (v) VALUES ('new')", True
    ),
    "one that is not the last dropped and added again": Case(
        _PLAIN, "ALTER TABLE {t} DROP v; ALTER TABLE {t} ADD v int; INSERT INTO {t} (v) VALUES (77)", False
    ),
    "another one under the name of a dropped one": Case(
        _LAST,
        "ALTER TABLE {t} ADD c int; ALTER TABLE {t} DROP v; ALTER TABLE {t} RENAME c TO v; INSERT INTO {t} (v) VALUES (77)",
        True,
    ),
    "names that are exchanged": Case(
        _PLAIN,
        "BEGIN; ALTER TABLE {t} RENAME v TO x; ALTER TABLE {t} RENAME w TO v; ALTER TABLE {t} RENAME x TO w; COMMIT; "
        "INSERT INTO {t} (v, w) VALUES (1, 2); UPDATE {t} SET v = 100 WHERE id = 3",
        False,
    ),
    "names that are exchanged, and exchanged back": Case(
        _PLAIN,
        "ALTER TABLE {t} RENAME v TO x; ALTER TABLE {t} RENAME w TO v; ALTER TABLE {t} RENAME x TO w; "
        "INSERT INTO {t} (v, w) VALUES (1, 2); "
        "ALTER TABLE {t} RENAME v TO x; ALTER TABLE {t} RENAME w TO v; ALTER TABLE {t} RENAME x TO w",
        False,
    ),
    "a column renamed, written, and renamed back": Case(
        _LAST,
        "ALTER TABLE {t} RENAME v TO x; INSERT INTO {t} (x) VALUES (77); ALTER TABLE {t} RENAME x TO v; "
        "INSERT INTO {t} (v) VALUES (78)",
        False,
    ),
    "a new column written under another name": Case(
        _LAST,
        "ALTER TABLE {t} DROP v; ALTER TABLE {t} ADD v int; INSERT INTO {t} (v) VALUES (77); ALTER TABLE {t} RENAME v TO x",
        True,
    ),
    "up, down, up": Case(
        "CREATE TABLE {t} (id serial PRIMARY KEY); INSERT INTO {t} DEFAULT VALUES",
        "ALTER TABLE {t} ADD x int DEFAULT 5; INSERT INTO {t} VALUES (50, 7); ALTER TABLE {t} DROP x; "
        "ALTER TABLE {t} ADD x int DEFAULT 6",
        True,
    ),
    "a key that gets a column, with rows": Case(
        _FULL,
        "ALTER TABLE {t} DROP CONSTRAINT {t}_pkey, ADD PRIMARY KEY (id, version); INSERT INTO {t} VALUES (1, 2, 'more'); "
        "UPDATE {t} SET v = 'x' WHERE version = 1",
        True,
    ),
    "a key that gets a column, without rows": Case(
        _FULL, "ALTER TABLE {t} DROP CONSTRAINT {t}_pkey, ADD PRIMARY KEY (id, version)", False
    ),
    "half a transaction": Case(
        _PLAIN,
        "BEGIN; INSERT INTO {t} (v) VALUES (1); ALTER TABLE {t} ADD x int DEFAULT 5; INSERT INTO {t} (v) VALUES (2); COMMIT",
        True,
    ),
    "a transaction of which only the first half has rows": Case(
        _PLAIN, "BEGIN; INSERT INTO {t} (v) VALUES (1); ALTER TABLE {t} ADD x int DEFAULT 5; COMMIT", False
    ),
    "a generated column that becomes another": Case(
        "CREATE TABLE {t} (id serial PRIMARY KEY, v int, g int GENERATED ALWAYS AS (v * 2) STORED); "
        "INSERT INTO {t} (v) SELECT i FROM generate_series(1, 9) AS i",
        "ALTER TABLE {t} ALTER g DROP EXPRESSION; INSERT INTO {t} (v, g) VALUES (1, 1)",
        True,
        since=13,
    ),
    "truncated, filled and rewritten": Case(
        _PLAIN,
        "BEGIN; TRUNCATE {t}; INSERT INTO {t} (v) VALUES (1); ALTER TABLE {t} ALTER v TYPE int USING v * 100; COMMIT",
        True,
    ),
    "truncated, filled and rewritten in savepoints": Case(
        _PLAIN,
        "BEGIN; TRUNCATE {t}; SAVEPOINT a; INSERT INTO {t} (v) VALUES (1); RELEASE a; SAVEPOINT b; "
        "ALTER TABLE {t} ADD n bigserial; COMMIT",
        True,
    ),
    "truncated and filled": Case(_PLAIN, "TRUNCATE {t}; INSERT INTO {t} (v) VALUES (1)", False),
    "vacuumed into a new file": Case(_PLAIN, "VACUUM FULL {t}; INSERT INTO {t} (v) VALUES (1)", False),
    "a partition filled and attached": Case(
        _ROOT,
        "BEGIN; CREATE TABLE {t}_2 (LIKE {t} INCLUDING ALL); INSERT INTO {t}_2 VALUES (1, 2); "
        "ALTER TABLE {t} ATTACH PARTITION {t}_2 FOR VALUES FROM (2) TO (3); COMMIT",
        True,
    ),
    "a partition filled in a savepoint and attached": Case(
        _ROOT,
        "BEGIN; CREATE TABLE {t}_2 (LIKE {t} INCLUDING ALL); SAVEPOINT a; INSERT INTO {t}_2 VALUES (1, 2); RELEASE a; "
        "ALTER TABLE {t} ATTACH PARTITION {t}_2 FOR VALUES FROM (2) TO (3); COMMIT",
        True,
    ),
    "a partition filled in a block and attached": Case(
        _ROOT,
        "BEGIN; CREATE TABLE {t}_2 (LIKE {t} INCLUDING ALL); "
        "DO $$ BEGIN INSERT INTO {t}_2 VALUES (1, 2)\\; EXCEPTION WHEN others THEN NULL\\; END $$; "
        "ALTER TABLE {t} ATTACH PARTITION {t}_2 FOR VALUES FROM (2) TO (3); COMMIT",
        True,
    ),
    "a partition of partitions, filled before it is attached": Case(
        _ROOT,
        "CREATE TABLE {t}_2 (LIKE {t} INCLUDING ALL) PARTITION BY RANGE (day); "
        "CREATE TABLE {t}_2a PARTITION OF {t}_2 FOR VALUES FROM (2) TO (3); INSERT INTO {t}_2 VALUES (1, 2); "
        "ALTER TABLE {t} ATTACH PARTITION {t}_2 FOR VALUES FROM (2) TO (3); INSERT INTO {t} VALUES (2, 2)",
        True,
    ),
    "an empty partition attached, and filled": Case(
        _ROOT,
        "CREATE TABLE {t}_2 (LIKE {t} INCLUDING ALL); ALTER TABLE {t} ATTACH PARTITION {t}_2 FOR VALUES FROM (2) TO (3)",
        False,
    ),
    "a partition made and filled at once": Case(
        _ROOT,
        "BEGIN; CREATE TABLE {t}_2 PARTITION OF {t} FOR VALUES FROM (2) TO (3); INSERT INTO {t} VALUES (1, 2); COMMIT",
        False,
    ),
    "a partition made and filled, whose rows change": Case(
        _ROOT,
        "BEGIN; CREATE TABLE {t}_2 PARTITION OF {t} FOR VALUES FROM (2) TO (3); "
        "INSERT INTO {t} SELECT i, 2 FROM generate_series(1, 9) AS i; INSERT INTO {t} VALUES (10, 1); "
        "DELETE FROM {t} WHERE id = 1; UPDATE {t} SET id = 11 WHERE id = 2; COMMIT; "
        "UPDATE {t} SET id = id + 20 WHERE id = 3; DELETE FROM {t} WHERE id = 4; INSERT INTO {t} VALUES (4, 2)",
        False,
    ),
    "a partition made, filled and truncated": Case(
        _ROOT,
        "BEGIN; CREATE TABLE {t}_2 PARTITION OF {t} FOR VALUES FROM (2) TO (3); INSERT INTO {t} VALUES (1, 2); "
        "TRUNCATE {t}_2; INSERT INTO {t} VALUES (2, 2); COMMIT; INSERT INTO {t} VALUES (3, 2)",
        True,
    ),
    "a partition made in a savepoint, filled, and truncated there": Case(
        _ROOT,
        "BEGIN; INSERT INTO {t} VALUES (10, 1); SAVEPOINT a; CREATE TABLE {t}_2 PARTITION OF {t} FOR VALUES FROM (2) TO (3); "
        "INSERT INTO {t} VALUES (1, 2); TRUNCATE {t}_2; RELEASE a; INSERT INTO {t} VALUES (11, 1); COMMIT",
        True,
    ),
    "a partition attached, filled and truncated": Case(
        _ROOT,
        "BEGIN; CREATE TABLE {t}_2 (LIKE {t} INCLUDING ALL); ALTER TABLE {t} ATTACH PARTITION {t}_2 FOR VALUES FROM (2) TO (3); "
        "INSERT INTO {t} VALUES (1, 2); TRUNCATE {t}_2; COMMIT",
        True,
    ),
    "a partition made and filled, without a key": Case(
        _KEYLESS,
        "BEGIN; SAVEPOINT a; CREATE TABLE {t}_2 PARTITION OF {t} FOR VALUES FROM (2) TO (3); RELEASE a; "
        "INSERT INTO {t} VALUES (1, 2), (1, 2); COMMIT; INSERT INTO {t} VALUES (1, 2)",
        False,
    ),
    "a partition made, filled and truncated, without a key": Case(
        _KEYLESS,
        "BEGIN; CREATE TABLE {t}_2 PARTITION OF {t} FOR VALUES FROM (2) TO (3); INSERT INTO {t} VALUES (1, 2), (1, 2); "
        "TRUNCATE {t}_2; INSERT INTO {t} VALUES (1, 2); COMMIT; INSERT INTO {t} VALUES (1, 2)",
        True,
    ),
    "a partition made, filled and dropped": Case(
        _ROOT,
        "CREATE TABLE {t}_2 PARTITION OF {t} FOR VALUES FROM (2) TO (3); INSERT INTO {t} VALUES (1, 2); DROP TABLE {t}_2",
        True,
    ),
    "a partition made, filled and detached": Case(
        _ROOT,
        "BEGIN; CREATE TABLE {t}_2 PARTITION OF {t} FOR VALUES FROM (2) TO (3); INSERT INTO {t} VALUES (1, 2); "
        "ALTER TABLE {t} DETACH PARTITION {t}_2; COMMIT; INSERT INTO {t} VALUES (10, 1)",
        True,
    ),
    "a partition made and dropped, without rows": Case(
        _ROOT, "CREATE TABLE {t}_2 PARTITION OF {t} FOR VALUES FROM (2) TO (3); DROP TABLE {t}_2", False
    ),
    "a partition detached, changed and attached": Case(
        _ROOT,
        "BEGIN; ALTER TABLE {t} DETACH PARTITION {t}_1; UPDATE {t}_1 SET id = id + 100 WHERE id < 5; "
        "ALTER TABLE {t} ATTACH PARTITION {t}_1 FOR VALUES FROM (1) TO (2); COMMIT",
        True,
    ),
    "a truncated partition": Case(_ROOT, "TRUNCATE {t}_1; INSERT INTO {t} VALUES (3, 1)", True),
    "a label renamed, written, and renamed back": Case(
        _MOOD,
        "ALTER TYPE {t}_mood RENAME VALUE 'low' TO 'l'; INSERT INTO {t} (m) VALUES ('l'); "
        "ALTER TYPE {t}_mood RENAME VALUE 'l' TO 'low'",
        True,
    ),
    "a new label, written": Case(
        _MOOD, "ALTER TYPE {t}_mood ADD VALUE 'mid'; INSERT INTO {t} (m) VALUES ('mid')", False
    ),
    "a new label, written and renamed": Case(
        _MOOD,
        "ALTER TYPE {t}_mood ADD VALUE 'mid'; INSERT INTO {t} (m) VALUES ('mid'); "
        "ALTER TYPE {t}_mood RENAME VALUE 'mid' TO 'middle'",
        True,
    ),
    "new labels that are written and exchange names": Case(
        _MOOD,
        "ALTER TYPE {t}_mood ADD VALUE 'a'; ALTER TYPE {t}_mood ADD VALUE 'b'; INSERT INTO {t} (m) VALUES ('a'), ('b'); "
        "ALTER TYPE {t}_mood RENAME VALUE 'a' TO 'c'; ALTER TYPE {t}_mood RENAME VALUE 'b' TO 'a'; "
        "ALTER TYPE {t}_mood RENAME VALUE 'c' TO 'b'",
        True,
    ),
    "a label of a new column's new type, renamed": Case(
        _LAST,
        "CREATE TYPE {t}_new AS ENUM ('x', 'y'); ALTER TABLE {t} ADD m {t}_new DEFAULT 'x'; INSERT INTO {t} (v) VALUES (7); "
        "ALTER TYPE {t}_new RENAME VALUE 'x' TO 'z'",
        True,
    ),
    "new labels in a range": Case(
        "CREATE TYPE {t}_mood AS ENUM ('low', 'high'); CREATE TYPE {t}_moods AS RANGE (subtype = {t}_mood); "
        "CREATE TABLE {t} (id serial PRIMARY KEY, r {t}_moods)",
        "ALTER TYPE {t}_mood ADD VALUE 'top'; INSERT INTO {t} (r) VALUES ('[low,top]'), ('empty'), (NULL)",
        False,
    ),
    "cidr to inet": Case(
        "CREATE TABLE {t} (id serial PRIMARY KEY, v cidr); INSERT INTO {t} (v) VALUES ('10.0.0.0/8')",
        "ALTER TABLE {t} ALTER v TYPE inet; INSERT INTO {t} (v) VALUES ('10.0.0.1/8')",
        True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("is_running", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("is_all_kept", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_unproven_tables_are_reloaded(
    db16_and_18: Database, tmp_path: Path, is_running: bool, is_all_kept: bool
) -> None:
    db = db16_and_18
    cases = {f"t{number}": (name, case) for number, (name, case) in enumerate(CASES.items()) if db.major >= case.since}
    for table, (_, case) in cases.items():
        db.execute(*split_statements(case.setup, table))
    db.execute(f"CREATE PUBLICATION p FOR TABLE {', '.join(cases)} WITH (publish_via_partition_root = true)")
    options = {"publication": "p"} | ({"table_settings": ALL_COMPANIONS} if is_all_kept else {})
    replicate_once(db, tmp_path, **options)
    observer = CopyNames()

    def change() -> None:
        for table, (_, case) in cases.items():
            db.execute(*split_statements(case.changed, table))

    if is_running:
        with replicate_meanwhile(db, tmp_path, observer, **options) as caught_up:
            caught_up()
            change()
            caught_up()
    else:
        change()
    replicate_with(settings(db, tmp_path, once=True, **options), observer, engine=SequentialEngine())
    copies = [f"public.{table}" for table in cases]
    differences = companion_differences(db, tmp_path, copies, ALL_COMPANIONS if is_all_kept else settings(db, tmp_path).table_settings,
                             counts_versions=False)  # fmt: skip
    assert {cases[copy.partition(".")[2]][0]: why for copy, why in differences.items()} == {}
    if not is_running:
        loaded = {name for table, (name, _) in cases.items() if table in observer.names}
        assert loaded == {name for name, case in cases.values() if case.is_loaded}


OPTIONS = {
    "an option there and back": "ALTER PUBLICATION p SET (publish = 'insert'); {rows}; "
    "ALTER PUBLICATION p SET (publish = 'insert, update, delete, truncate')",
    "generated columns": "ALTER PUBLICATION p SET (publish_generated_columns = stored); {rows}",
    "dropped and made again": "DROP PUBLICATION p; CREATE PUBLICATION p FOR TABLE a, b, c; {rows}",
}


@pytest.mark.parametrize("statements_", OPTIONS.values(), ids=OPTIONS)
def test_a_publication_that_left_changes_out_reloads_all_tables_with_one_log_line(
    db18: Database, tmp_path: Path, statements_: str
) -> None:
    names = ["a", "b", "c"]
    db18.execute(*(f"CREATE TABLE {name} (id int PRIMARY KEY, v int)" for name in names))
    db18.execute(*(f"INSERT INTO {name} VALUES (1, 1), (2, 2)" for name in names))
    replicate_once(db18, tmp_path, publication="p")
    changes = "; ".join(f"UPDATE {name} SET v = 7" for name in names)
    db18.execute(*statements_.replace("{rows}", changes).split("; "))
    observer = run_once(db18, tmp_path, publication="p")
    assert observer.lines == [("its publication changed", names)]
    assert companion_differences(db18, tmp_path, [f"public.{name}" for name in names], TableSettings()) == {}


def test_the_third_load_for_one_reason_waits_and_ends_with_equal_rows(
    db18: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db18.execute("CREATE TABLE a (id int PRIMARY KEY, v int)", "CREATE TABLE b (id int PRIMARY KEY)")
    db18.execute("INSERT INTO a VALUES (1, 1)", "CREATE PUBLICATION p FOR TABLE a, b")
    replicate_once(db18, tmp_path, publication="p")
    rewrite = "ALTER TABLE a ALTER v TYPE int USING v + 1"
    for _ in range(2):
        db18.execute(rewrite)
        assert run_once(db18, tmp_path, publication="p").names == ["a"]
    db18.execute(rewrite, "INSERT INTO b VALUES (1)")
    for number in range(2):
        # A run that is to end does not wait; a load that waits is not counted again.
        with pytest.raises(
            TablesStoppedError, match=r"LOADED_TOO_OFTEN.*PostgreSQL rewrote its rows.*next load begins at 20"
        ):
            run_once(db18, tmp_path, publication="p")
        status = query_status(db18.settings, Storage(str(tmp_path))).tables["public.a"]
        assert (status["state"], status["phase"]) == ("loading", "queued")
        assert "the next load begins at" in status["error"]
        db18.execute(f"INSERT INTO a VALUES ({number + 10}, 1)")
    assert companion_differences(db18, tmp_path, ["public.b"], TableSettings()) == {}
    monkeypatch.setattr(Table, "load_begin", None)
    assert run_once(db18, tmp_path, publication="p").names == ["a"]
    assert companion_differences(db18, tmp_path, ["public.a", "public.b"], TableSettings()) == {}
    monkeypatch.undo()
    db18.execute(rewrite)
    with pytest.raises(TablesStoppedError, match="LOADED_TOO_OFTEN"):
        run_once(db18, tmp_path, publication="p")
    resync(db18.settings, Storage(str(tmp_path)), [TableName("public", "a")])
    assert run_once(db18, tmp_path, publication="p").names == ["a"]
    db18.execute(rewrite)
    assert run_once(db18, tmp_path, publication="p").names == ["a"]
    assert companion_differences(db18, tmp_path, ["public.a", "public.b"], TableSettings()) == {}


def test_rows_wait_until_the_catalog_has_their_transaction_and_other_tables_continue(
    db18: Database, tmp_path: Path, unseen: set[int]
) -> None:
    """The server sends a commit before queries see it; with synchronous replication it may be long before."""
    create_two_tables(db18)
    observer = CopyNames()
    with replicate_meanwhile(db18, tmp_path, observer, publication="p") as caught_up:
        db18.execute("INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)")
        caught_up()
        observer.names.clear()
        db18.execute("ALTER TABLE a ADD x int DEFAULT 5")
        wal_head = query_wal_head(db18.connection)
        with db18.connection.transaction():
            db18.execute("INSERT INTO a VALUES (2, 6)")
            unseen.add(int(str(db18.value("SELECT pg_current_xact_id()::text::bigint"))))
        after = query_wal_head(db18.connection)
        db18.execute("INSERT INTO b VALUES (2)")
        eventually(lambda: read_ids(tmp_path, "b") == [1, 2])
        assert read_ids(tmp_path, "a") == [1]
        # The commit that waits is not acknowledged, nor any later one.
        eventually(lambda: State.read(Storage(str(tmp_path))).lsn >= wal_head)
        (confirmed,) = db18.rows("SELECT confirmed_flush_lsn FROM pg_replication_slots")[0]
        assert Lsn(str(confirmed)) <= State.read(Storage(str(tmp_path))).lsn < after
        unseen.clear()
        caught_up()
        assert companion_differences(db18, tmp_path, ["public.a", "public.b"], TableSettings()) == {}
    assert observer.names == []


def test_a_locked_table_blocks_no_other_table(db18: Database, tmp_path: Path) -> None:
    create_two_tables(db18)
    observer = CopyNames()
    with replicate_meanwhile(db18, tmp_path, observer, publication="p") as caught_up, closing(db18.writer()) as other:
        db18.execute("INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)")
        caught_up()
        observer.names.clear()
        other.autocommit = False
        other.execute("LOCK TABLE b IN ACCESS EXCLUSIVE MODE")
        db18.execute("ALTER TABLE a ADD x int DEFAULT 5", "INSERT INTO a VALUES (2, 6)")
        eventually(lambda: read_ids(tmp_path, "a") == [1, 2])
        other.rollback()
        caught_up()
    assert observer.names == []
