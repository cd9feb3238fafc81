"""A stream of everything that a database can do equals test_decoding's output, and makes the same tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.rows import run
from logicalrep.postgres.slots.creating import create_slot
from tests.postgres.servers import Database
from tests.spark.streams import Stream
from tests.spark.workload import as_told, every_type, feed_rows, prepare, replayed, tables, told, truth

MORE_TABLES = """
CREATE TABLE nothing (id int PRIMARY KEY, v text);
ALTER TABLE nothing REPLICA IDENTITY NOTHING;
CREATE TABLE parts (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (100);
CREATE TABLE high PARTITION OF parts FOR VALUES FROM (100) TO (1000);
CREATE TABLE altered (id int PRIMARY KEY, a text, b int, big text);
ALTER TABLE altered ALTER big SET STORAGE EXTERNAL;
"""


def with_every_type(db: Database) -> None:
    types, rows = every_type(db)
    columns = ", ".join(f"{name} {type_}" for name, type_ in types.items())
    db.execute(f"CREATE TABLE every (id serial PRIMARY KEY, {columns})")
    for row in rows:
        db.connection.execute(f"INSERT INTO every VALUES (DEFAULT, {', '.join(['%s'] * len(row))})", row)
    first = ", ".join(f"{name} = (SELECT {name} FROM every WHERE id = 1)" for name in types)
    db.execute(f"UPDATE every SET {first} WHERE id > 3", "DELETE FROM every WHERE id = 2")


def with_altered_tables(db: Database) -> None:
    """Alter tables alone, in the middle of streamed transactions, and in rolled-back parts of these."""
    db.execute(
        "INSERT INTO altered VALUES (1, 'x', 1, repeat('0123456789', 300))",
        "BEGIN",
        "INSERT INTO altered SELECT i, repeat('x', 100), i FROM generate_series(100, 800) AS i",
        "ALTER TABLE altered ADD c numeric(8, 2) DEFAULT 1.5",
        "UPDATE altered SET c = b WHERE id < 300",
        "SAVEPOINT a",
        "ALTER TABLE altered ADD gone int",
        "UPDATE altered SET gone = 1",
        "ROLLBACK TO a",
        "INSERT INTO altered VALUES (2, 'after', 2, NULL, 3)",
        "COMMIT",
        'ALTER TABLE altered RENAME a TO "A ""b"',
        "UPDATE altered SET b = b + 1 WHERE id < 200",
        "ALTER TABLE altered DROP b",
        "INSERT INTO altered VALUES (3, 'after', repeat('abcdefghij', 300), 4)",
        "ALTER TABLE altered ALTER id TYPE bigint",
        "UPDATE altered SET c = 0 WHERE id < 10",
        "ALTER TABLE altered REPLICA IDENTITY FULL",
        'UPDATE altered SET "A ""b" = NULL WHERE id < 10',
        "DELETE FROM altered WHERE id < 120",
        "ALTER TABLE altered REPLICA IDENTITY DEFAULT",
        "ALTER TABLE altered RENAME TO renamed",
        "UPDATE renamed SET c = 7 WHERE id < 130",
        "TRUNCATE renamed",
        "INSERT INTO renamed SELECT i, 'last' FROM generate_series(1, 20) AS i",
    )


def with_parts_and_prepared(db: Database) -> None:
    db.execute(
        "INSERT INTO nothing VALUES (1, 'a'), (2, NULL)",
        "INSERT INTO parts SELECT i, 'x' FROM generate_series(90, 110) AS i",
        "UPDATE parts SET id = id + 20 WHERE id BETWEEN 95 AND 99",
        "DELETE FROM parts WHERE id = 104",
    )
    with db.writer() as other:
        for end in ("COMMIT", "ROLLBACK"):
            other.execute("BEGIN")
            other.execute("INSERT INTO plain SELECT -i, repeat('y', 100) FROM generate_series(1, 700) AS i")
            other.execute("SAVEPOINT a")
            other.execute("UPDATE plain SET v = 'gone' WHERE id < -650")
            other.execute("ROLLBACK TO a")
            other.execute("UPDATE plain SET v = NULL WHERE id < -690")
            db.execute("INSERT INTO bare VALUES ('meanwhile')")
            other.execute("PREPARE TRANSACTION 'large'")
            db.execute("INSERT INTO bare VALUES ('between')", f"{end} PREPARED 'large'")
            db.execute("DELETE FROM plain WHERE id < 0")
    db.execute("TRUNCATE nothing, low, bare", "INSERT INTO nothing VALUES (3, 'b')")


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"mode": "peek"}, marks=pytest.mark.thorough),
        pytest.param({"mode": "walsender"}, marks=pytest.mark.thorough),
        {"mode": "walsender", "two_phase": "true"},
    ],
)
def test_all_that_a_database_can_do(spark: Any, db: Database, tmp_path: Path, options: dict[str, str]) -> None:
    prepare(db, "twin", more=MORE_TABLES)
    create_slot(db.connection, "spark", two_phase="two_phase" in options)
    has_test_decoding = db.major == 15  # Debian's server brings it, the others do not.
    if has_test_decoding:
        db.execute("SELECT pg_create_logical_replication_slot('other', 'test_decoding')")
    stream = Stream(spark, db, tmp_path, **options)
    run(db.connection, 1)
    with_every_type(db)
    stream.run()
    with_altered_tables(db)
    run(db.connection, 2, 15)
    stream.run()
    with_parts_and_prepared(db)
    stream.run()
    rows = feed_rows(stream.frame())
    assert len({(row["commit_lsn"], row["ordinal"]) for row in rows}) == len(rows) > 5000
    assert rows == truth(db, "twin")
    # The names of the columns change until the table has its last name.
    last = max(number for number, row in enumerate(rows) if row["op"] == "truncate" and row["table"] == "renamed")
    altered = ("altered", "renamed")
    assert replayed([row for at, row in enumerate(rows) if at > last or row["table"] not in altered]) == tables(db)
    if has_test_decoding:
        for row, expected in zip(rows, told(db, "other"), strict=True):
            assert as_told(row) == expected
