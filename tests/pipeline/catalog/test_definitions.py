"""The catalog's descriptions of tables, while other sessions alter them."""

from __future__ import annotations

import itertools
from contextlib import closing
from typing import Any

from logicalrep.pipeline.catalog.definitions import catalog_snapshot, query_catalog_tables, query_description
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.transactions.table_names import TableName
from tests.postgres.servers import Database

NAME = TableName("public", "t")


class AlteredMeanwhile:
    """A connection before each of whose queries another session alters the table."""

    def __init__(self, connection: Any, db: Database) -> None:
        self._connection, self._db = connection, db
        self._numbers = itertools.count(2)
        self.alterations = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, query: Any, *parameters: Any) -> Any:
        # The first statement begins the transaction, and the second takes the snapshot.
        number = next(self._numbers)
        self._db.execute(
            f"ALTER TABLE t ADD COLUMN c{number} mood_{number % 2} DEFAULT 'low', DROP COLUMN IF EXISTS c{number - 2}",
            f"ALTER TABLE t RENAME c{number} TO d{number}",
            f"CREATE TABLE t_{number} PARTITION OF t FOR VALUES IN ({number})",
            f"DROP TABLE t_{number - 1}",
        )
        self.alterations += 1
        return self._connection.execute(query, *parameters)


def test_a_description_is_of_one_moment_whatever_is_altered_between_its_queries(db18: Database) -> None:
    db18.execute(
        "CREATE TYPE mood_0 AS ENUM ('low')",
        "CREATE TYPE mood_1 AS ENUM ('low', 'high')",
        "CREATE TABLE t (id int PRIMARY KEY, c0 mood_0) PARTITION BY LIST (id)",
        "CREATE TABLE t_1 PARTITION OF t FOR VALUES IN (1)",
        "CREATE PUBLICATION p FOR TABLE t",
    )
    oid = int(str(db18.value("SELECT 't'::regclass::oid::bigint")))
    with closing(db18.writer()) as snapshot, closing(db18.writer()) as connection, catalog_snapshot(snapshot):
        altered: Any = AlteredMeanwhile(connection, db18)
        with catalog_snapshot(connection):
            scalar = connection.execute("SELECT pg_export_snapshot()").fetchone()
            assert scalar is not None
            snapshot.execute(f"SET TRANSACTION SNAPSHOT '{scalar[0]}'".encode())
            settings = TableSettings()
            seen = query_catalog_tables(altered, [oid], ("p",), lambda name: settings)
            assert altered.alterations > 8
            assert seen == query_catalog_tables(snapshot, [oid], ("p",), lambda name: settings)
    with closing(db18.writer()) as connection:
        altered._connection = connection
        table = query_description(altered, NAME, ("p",), settings)
    assert table is not None
    columns = [column.name for column in table.relation.columns]
    assert len(columns) == len(set(columns)) == len(table.attnums)
    assert {number for number, *_ in table.evidence.labelled} == set(table.attnums) - {1}


def test_the_catalog_has_the_text_of_old_rows_in_new_columns(db: Database) -> None:
    """Values are stored in an array, whose text depends on the type: the delimiter of boxes is not a comma."""
    defaults = {
        "box": "(2,2),(1,1)",
        "box[]": "{(2,2),(1,1);(4,4),(3,3)}",
        "int[]": "{{1,NULL},{3,4}}",
        "text": '{"a, ;b\\}',
        "text[]": '{"a,b",NULL,""}',
        "varchar(9)": "",
        "jsonb": '{"a": [1, "NULL"]}',
        "point": "(1,2)",
    }
    db.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)", "CREATE PUBLICATION p FOR TABLE t")
    for number, (type_name, text) in enumerate(defaults.items()):
        literal = text.replace("'", "''")
        db.execute(f"ALTER TABLE t ADD COLUMN c{number} {type_name} DEFAULT '{literal}'")
    oid = int(str(db.value("SELECT 't'::regclass::oid::bigint")))
    table = query_catalog_tables(db.connection, [oid], ("p",), lambda name: TableSettings())[oid]
    columns = ", ".join(f"c{number}::text" for number in range(len(defaults)))
    (texts,) = db.rows(f"SELECT {columns} FROM t")
    assert table.missing == {f"c{number}": {text} for number, text in enumerate(texts)}
