"""Texts of a SQL_ASCII database that are not UTF-8: their table alone is left out, at the start and while it follows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import Warnings, replicate_for_warnings, replicate_meanwhile
from tests.postgres.servers import Database, create_database
from tests.waiting import eventually

pytestmark = pytest.mark.postgres

AT_START = {
    "the name of a column": [b'CREATE TABLE bad (id int PRIMARY KEY, "c\xe9" int)'],
    "a comment": [b"CREATE TABLE bad (id int PRIMARY KEY)", b"COMMENT ON COLUMN bad.id IS 'c\xe9'"],
    "a default of a column": [
        b"CREATE TABLE bad (id int PRIMARY KEY)",
        b"INSERT INTO bad VALUES (1)",
        b"ALTER TABLE bad ADD COLUMN v text DEFAULT 'v\xe9'",
    ],
    "a label of an enum type": [
        b"CREATE TYPE bad_label AS ENUM ('a', 'l\xe9')",
        b"CREATE TABLE bad (id int PRIMARY KEY, v bad_label[])",
    ],
    "the name of a type": [
        b"CREATE TYPE \"e\xe9\" AS ENUM ('a')",
        b'CREATE TABLE bad (id int PRIMARY KEY, v "e\xe9")',
    ],
    "the name of an attribute": [
        b'CREATE TYPE bad_attribute AS ("a\xe9" int)',
        b"CREATE TABLE bad (id int PRIMARY KEY, v bad_attribute)",
    ],
    "the name of a partition": [
        b"CREATE TABLE bad (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        b'CREATE TABLE "p\xe9" PARTITION OF bad FOR VALUES FROM (0) TO (10)',
        b"INSERT INTO bad VALUES (1)",
    ],
}
NAMES = [
    b'CREATE TABLE "n\xe9" (id int PRIMARY KEY)',
    b'CREATE SCHEMA "s\xe9"',
    b'CREATE TABLE "s\xe9".t (id int)',
    b'CREATE VIEW "v\xe9" AS SELECT 1 AS v',
    b'CREATE TABLE "k\xc3" (id int)',
    'CREATE TABLE größe (id int PRIMARY KEY, "ü🙂" text)'.encode(),
    "INSERT INTO größe VALUES (1, 'ß')".encode(),
]


def execute_bytes(db: Database, *statements: bytes) -> None:
    with db.writer() as writer:
        for statement in (b"SET client_encoding = SQL_ASCII", *statements):
            writer.execute(statement)


def test_an_unreadable_table_is_left_out(tmp_path: Path) -> None:
    with create_database(18, "SQL_ASCII") as db:
        db.execute("CREATE TABLE ok (id int PRIMARY KEY)", "INSERT INTO ok VALUES (1)")
        execute_bytes(db, *NAMES)
        for number, statements in enumerate(AT_START.values()):
            db.execute(f"CREATE SCHEMA s{number}")
            execute_bytes(db, f"SET search_path TO s{number}".encode(), *statements)
        warnings = replicate_for_warnings(db, tmp_path / "lake")
        left_out = [re.match(r"(.*) is not replicated, as (.*) is not UTF-8", text) for text in warnings]
        assert {match.groups() for match in left_out if match} == {
            *((f"s{number}.bad", what) for number, what in enumerate(AT_START)),
            ('public."n\\351"', "its name"),
            ('"s\\351".t', "its name"),
            ('public."v\\351"', "its name"),
            ('public."k\\303"', "its name"),
        }
        tables = ["public.ok", "public.größe"]
        assert find_differences(f"{db.dsn} client_encoding=utf8", str(tmp_path / "lake"), tables) == {}
        assert replicate_for_warnings(db, tmp_path / "one", tables=["public.ok"]) == []


def test_a_table_becomes_unreadable_while_it_follows(tmp_path: Path) -> None:
    renamed = [b'ALTER TABLE bad RENAME COLUMN v TO "v\xe9"', b'ALTER TABLE bad RENAME COLUMN "v\xe9" TO v']
    comment = [b"COMMENT ON TABLE bad IS 'c\xe9'", b"COMMENT ON TABLE bad IS 'c'"]
    label = [b"ALTER TYPE e ADD VALUE 'l\xe9'", b"ALTER TYPE e RENAME VALUE 'l\xe9' TO 'l'"]
    warnings = Warnings()
    with create_database(18, "SQL_ASCII") as db:
        db.execute(
            "CREATE TYPE e AS ENUM ('a')",
            "CREATE TABLE ok (id int PRIMARY KEY)",
            "CREATE TABLE bad (id int PRIMARY KEY, v e)",
            "INSERT INTO bad VALUES (0, 'a')",
        )
        with replicate_meanwhile(db, tmp_path / "lake", observer=warnings) as caught_up:
            caught_up()
            for number, (change, fix) in enumerate((renamed, comment, label), 1):
                warnings.texts.clear()
                execute_bytes(db, change)
                db.execute(f"INSERT INTO bad VALUES ({number}, 'a')", f"INSERT INTO ok VALUES ({number})")
                eventually(lambda: any("public.bad is not replicated" in text for text in warnings.texts))
                caught_up()
                assert find_differences(f"{db.dsn} client_encoding=utf8", str(tmp_path / "lake"), ["public.ok"]) == {}
                execute_bytes(db, fix)
                caught_up(tables=["public.bad"])
                assert (
                    find_differences(
                        f"{db.dsn} client_encoding=utf8", str(tmp_path / "lake"), ["public.ok", "public.bad"]
                    )
                    == {}
                )
