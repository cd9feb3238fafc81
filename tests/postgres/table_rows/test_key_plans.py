"""The keys of a part are looked up by the index of the key, whatever its type."""

from __future__ import annotations

import pytest
from psycopg import sql

from logicalrep.postgres.table_rows.conditions import ColumnComparison
from logicalrep.postgres.table_rows.keys import KeyCondition, query_key_columns
from logicalrep.transactions.table_names import TableName
from tests.postgres.servers import Database

VALUES = {
    "varchar(10)": "7",
    "text": "7",
    "char(5)": "7    ",
    "numeric(10,2)": "7.00",
    "timestamptz(3)": "2026-01-01 00:00:00+00",
    "bigint": "7",
    "name": "7",
    "date": "2026-01-01",
    "positive": "7",
}


@pytest.mark.parametrize("type_name", VALUES)
def test_rows_of_a_condition_are_found_by_the_index(db18: Database, type_name: str) -> None:
    db18.execute(
        "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
        f"CREATE TABLE t (k {type_name} PRIMARY KEY)",
        f"INSERT INTO t VALUES ('{VALUES[type_name]}')",
        "ANALYZE t",
    )
    with db18.settings.connect() as connection:
        connection.execute("SET enable_seqscan = off")
        oid = connection.execute("SELECT 'public.t'::regclass::oid::bigint").fetchone()
        assert oid is not None
        columns = query_key_columns(connection, oid[0], ["k"])
        value = VALUES[type_name]
        condition = KeyCondition(ColumnComparison("k", "=", value), TableName("public", "t"), False, columns, None)
        condition.check(connection)
        query = sql.SQL("EXPLAIN SELECT k FROM public.t WHERE {}").format(condition.rendered)
        plan = "\n".join(line for (line,) in connection.execute(query).fetchall())
        assert "Index Cond" in plan, plan
        assert condition.query_absent(connection, {"k": [value]}) == []
