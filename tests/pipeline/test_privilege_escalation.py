"""Nobody's code runs with the rights of the role that loads, follows, verifies and checks.

The owner of the tables is not a superuser, the reader is one. Each hostile function calls `spy`, which appends to a file
of the server if its caller is another role than the owner, as loads and comparisons are in transactions that write
no table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

from logicalrep.pipeline.catalog.partitions import query_created_partitions, query_empty_tables
from logicalrep.pipeline.state.state import Identity
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.preflight.checks import check
from logicalrep.postgres.preflight.findings import Needs
from logicalrep.postgres.publications import query_published_relation
from logicalrep.postgres.snapshots import SnapshotError
from logicalrep.postgres.table_rows.parts import query_parts
from logicalrep.postgres.table_rows.reading import NotReadableError, copy_rows
from logicalrep.transactions.table_names import TableName
from tests.pipeline.replicating import replicate_once
from tests.pipeline.verify.verdicts import raise_values, rewrite, verdict_texts, verify_tables
from tests.postgres.servers import Database

pytestmark = pytest.mark.postgres

FUNCTIONS = """
CREATE FUNCTION spy(what text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF current_user <> '{owner}' THEN
        EXECUTE pg_catalog.format('COPY (SELECT current_user || '' ran '' || %L) TO PROGRAM %L', what, 'cat >> {file}');
    END IF;
    RETURN true;
END $$;
CREATE FUNCTION evil(what text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM public.spy(what); RETURN 1; END $$;
CREATE FUNCTION evil_check(what text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN PERFORM public.spy(what); RETURN true; END $$;
CREATE FUNCTION inlined() RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT public.evil(''an inlined function'')';
CREATE FUNCTION set_config(text, text, boolean) RETURNS text LANGUAGE sql AS 'SELECT public.spy(''set_config'')::text';
CREATE FUNCTION concat(VARIADIC text[]) RETURNS text LANGUAGE sql AS 'SELECT public.spy(''concat'')::text';
CREATE FUNCTION format(text, text, text) RETURNS text LANGUAGE sql AS 'SELECT public.spy(''format'')::text';
CREATE FUNCTION to_regclass(text) RETURNS regclass LANGUAGE sql AS 'SELECT public.spy(''to_regclass'')::text::regclass';
CREATE FUNCTION same(int, int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN RETURN public.spy('an operator') AND $1 OPERATOR(pg_catalog.=) $2; END $$;
CREATE OPERATOR = (LEFTARG = int, RIGHTARG = int, FUNCTION = same);
CREATE DOMAIN small AS int CHECK (evil_check('a check of a domain'));
CREATE TYPE pair AS (a small, b text);
CREATE FUNCTION pair_text(pair) RETURNS text LANGUAGE plpgsql AS $$
BEGIN PERFORM public.spy('a cast of a composite type'); RETURN 'x'; END $$;
CREATE CAST (pair AS text) WITH FUNCTION pair_text(pair) AS IMPLICIT;
CREATE TYPE mood AS ENUM ('low', 'high');
CREATE FUNCTION mood_of(text) RETURNS mood LANGUAGE plpgsql AS $$
BEGIN PERFORM public.spy('a cast to an enum'); RETURN 'low'; END $$;
CREATE CAST (text AS mood) WITH FUNCTION mood_of(text) AS IMPLICIT;
CREATE FUNCTION mood_text(mood) RETURNS text LANGUAGE plpgsql AS $$
BEGIN PERFORM public.spy('a cast of an enum'); RETURN 'low'; END $$;
CREATE CAST (mood AS text) WITH FUNCTION mood_text(mood) AS IMPLICIT;
CREATE TYPE spread AS RANGE (subtype = small);
"""
TABLES = """
CREATE TABLE by_domain (k small PRIMARY KEY, v int);
CREATE TABLE by_pair (k pair PRIMARY KEY, v int);
CREATE TABLE by_mood (k mood PRIMARY KEY, v int);
CREATE TABLE by_spread (k spread PRIMARY KEY, v int);
CREATE TABLE by_array (k mood[] PRIMARY KEY, v int);
CREATE TABLE by_default (k int PRIMARY KEY, v int DEFAULT evil('a default'));
CREATE TABLE by_policy (k int PRIMARY KEY, v int);
ALTER TABLE by_policy ENABLE ROW LEVEL SECURITY;
ALTER TABLE by_policy FORCE ROW LEVEL SECURITY;
CREATE POLICY all_of_them ON by_policy USING (evil_check('a policy'));
CREATE TABLE by_generated (k int PRIMARY KEY, v int, g int GENERATED ALWAYS AS (v + evil('a generated column')) STORED);
CREATE TABLE by_trigger (k int PRIMARY KEY, v int);
CREATE TABLE by_child (k int PRIMARY KEY, v int CHECK (v <> 1 + evil('a check'))) PARTITION BY RANGE (k);
CREATE TABLE by_child_1 PARTITION OF by_child FOR VALUES FROM (0) TO (100);
CREATE TABLE by_index (k int PRIMARY KEY, v int);
CREATE INDEX ON by_index ((v + evil('an index')));
CREATE TABLE by_predicate (k int PRIMARY KEY, v int);
CREATE INDEX ON by_predicate (v) WHERE v > inlined();
CREATE TABLE by_statistics (k int PRIMARY KEY, v int);
CREATE STATISTICS seen ON (v + evil('statistics')), k FROM by_statistics;
CREATE TABLE by_part (k int, v int) PARTITION BY LIST ((k * 0 + evil('a partition key')));
CREATE TABLE by_part_1 PARTITION OF by_part FOR VALUES IN (1);
ALTER TABLE by_part REPLICA IDENTITY FULL;
ALTER TABLE by_part_1 REPLICA IDENTITY FULL
"""
ALTERED = """
CREATE TABLE attached (k int NOT NULL, v int, CONSTRAINT by_child_v_check CHECK (v <> 1 + evil('a check')));
CREATE INDEX ON attached ((v + evil('an index of a partition')));
INSERT INTO attached VALUES (150, 150);
ALTER TABLE by_child ATTACH PARTITION attached FOR VALUES FROM (100) TO (200);
ALTER TABLE by_default ADD COLUMN w int DEFAULT evil('a new default'), ADD COLUMN s small DEFAULT 5
"""
UNSAFE = {"by_index", "by_predicate", "by_statistics", "by_child"}
"""The tables whose rows a query by key would not read safely."""


class Hostile:
    """A database of an owner whose functions tell whether they ran with the rights of another role."""

    def __init__(self, db: Database) -> None:
        self.db, self.role = db, f"owner_of_{db.name}"
        self.file = db.server.folder / f"ran_{db.name}"
        db.execute(
            f"CREATE ROLE {self.role} LOGIN",
            f"GRANT ALL ON SCHEMA public TO {self.role}",
            f"GRANT ALL ON DATABASE {db.name} TO {self.role}",
            # Another owner of the database might set this.
            f"ALTER DATABASE {db.name} SET search_path TO public, pg_catalog",
            f"ALTER DATABASE {db.name} SET row_security TO on",
        )
        self.execute(FUNCTIONS.format(owner=self.role, file=self.file))

    def execute(self, statements: str) -> None:
        """Run statements as the owner, in a session of its own."""
        with psycopg.connect(self.db.server.dsn_as(self.role, self.db.name), autocommit=True) as connection:
            connection.execute("SET search_path TO public")
            connection.execute(statements)

    @property
    def ran(self) -> list[str]:
        """What ran with the rights of another role."""
        return self.file.read_text().splitlines() if self.file.exists() else []


@pytest.fixture
def hostile(db: Database) -> Iterator[Hostile]:
    role = Hostile(db)
    yield role
    role.file.unlink(missing_ok=True)
    db.execute(f"DROP OWNED BY {role.role} CASCADE", f"DROP ROLE {role.role}")


VALUES = {
    "by_pair": "ROW({}, 'x')::pair", "by_mood": "(enum_range(NULL::mood))[{}]", "by_array": "ARRAY[{}::text::mood]",
    "by_spread": "spread({}, NULL)",
}  # fmt: skip
_NAMES = """
SELECT relname FROM pg_class WHERE relname ~ '^by_' AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY 1
"""


def fill(hostile: Hostile, number: int, names: list[str]) -> None:
    """Insert a row into each table."""
    for name in names:
        value = "(enum_range(NULL::mood))[{0}:{0}]" if name == "by_array" else VALUES.get(name, "{}")
        hostile.execute(f"INSERT INTO {name} (k, v) VALUES ({value.format(number)}, {number * 10})")


def test_nobodys_code_runs_with_the_readers_rights(hostile: Hostile, tmp_path: Path) -> None:
    db = hostile.db
    hostile.execute(TABLES)
    names = [str(name) for (name,) in db.rows(_NAMES)]
    fill(hostile, 1, names)
    replicate_once(db, tmp_path)
    fill(hostile, 2, names)
    hostile.execute(ALTERED)
    replicate_once(db, tmp_path)
    assert set(verdict_texts(verify_tables(db, tmp_path)).values()) == {"equal"}
    for name in names:
        rewrite(tmp_path, name, lambda rows: raise_values(rows, pa.array([True] * rows.num_rows)))
    verdicts = verify_tables(db, tmp_path, patience=5)
    undecided = {name: str(verdict.reason) for name, verdict in verdicts.items() if verdict.result != "different"}
    assert undecided.keys() == UNSAFE
    assert all("TABLE_UNSAFE" in reason for reason in undecided.values()), undecided
    identity = Identity.read(Storage(str(tmp_path)))
    assert identity is not None
    with closing(db.settings.connect()) as connection:
        check(connection, Needs(slot="absent", publications=(identity.publication,), create_slot=True, snapshot=True))
    assert hostile.ran == []
    db.execute("SELECT public.evil('this test')")
    assert hostile.ran == ["postgres ran this test"]


def swap(hostile: Hostile, name: str) -> None:
    """Give a table's name to a view, as another session may at any time."""
    hostile.execute(
        f"ALTER TABLE {name} RENAME TO hidden; CREATE VIEW {name} AS SELECT k, v, evil('a view') AS w FROM hidden"
    )


@pytest.mark.parametrize("filtered", ["", " WHERE (v > 0)"])
@pytest.mark.parametrize("has_setting", [True, False])
def test_a_view_that_takes_a_tables_name_is_not_read(
    hostile: Hostile, monkeypatch: pytest.MonkeyPatch, filtered: str, has_setting: bool
) -> None:
    """The lock tells it too, as servers of before August 2024 have no setting against it."""
    hostile.execute("CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1)")
    hostile.execute(f"CREATE PUBLICATION p FOR TABLE t{filtered}")
    name = TableName("public", "t")
    with closing(hostile.db.settings.connect()) as connection:
        if not has_setting:
            connection.execute("SET restrict_nonsystem_relation_kind = ''")
        relation = query_published_relation(connection, name, ("p",))
        assert relation is not None
        (rows,) = query_parts(connection, relation, ("p",))
        swap(hostile, "t")
        with pytest.raises(SnapshotError, match="another table"), connection.transaction():
            list(copy_rows(connection, rows, connection))
        if has_setting:
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="restricted"):
                connection.execute("SELECT w FROM public.t")
    assert hostile.ran == []


def test_a_type_that_takes_a_columns_place_makes_a_filter_stale(hostile: Hostile) -> None:
    hostile.execute("CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1)")
    hostile.execute("CREATE PUBLICATION p FOR TABLE t WHERE (v > 0)")
    with closing(hostile.db.settings.connect()) as connection:
        relation = query_published_relation(connection, TableName("public", "t"), ("p",))
        assert relation is not None
        (rows,) = query_parts(connection, relation, ("p",))
        hostile.execute(
            "CREATE FUNCTION mood_number(mood) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT public.evil(''a cast'')';"
            "CREATE CAST (mood AS int) WITH FUNCTION mood_number(mood) AS IMPLICIT;"
            "ALTER PUBLICATION p SET TABLE t; ALTER TABLE t ALTER v TYPE mood USING 'low'"
        )
        with pytest.raises(SnapshotError, match="altered"), connection.transaction():
            list(copy_rows(connection, rows, connection))
    assert hostile.ran == []


def test_a_policy_makes_reading_fail_and_does_not_run(hostile: Hostile, tmp_path: Path) -> None:
    db, reader = hostile.db, f"reader_of_{hostile.db.name}"
    hostile.execute(TABLES)
    db.execute(
        f"CREATE ROLE {reader} LOGIN REPLICATION IN ROLE pg_read_all_data",
        f"GRANT pg_execute_server_program TO {reader}",
    )
    hostile.execute("CREATE PUBLICATION p FOR TABLE by_policy; INSERT INTO by_policy VALUES (1, 1)")
    name = TableName("public", "by_policy")
    # Neither the database's settings nor the caller's settings apply.
    settings = ConnectionSettings(db.dsn, user=reader, options="-c row_security=on -c search_path=public")
    with closing(settings.connect()) as connection:
        assert connection.execute("SHOW search_path").fetchone() == ("",)
        relation = query_published_relation(connection, name, ("p",))
        assert relation is not None
        for rows in (
            *query_parts(connection, relation, ("p",)),
            *query_parts(connection, relation, ("p",), more=["1"]),
        ):
            with pytest.raises(NotReadableError, match="row-level security"), connection.transaction():
                list(copy_rows(connection, rows, connection))
        child = int(str(db.value("SELECT 'by_child_1'::regclass::oid")))
        assert (query_created_partitions(connection, [child]), query_empty_tables(connection, [child])) == (
            {child},
            {child},
        )
    assert hostile.ran == []
    db.execute(f"DROP OWNED BY {reader}", f"DROP ROLE {reader}")
