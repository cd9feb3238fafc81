"""Random transactions of rows, of all kinds, without schema changes: the workload of kills."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any, Self

import psycopg

_AT_ONCE = 6
_MOST_ROUNDS = 1000
"""The most rounds of a seed, so that no row has the key of another seed's row."""
_PAUSE = 0.5

TABLES = """
CREATE TABLE plain (id int PRIMARY KEY, v text, n numeric(12,3), t timestamptz, b boolean);
CREATE TABLE whole (id int, v text, big text);
ALTER TABLE whole REPLICA IDENTITY FULL;
CREATE TABLE by_index (a int NOT NULL, b text NOT NULL, c text);
CREATE UNIQUE INDEX by_index_key ON by_index (a, b);
ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_index_key;
CREATE TABLE bare (v text);
CREATE TABLE toasted (id int PRIMARY KEY, big text, small text);
ALTER TABLE toasted ALTER big SET STORAGE EXTERNAL;
CREATE TABLE "Odd ""Näme" ("Cölumn" int PRIMARY KEY, "select" text);
"""


def run(connection: psycopg.Connection[Any], seed: int, transactions: int = 40) -> None:
    """Run the given number of transactions, of all kinds."""
    chance = random.Random(seed)
    base = seed * 100_000
    execute = connection.execute
    for number in range(transactions):
        key = base + number * 1000
        kind = chance.choice(("small", "small", "update", "savepoint", "prepared", "big", "toast", "key", "delete"))
        if number == transactions // 2:
            execute("TRUNCATE bare, by_index")
        if kind == "small":
            with connection.transaction():
                execute("INSERT INTO plain VALUES (%s, %s, 1.5, now(), true)", (key, f"it's {key} ☃"))
                execute("INSERT INTO whole VALUES (%s, '', NULL)", (key,))
                execute("INSERT INTO by_index VALUES (%s, 'b', 'c')", (key,))
                execute("INSERT INTO bare VALUES (NULL)")
                execute('INSERT INTO "Odd ""Näme" VALUES (%s, %s)', (key, "\\ \n\t"))
        elif kind == "update":
            execute("UPDATE plain SET v = v || '+', n = n + 1 WHERE id %% 3 = 0 AND id >= %s", (base,))
            execute("UPDATE whole SET v = 'changed' WHERE id >= %s", (base,))
            execute("UPDATE by_index SET c = NULL WHERE a >= %s", (base,))
        elif kind == "key":
            execute(
                "UPDATE plain SET id = -id WHERE id = (SELECT min(id) FROM plain WHERE id >= %s)",
                (base,),
            )
            execute("UPDATE by_index SET b = b || 'x' WHERE a >= %s", (base,))
        elif kind == "delete":
            execute("DELETE FROM plain WHERE id IN (SELECT id FROM plain WHERE id >= %s ORDER BY id LIMIT 2)", (base,))
            execute("DELETE FROM whole WHERE id IN (SELECT id FROM whole WHERE id >= %s ORDER BY id LIMIT 1)", (base,))
        elif kind == "savepoint":
            with connection.transaction():
                execute("INSERT INTO plain VALUES (%s, 'kept')", (key,))
                execute("SAVEPOINT a")
                execute(
                    "INSERT INTO plain SELECT i, 'gone' FROM generate_series(%s::int, %s) AS i", (key + 1, key + 300)
                )
                execute("ROLLBACK TO a")
                execute("INSERT INTO plain VALUES (%s, 'kept too')", (key + 1,))
        elif kind == "prepared":
            execute("BEGIN")
            execute("INSERT INTO plain VALUES (%s, 'prepared')", (key,))
            execute(f"PREPARE TRANSACTION 'g{key}'")
            execute("INSERT INTO plain VALUES (%s, 'between')", (key + 1,))
            execute(f"{chance.choice(('COMMIT', 'ROLLBACK'))} PREPARED 'g{key}'")
        elif kind == "big":
            execute(
                "INSERT INTO plain SELECT i, repeat('x', 100), i FROM generate_series(%s::int, %s) AS i",
                (key, key + 900),
            )
        elif kind == "toast":
            execute(
                "INSERT INTO toasted VALUES (%s, repeat('0123456789', 2000), 'small') "
                "ON CONFLICT (id) DO UPDATE SET small = 'x'",
                (key,),
            )
            execute("UPDATE toasted SET small = small || '.' WHERE id >= %s", (base,))
            execute("INSERT INTO whole VALUES (%s, 'x', repeat('abcdefghij', 2000))", (key + 1,))
            execute("UPDATE whole SET v = 'y' WHERE id = %s", (key + 1,))


class Writer:
    """Runs transactions until the context ends."""

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]], seed: int) -> None:
        self._connect, self._seed = connect, seed
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._error: psycopg.Error | None = None
        self.transactions = 0

    def __enter__(self) -> Self:
        """Start to write."""
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Wait for the transactions that have begun. Raises the error of a transaction that failed."""
        self._stop.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            with self._connect() as connection:
                # A copy of a table may hold a lock for as long as it lasts.
                connection.execute("SET lock_timeout = 0")
                while not self._stop.wait(_PAUSE):
                    run(connection, self._seed * _MOST_ROUNDS + self.transactions // _AT_ONCE, _AT_ONCE)
                    self.transactions += _AT_ONCE
        except psycopg.Error as error:
            self._error = error


__all__ = ["TABLES", "Writer", "run"]
