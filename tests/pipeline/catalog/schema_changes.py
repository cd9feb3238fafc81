"""Schema changes: tables and a statement by its name."""

from __future__ import annotations

from logicalrep.pipeline.schema.table_settings import TableSettings
from tests.pipeline.companions import ALL_COMPANIONS

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

STATEMENTS = {
    "a rewrite that changes every value": "ALTER TABLE plain ALTER COLUMN v TYPE bigint USING v * 10",
    "a column with a volatile default": "ALTER TABLE plain ADD COLUMN chance float8 DEFAULT random()",
    "another type": "ALTER TABLE plain ALTER COLUMN id TYPE bigint",
    "a new table of the name": "DROP TABLE plain; CREATE TABLE plain (id int PRIMARY KEY); INSERT INTO plain VALUES (1)",
    "a truncate": "TRUNCATE plain",
    "a truncate and new rows": "TRUNCATE plain; INSERT INTO plain VALUES (1, 1, 'one')",
    "a truncate, and values written anew": (
        "TRUNCATE plain; INSERT INTO plain VALUES (1, 1, 'one'); ALTER TABLE plain ALTER COLUMN v TYPE bigint USING v * 10"
    ),
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
    "a new partition that is filled and truncated": (
        "CREATE TABLE day4 PARTITION OF root FOR VALUES FROM (4) TO (5); INSERT INTO root VALUES (1, 4, 'x'); "
        "TRUNCATE day4; INSERT INTO root VALUES (2, 4, 'y')"
    ),
    "a new partition, and a truncate of all": (
        "CREATE TABLE day4 PARTITION OF root FOR VALUES FROM (4) TO (5); INSERT INTO root VALUES (1, 4, 'x'); "
        "TRUNCATE root; INSERT INTO root VALUES (2, 4, 'y')"
    ),
    "a row that moves between partitions": "UPDATE root SET day = 2 WHERE id = 2",
    "a renamed table": "ALTER TABLE plain RENAME TO later; ALTER TABLE later RENAME TO plain",
}

TYPED = """
CREATE TYPE mood AS ENUM ('low', 'high');
CREATE DOMAIN feeling AS mood;
CREATE TYPE moods AS RANGE (subtype = mood);
CREATE TYPE pair AS (a int, b text);
CREATE TABLE typed (id int PRIMARY KEY, m mood, f feeling, r moods, p pair);
INSERT INTO typed SELECT i, 'low', 'low', '[low,low]', (i, 'b')::pair FROM generate_series(1, 50) AS i
"""

TYPES = {
    "a renamed label": ("ALTER TYPE mood RENAME VALUE 'low' TO 'lower'", 1),
    "a renamed label of a new column": (
        "ALTER TABLE typed ADD more mood2 DEFAULT 'one'; INSERT INTO typed (id) VALUES (99); "
        "ALTER TYPE mood2 RENAME VALUE 'one' TO 'eins'",
        1,
    ),
    "a new label": ("ALTER TYPE mood ADD VALUE 'middle' BEFORE 'high'", 0),
    "a new label, and rows of it": (
        "ALTER TYPE mood ADD VALUE 'middle' BEFORE 'high'; UPDATE typed SET m = 'middle' WHERE id % 2 = 0",
        0,
    ),
    "a new column of the type": (
        "ALTER TABLE typed ADD more mood2 DEFAULT 'one'; INSERT INTO typed (id) VALUES (99)",
        0,
    ),
    "a new attribute": ("ALTER TYPE pair ADD ATTRIBUTE c text", 1),
    "a dropped attribute": ("ALTER TYPE pair DROP ATTRIBUTE a", 1),
    "a renamed attribute": ("ALTER TYPE pair RENAME ATTRIBUTE a TO first", 0),
    "an attribute that comes, is written, and goes": (
        "ALTER TYPE pair ADD ATTRIBUTE c text; UPDATE typed SET p.a = 7 WHERE id < 9; ALTER TYPE pair DROP ATTRIBUTE c",
        1,
    ),
    "renamed types": ("ALTER TYPE mood RENAME TO spirit; ALTER TYPE pair RENAME TO couple", 0),
    "a domain with a constraint": ("ALTER DOMAIN feeling ADD CONSTRAINT low CHECK (value < 'high')", 0),
}

FOLLOWED = {
    "a column": "ALTER TABLE plain ADD COLUMN more text",
    "a column with a default": "ALTER TABLE plain ADD COLUMN more timestamp DEFAULT now()",
    "an array with a default": "ALTER TABLE plain ADD COLUMN more int[] DEFAULT '{1,2}'",
    "a text of separators with a default": "ALTER TABLE plain ADD COLUMN more text DEFAULT '{\"a, ;b\\}'",
    "a column with a default without rows": "ALTER TABLE plain ADD COLUMN more numeric(10,2) DEFAULT 1.5 NOT NULL",
    "a dropped column": "ALTER TABLE plain DROP COLUMN w",
    "a dropped column and another of its name": (
        "ALTER TABLE plain DROP COLUMN w; {rows}; ALTER TABLE plain ADD COLUMN w text"
    ),
    "a renamed column": "ALTER TABLE plain RENAME COLUMN w TO renamed",
    "a renamed key": "ALTER TABLE plain RENAME COLUMN id TO number",
    "several at once": (
        "ALTER TABLE plain ADD COLUMN a int DEFAULT 7; {rows}; ALTER TABLE plain ADD COLUMN b text; {rows}; "
        "ALTER TABLE plain DROP COLUMN w"
    ),
    "a longer number": "ALTER TABLE plain ALTER COLUMN n TYPE numeric(12,2)",
    "a number without a bound": (
        "UPDATE plain SET n = id / 8.0; ALTER TABLE plain ADD COLUMN small numeric(12,8) DEFAULT 0.00000001; {rows}; "
        "ALTER TABLE plain ALTER COLUMN n TYPE numeric, ALTER COLUMN small TYPE numeric"
    ),
    "a text without a bound": "ALTER TABLE plain ALTER COLUMN c TYPE text",
    "a column that may not be null": "ALTER TABLE plain ALTER COLUMN v SET NOT NULL",
    "another key": "ALTER TABLE plain DROP CONSTRAINT plain_pkey, ADD PRIMARY KEY (w)",
    "all columns as the replica identity": "ALTER TABLE plain REPLICA IDENTITY FULL",
    "a column of a partitioned table": "ALTER TABLE root ADD COLUMN more text DEFAULT 'old'",
    "a renamed column of a partitioned table": "ALTER TABLE root RENAME COLUMN v TO renamed",
}


TEXTS = TableSettings(unrepresentable="text", history=True)

SETTINGS = {"": TableSettings(), "all is kept": ALL_COMPANIONS, "texts beside": TEXTS}
