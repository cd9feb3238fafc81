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
