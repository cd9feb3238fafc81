"""The subjects of PostgreSQL's own tests of subscriptions (`src/test/subscription/t`), through `replicate`.

Each is a scenario in `scenarios.py`. All of a publication run at once: the tables are loaded, changed while they are
followed, changed again between two runs, and then compared with the server by a plain SELECT.

=============================  =======================================================================================
PostgreSQL's file              where it is tested here, or why it does not concern a subscriber that is no PostgreSQL
=============================  =======================================================================================
001_rep_changes                `changes`; reconnecting and restarts: `test_servers`, `tests/spark/test_kills`
002_types                      `types`; values that Delta's types lack: `test_unrepresentable`
003_constraints                `constraints`; a subscriber's own triggers and foreign keys: a Delta table has none
004_sync                       `new_tables`; a copy that fails and is tried again: `test_load_queue`, `test_snapshot_copy`
005_encoding                   `test_other_character_sets`
006_rewrite                    `rewrites`
007_ddl                        commands for subscriptions; missing publications: `test_publishing`
008_diff_schema                `rewrites`, for columns that get another type; a copy has the server's columns
009_matviews                   `materialized`
010_truncate                   `truncates`
011_generated                  `generated`, `virtual`; published ones: `tests/postgres/preflight/test_preflight`
012_collation                  `collations`, where the server has ICU
013_partition                  `partitions`, `in_schema`; attached and detached ones: `test_schema_changes`
014_binary                     the form of values on the wire, which `replicate` leaves at text
015 to 019, stream*            `streamed`; the servers of the tests stream from 64 kB on
020_messages                   `messages`
021 to 023, twophase*          `two_phase`, `test_prepared_in_one_run_and_decided_in_another`
024_add_drop_pub               `in_and_out`
025_rep_changes_for_schema     `in_schema`
026_stats                      `tests/observe/test_metrics`, `test_observe`
027_nosuperuser                rights: `test_publishing`, `test_replicate`; row security: `tests/postgres/preflight/test_preflight`
028_row_filter                 `filters`; another filter later: `test_schema_changes`
029_on_error                   `test_skip`; `test_replicate`, for tables that stop
030_origin                     `test_origin_filter`; a Delta table itself sends nothing back
031_column_list                `column_lists`
032_subscribe_use_index        `whole_rows`
033_run_as_table_owner         the role that writes on the subscriber: a Delta table has no owner
034_temporal                   `temporal`
035_conflicts                  rows that others write on the subscriber: one process writes to a destination
036_sequences                  `sequences`; PostgreSQL 19 sends them on demand, earlier ones do not
100_bugs                       `bugs`, `renamed`; streams that end at once: `tests/postgres/test_stream`
=============================  =======================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.pipeline.comparison import delta_rows, query_rows
from tests.pipeline.reading import read_properties, read_table
from tests.pipeline.replicating import replicate_meanwhile, replicate_once
from tests.pipeline.scenarios import COLLATIONS, IN_SCHEMA, OF_A_PUBLICATION, OF_ALL_TABLES, Scenario, statements
from tests.postgres.servers import Database, create_database
from tests.waiting import eventually

_OPTIONS = "-c TimeZone=UTC -c extra_float_digits=3 -c synchronize_seqscans=off"


def test_all_tables(db: Database, tmp_path: Path) -> None:
    scenarios = begin(db, OF_ALL_TABLES)
    with replicate_meanwhile(db, tmp_path) as caught_up:
        caught_up()
        assert differences(db, tmp_path, scenarios) == {}
        loaded = loads(tmp_path, scenarios)
        play(db, scenarios, "following")
        caught_up()
        # Tables that are new are found some seconds later.
        eventually(lambda: not differences(db, tmp_path, scenarios))
    play(db, scenarios, "between")
    replicate_once(db, tmp_path)
    assert differences(db, tmp_path, scenarios) == {}
    assert loads(tmp_path, scenarios) == loaded


@pytest.mark.parametrize(
    ("scenarios", "published"),
    [
        (OF_A_PUBLICATION, f"TABLE {', '.join(scenario.published for scenario in OF_A_PUBLICATION)}"),
        ((IN_SCHEMA,), "TABLES IN SCHEMA in_schema"),
    ],
    ids=["tables", "a schema"],
)
def test_a_users_publication(db: Database, tmp_path: Path, scenarios: Sequence[Scenario], published: str) -> None:
    begin(db, scenarios)
    db.execute(f"CREATE PUBLICATION users FOR {published} WITH (publish_via_partition_root = true)")
    replicate_once(db, tmp_path, publication="users")
    assert differences(db, tmp_path, scenarios) == {}
    loaded = loads(tmp_path, scenarios)
    for phase in "following", "between":
        play(db, scenarios, phase)
        replicate_once(db, tmp_path, publication="users")
        assert differences(db, tmp_path, scenarios) == {}
    assert loads(tmp_path, scenarios) == loaded


def test_prepared_in_one_run_and_decided_in_another(db18: Database, tmp_path: Path) -> None:
    db18.execute("CREATE TABLE t (a int PRIMARY KEY, b text)", "INSERT INTO t VALUES (1, 'one')")
    replicate_once(db18, tmp_path)
    for text in ("BEGIN", "INSERT INTO t VALUES (2, 'two')", "PREPARE TRANSACTION 'later_1'"):
        db18.execute(text)
    for text in ("BEGIN", "UPDATE t SET b = 'never'", "PREPARE TRANSACTION 'later_2'", "INSERT INTO t VALUES (3, 'x')"):
        db18.execute(text)
    replicate_once(db18, tmp_path)
    assert delta_rows(f"{tmp_path}/public/t") == {(1, "one"): 1, (3, "x"): 1}
    db18.execute("COMMIT PREPARED 'later_1'", "ROLLBACK PREPARED 'later_2'")
    replicate_once(db18, tmp_path)
    assert delta_rows(f"{tmp_path}/public/t") == {(1, "one"): 1, (2, "two"): 1, (3, "x"): 1}


@pytest.mark.postgres
@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_other_character_sets(tmp_path: Path, encoding: str) -> None:
    with create_database(18, encoding) as db:
        db.execute(
            'CREATE SCHEMA "schön"',
            "CREATE TYPE laune AS ENUM ('größer', 'kleiner')",
            'CREATE TABLE "schön"."tür" ("schlüssel" text PRIMARY KEY, "größe" text, l laune)',
            """INSERT INTO "schön"."tür" VALUES ('ä', 'ü', 'größer'), ('b', repeat('ö', 5000), NULL), ('c', '', NULL)""",
        )
        replicate_once(db, tmp_path)
        db.execute(
            """UPDATE "schön"."tür" SET "größe" = 'ß', l = 'kleiner' WHERE "schlüssel" = 'ä'""",
            """UPDATE "schön"."tür" SET "schlüssel" = 'é' WHERE "schlüssel" = 'b'""",
            """INSERT INTO "schön"."tür" VALUES ('Ä', 'grün', 'größer')""",
            """DELETE FROM "schön"."tür" WHERE "schlüssel" = 'c'""",
        )
        replicate_once(db, tmp_path)
        with psycopg.connect(db.dsn, options="-c client_encoding=UTF8") as connection:
            expected = query_rows(connection, sql.SQL('SELECT * FROM "schön"."tür"'))
    assert delta_rows(str(tmp_path / "schön" / "tür")) == expected
    assert ("Ä", "grün", "größer") in expected


def begin(db: Database, scenarios: Iterable[Scenario]) -> list[Scenario]:
    """Make the tables of the scenarios that the server can have; return those."""
    chosen = [
        candidate
        for candidate in scenarios
        if candidate.since <= db.major and (candidate is not COLLATIONS or has_icu(db))
    ]
    for scenario in chosen:
        db.execute(f"CREATE SCHEMA {scenario.name}")
    play(db, chosen, "setup")
    return chosen


def has_icu(db: Database) -> bool:
    """Return whether the server was built with ICU."""
    try:
        db.execute("CREATE COLLATION tried (provider = icu, locale = 'und')", "DROP COLLATION tried")
    except psycopg.errors.FeatureNotSupported:
        return False
    return True


def play(db: Database, scenarios: Iterable[Scenario], phase: str) -> None:
    """Run one phase of all scenarios, each in its schema, in an application's session."""
    with psycopg.connect(db.dsn, autocommit=True) as application:
        for scenario in scenarios:
            application.execute(f"SET search_path = {scenario.name}".encode())
            for statement in statements(getattr(scenario, phase)):
                application.execute(statement.encode())


def differences(db: Database, storage: Path, scenarios: Iterable[Scenario]) -> dict[str, str]:
    """Return how the copies differ from what the server has, by table."""
    mistakes = {}
    with psycopg.connect(db.dsn, options=_OPTIONS) as connection:
        for scenario in scenarios:
            for name in (*scenario.tables, *scenario.loaded_again):
                table = scenario.qualified(name)
                if connection.execute("SELECT to_regclass(%s)", (table,)).fetchone() == (None,):
                    # A later phase makes it.
                    continue
                folder = storage / table.replace(".", "/")
                if not (folder / "_delta_log").exists():
                    mistakes[table] = "the table is missing"
                    continue
                query = sql.SQL(scenario.query(name))
                expected, stored = query_rows(connection, query), delta_rows(str(folder))
                columns = [column.name for column in connection.execute(query).description or ()]
                if stored != expected or read_table(str(folder)).column_names != columns:
                    mistakes[table] = f"{[*expected - stored][:5]} are missing, {[*stored - expected][:5]} too many"
            for relation in scenario.absent:
                if (storage / scenario.name / relation).exists():
                    mistakes[scenario.qualified(relation)] = "it is replicated"
    return mistakes


def loads(storage: Path, scenarios: Iterable[Scenario]) -> dict[str, str]:
    """Return the names of the loads of the tables that no load may replace."""
    tables = [f"{scenario.name}/{table}" for scenario in scenarios for table in scenario.tables]
    return {table: read_properties(str(storage / table))["logicalrep.load"] for table in tables}
