"""An application that changes rows and tables at random."""

from __future__ import annotations

import random
import threading
from contextlib import suppress

import psycopg

from tests.postgres.servers import Database

TABLES = ("t", "u", "parts")

SETUP = """
CREATE TYPE mood AS ENUM ('m0');
CREATE TABLE t (id int PRIMARY KEY, a int, s text, m mood DEFAULT 'm0');
CREATE TABLE u (id int, k int NOT NULL UNIQUE, s text);
ALTER TABLE u REPLICA IDENTITY USING INDEX u_k_key;
CREATE TABLE parts (id int PRIMARY KEY, a int, s text) PARTITION BY RANGE (id);
CREATE TABLE low PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (500);
CREATE TABLE high (s text, a int, id int PRIMARY KEY);
ALTER TABLE parts ATTACH PARTITION high FOR VALUES FROM (500) TO (MAXVALUE)
"""

COLUMNS = """
SELECT attname FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attname ~ '^[cr][0-9]+$'
"""


class Application:
    """An application that changes rows and tables at random."""

    def __init__(self, connection: psycopg.Connection, seed: int) -> None:
        self._connection = connection
        self._chance = random.Random(seed)
        self._columns = {
            table: [name for (name,) in connection.execute(COLUMNS, (table,)).fetchall()] for table in TABLES
        }
        self._number = seed * 10_000

    def act(self) -> None:
        """Run a transaction: changes of rows, or now and then a schema change."""
        table = self._chance.choice(TABLES)
        if self._chance.random() < 0.2:
            self._connection.execute(self._alter(table).encode())
            return
        with self._connection.transaction():
            for _ in range(self._chance.randrange(1, 5)):
                self._connection.execute(self._change(table).encode())

    def _change(self, table: str) -> str:
        key = "k" if table == "u" else "id"
        self._number += 1
        row = self._chance.randrange(1000)
        kind = self._chance.randrange(6)
        if kind < 3:
            more = f", {key}" if key == "k" else ""
            value = f", {row}" if key == "k" else ""
            return f"INSERT INTO {table} (id, s{more}) VALUES ({row}, 's{self._number}'{value}) ON CONFLICT DO NOTHING"
        if kind == 3:
            return f"UPDATE {table} SET s = repeat('{self._number}', 2) WHERE {key} % 3 = {row % 3}"
        if kind == 4 and table == "t" and row % 2:
            return "UPDATE t SET m = (SELECT max(enumlabel)::text::mood FROM pg_enum) WHERE id % 10 = 3"
        if kind == 4 and self._columns[table]:
            return f"UPDATE {table} SET {self._chance.choice(self._columns[table])} = {row} WHERE {key} < {row}"
        return f"DELETE FROM {table} WHERE {key} % 50 = {row % 50}"

    def _alter(self, table: str) -> str:
        columns = self._columns[table]
        self._number += 1
        kind = self._chance.randrange(7)
        if kind >= 5:
            return self._alter_types()
        if kind < 2 or not columns:
            columns.append(f"c{self._number}")
            default = self._chance.choice(["", " DEFAULT 7", f" DEFAULT {self._number}"])
            return f"ALTER TABLE {table} ADD COLUMN {columns[-1]} int{default}"
        column = columns.pop(self._chance.randrange(len(columns)))
        if kind == 2:
            return f"ALTER TABLE {table} DROP COLUMN {column}"
        if kind == 3:
            # A name of before is used again at times.
            columns.append(
                f"c{self._chance.randrange(self._number)}" if self._chance.random() < 0.3 else f"r{self._number}"
            )
            if len(set(columns)) < len(columns):
                columns[-1] = f"r{self._number}"
            return f"ALTER TABLE {table} RENAME COLUMN {column} TO {columns[-1]}"
        columns.append(column)
        return f"ALTER TABLE {table} ALTER COLUMN {column} TYPE int USING {column} + 1"

    def _alter_types(self) -> str:
        chance = self._chance.random()
        if chance < 0.3:
            return f"ALTER TABLE t REPLICA IDENTITY {self._chance.choice(['FULL', 'DEFAULT'])}"
        if chance < 0.6:
            return f"ALTER TYPE mood ADD VALUE 'm{self._number}'"
        labels = self._connection.execute("SELECT enumlabel FROM pg_enum ORDER BY random()").fetchall()
        return f"ALTER TYPE mood RENAME VALUE '{labels[0][0]}' TO 'm{self._number}'"


class Migrations:
    """Random schema changes and changes of rows, on a connection that is opened again after the server was down."""

    def __init__(self, db: Database, seed: int) -> None:
        for statement in SETUP.strip().split(";\n"):
            db.execute(statement)
        self._db, self._seed = db, seed
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.count = 0
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.2):
            with suppress(psycopg.Error), self._db.writer() as connection:
                connection.autocommit = True
                application = Application(connection, self._seed + self.count)
                while not self._stop.wait(0.05):
                    application.act()
                    self.count += 1

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)
