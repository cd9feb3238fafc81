"""A table that is renamed, or replaced by another one, under a query that reads it: no change is silently left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from logicalrep.postgres.slots.creating import create_slot
from logicalrep.spark import typed_table
from logicalrep.spark.peek.admission import HAS_ADMISSION_CONTROL
from logicalrep.transactions.table_identity import TableChangedError
from logicalrep.transactions.table_names import TableName
from tests.postgres.servers import Database
from tests.spark.failures import fails
from tests.spark.queries import Query
from tests.spark.streams import table_schema

pytestmark = pytest.mark.skipif(not HAS_ADMISSION_CONTROL, reason="Spark 4.0 and 4.1 call readers otherwise")

T = TableName("public", "t")
RENAMED = r"\[TABLE_RENAMED\] table public.t is now public.u: use that name"
REPLACED = r"table public.t with OID {now} is not the table of this stream, which has OID {then}"


@pytest.fixture
def db(db18: Database) -> Database:
    db18.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION p FOR ALL TABLES")
    create_slot(db18.connection, "s")
    return db18


@pytest.fixture(params=["auto", "peek", "walsender"])
def query(request: pytest.FixtureRequest, db: Database, tmp_path: Path) -> Any:
    """Return a query that has read a row, 1."""
    started_query = Query(db, tmp_path, table_schema(db.connection, T, ("p",)), mode=request.param, table="t")
    db.execute("INSERT INTO t VALUES (1)")
    assert ids(started_query) == [1]
    started_query.commit()
    yield started_query
    started_query.restart(reopen=False)


def ids(query: Query) -> list[int]:
    return [row["id"] for row in query.plan()]


def oid(db: Database, table: str) -> Any:
    return db.value(f"SELECT '{table}'::regclass::oid::bigint")


@pytest.mark.parametrize("restarts", [False, True])
def test_a_table_that_was_renamed(db: Database, query: Query, restarts: bool) -> None:
    """Under the new name all unread changes are read, also those from before."""
    db.execute("INSERT INTO t VALUES (2)", "ALTER TABLE t RENAME TO u", "INSERT INTO u VALUES (3)", "TRUNCATE u")
    if restarts:
        query.restart()
    for _ in range(2):
        with pytest.raises(TableChangedError, match=RENAMED):
            query.plan()
        query.restart()
    query.restart(table=TableName("public", "u"))
    read_ids = ids(query)
    while len(read_ids) < 3:
        query.commit()
        read_ids += ids(query)
    assert read_ids == [2, 3, None]
    query.commit()
    db.execute("CREATE SCHEMA a", "ALTER TABLE u SET SCHEMA a", "INSERT INTO a.u VALUES (4)")
    with pytest.raises(TableChangedError, match=r"table public.u is now a.u"):
        query.plan()


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("is_kept", [False, True])
def test_a_table_that_was_replaced(db: Database, query: Query, restarts: bool, is_kept: bool) -> None:
    then = oid(db, "t")
    db.execute(
        "ALTER TABLE t RENAME TO old" if is_kept else "DROP TABLE t",
        "CREATE TABLE t (id int PRIMARY KEY)",
        "INSERT INTO t VALUES (2)",
    )
    if restarts:
        query.restart()
    match = REPLACED.format(now=oid(db, "t"), then=then)
    for _ in range(2):
        with pytest.raises(TableChangedError, match=match):
            query.plan()
        query.restart()


def test_a_table_that_was_dropped(db: Database, query: Query) -> None:
    """Earlier changes can be read."""
    db.execute("INSERT INTO t VALUES (2)", "DROP TABLE t")
    assert ids(query) == [2]
    query.commit()


def test_an_offset_of_an_earlier_version(db: Database, query: Query) -> None:
    query.start = query.end = {name: value for name, value in query.start.items() if name != "relation_id"}
    query.restart()
    db.execute("INSERT INTO t VALUES (2)")
    assert ids(query) == [2]
    assert query.end["relation_id"] == oid(db, "t")


@pytest.mark.parametrize("statement", ["INSERT INTO t VALUES (1)", "TRUNCATE t"])
@pytest.mark.parametrize("options", [{}, {"rows_per_record_batch": "1", "binary": "true"}, {"mode": "walsender"}])
def test_a_table_of_that_name_from_before_the_query(
    db: Database, tmp_path: Path, options: dict[str, str], statement: str
) -> None:
    """Rows of the dropped table are not taken for rows of the current table."""
    then = oid(db, "t")
    db.execute(statement, "DROP TABLE t", "CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    schema = table_schema(db.connection, T, ("p",))
    query = Query(db, tmp_path, schema, **({"mode": "peek", "table": "t"} | options))
    with pytest.raises(TableChangedError, match=REPLACED.format(now=then, then=oid(db, "t"))):
        query.plan()
    query.restart(reopen=False)


def test_typed_rows_out_of_the_feed(spark: Any, db: Database) -> None:
    options = {"dsn": db.dsn, "slot": "s", "publication": "p"}
    read = spark.read.format("logicalrep").options(**options)
    then = oid(db, "t")
    db.execute("INSERT INTO t VALUES (1)", "ALTER TABLE t RENAME TO u", "INSERT INTO u VALUES (2)", "TRUNCATE u")
    old_table = typed_table("u", **options)
    assert [row.id for row in read.load().transform(old_table).orderBy("_commit_version").collect()] == [1, 2, None]
    db.execute("INSERT INTO u VALUES (3)", "ALTER TABLE u RENAME TO t", "INSERT INTO t VALUES (4)")
    with fails("TABLE_RENAMED", r"table public.u is now public.t"):
        read.load().transform(old_table).collect()
    db.execute("DROP TABLE t", "CREATE TABLE t (id int PRIMARY KEY)")
    with fails("TABLE_REPLACED", REPLACED.format(now=then, then=oid(db, "t"))):
        read.load().transform(typed_table("t", **options)).collect()
