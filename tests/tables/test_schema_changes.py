"""What the stream does not say: after each statement nothing else happens, and the copy is right all the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.postgres.servers import Database
from tests.tables.comparison import delta_rows, differences
from tests.tables.test_replicate import once

TABLES = """
CREATE TABLE plain (id int PRIMARY KEY, v bigint, w text);
INSERT INTO plain SELECT i, i, 'w' || i FROM generate_series(1, 50) AS i;
CREATE TABLE root (id int, day int, v text, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE day1 PARTITION OF root FOR VALUES FROM (1) TO (2);
CREATE TABLE day2 PARTITION OF root FOR VALUES FROM (2) TO (3);
CREATE TABLE day3 (v text, day int NOT NULL, id int NOT NULL, PRIMARY KEY (id, day));
INSERT INTO root SELECT i, 1 + i % 2, 'v' FROM generate_series(1, 40) AS i;
INSERT INTO day3 SELECT 'three', 3, i FROM generate_series(1, 7) AS i;
ALTER TABLE day3 REPLICA IDENTITY FULL;
"""
COPIES = ["public.plain", "public.root"]

STATEMENTS = {
    "a rewrite that changes every value": "ALTER TABLE plain ALTER COLUMN v TYPE bigint USING v * 10",
    "a column with a default": "ALTER TABLE plain ADD COLUMN more text DEFAULT 'old rows too'",
    "a column with a volatile default": "ALTER TABLE plain ADD COLUMN chance float8 DEFAULT random()",
    "a dropped column": "ALTER TABLE plain DROP COLUMN w",
    "a renamed column": "ALTER TABLE plain RENAME COLUMN w TO renamed",
    "another type": "ALTER TABLE plain ALTER COLUMN id TYPE bigint",
    "another key": "ALTER TABLE plain DROP CONSTRAINT plain_pkey, ADD PRIMARY KEY (w)",
    "a new table of the name": "DROP TABLE plain; CREATE TABLE plain (id int PRIMARY KEY); INSERT INTO plain VALUES (1)",
    "a truncate": "TRUNCATE plain",
    "a truncate and new rows": "TRUNCATE plain; INSERT INTO plain VALUES (1, 1, 'one')",
    "a vacuum that writes it anew": "VACUUM FULL plain",
    "a truncated partition": "TRUNCATE day1",
    "a dropped partition": "DROP TABLE day1",
    "a detached partition": "ALTER TABLE root DETACH PARTITION day1",
    "an attached partition with rows": "ALTER TABLE root ATTACH PARTITION day3 FOR VALUES FROM (3) TO (4)",
    "a new partition": "CREATE TABLE day4 PARTITION OF root FOR VALUES FROM (4) TO (5); INSERT INTO root VALUES (1, 4, 'x')",
    "a partition made, filled and attached at once": (
        "BEGIN; CREATE TABLE day4 (LIKE root INCLUDING ALL); INSERT INTO day4 VALUES (1, 4, 'x'); "
        "ALTER TABLE root ATTACH PARTITION day4 FOR VALUES FROM (4) TO (5); COMMIT"
    ),
    "a row that moves between partitions": "UPDATE root SET day = 2 WHERE id = 2",
    "a renamed table": "ALTER TABLE plain RENAME TO later; ALTER TABLE later RENAME TO plain",
}


OFTEN = {
    "a rewrite that changes every value",
    "a column with a default",
    "a new table of the name",
    "a truncate and new rows",
    "a truncated partition",
    "a dropped partition",
    "an attached partition with rows",
    "a new partition",
}
"""Those that `make test` has; `make test-all` has all."""


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(statement, id=name, marks=() if name in OFTEN else pytest.mark.thorough)
        for name, statement in STATEMENTS.items()
    ],
)
def test_nothing_else_happens_afterwards(db18: Database, tmp_path: Path, statement: str) -> None:
    for each in TABLES.strip().split(";\n"):
        db18.execute(each.rstrip(";\n"))
    # The tables that become partitions are not published by themselves.
    db18.execute("CREATE PUBLICATION p FOR TABLE plain, root WITH (publish_via_partition_root = true)")
    once(db18, tmp_path, publication="p")
    assert differences(db18.dsn, str(tmp_path), COPIES) == {}
    for each in statement.split("; "):
        db18.execute(each)
    if "DROP TABLE plain" in statement:
        db18.execute("ALTER PUBLICATION p ADD TABLE plain")
    once(db18, tmp_path, publication="p")
    assert differences(db18.dsn, str(tmp_path), COPIES) == {}


LATER = {
    "another row filter": "ALTER PUBLICATION p SET TABLE plain WHERE (v > 40), root",
    "fewer columns": "ALTER PUBLICATION p SET TABLE plain (id, v), root",
    "out of the publication and in again": (
        "ALTER PUBLICATION p DROP TABLE plain; UPDATE plain SET v = v + 1; ALTER PUBLICATION p ADD TABLE plain"
    ),
    "with its schema, after a while out of it": (
        "ALTER PUBLICATION p DROP TABLE plain; UPDATE plain SET v = v + 1; "
        "ALTER PUBLICATION p ADD TABLES IN SCHEMA public"
    ),
}


@pytest.mark.parametrize("statements", LATER.values(), ids=LATER)
def test_another_publication_of_a_table_loads_it_again(db18: Database, tmp_path: Path, statements: str) -> None:
    for each in TABLES.strip().split(";\n"):
        db18.execute(each.rstrip(";\n"))
    db18.execute("CREATE PUBLICATION p FOR TABLE plain, root WITH (publish_via_partition_root = true)")
    once(db18, tmp_path, publication="p")
    for each in statements.split("; "):
        db18.execute(each)
    once(db18, tmp_path, publication="p")
    columns = "id, v" if "(id, v)" in statements else "*"
    expected = Counter(db18.rows(f"SELECT {columns} FROM plain WHERE v > {40 if 'WHERE' in statements else 0}"))
    assert delta_rows(f"{tmp_path}/public/plain") == expected
