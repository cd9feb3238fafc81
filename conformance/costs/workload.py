"""The tables and the changes whose costs are measured: orders, and accounts in small transactions."""

from __future__ import annotations

from typing import Any

TABLES = (
    "CREATE TABLE orders (id bigint PRIMARY KEY, customer int NOT NULL, amount numeric(12,2) NOT NULL, note text, "
    "created timestamptz NOT NULL, is_paid bool NOT NULL, attributes jsonb, ref uuid)",
    "CREATE TABLE accounts (id int PRIMARY KEY, branch int, balance int, filler char(84))",
    "CREATE TABLE history (id bigint PRIMARY KEY, account int, delta int, at timestamptz)",
    "CREATE TABLE ticks (id bigint PRIMARY KEY)",
)
_ORDERS = """
INSERT INTO orders SELECT i, i * 7919 % 100000, i * 31 % 1000000 / 100.0,
  CASE WHEN i % 10 > 0 THEN 'note for order ' || i || repeat('x', (i % 40)::int) END,
  '2024-01-01 00:00:00+00'::timestamptz + i * interval '13.000013 seconds', i % 3 = 0,
  jsonb_build_object('k', i % 100, 'tag', 'tag' || i % 1000), md5(i::text)::uuid
FROM generate_series({}::bigint, {}) AS i
"""
_ACCOUNTS = "INSERT INTO accounts SELECT i, i % 10, 0, '' FROM generate_series(1, {}) AS i"
_LARGE, _SMALL = 1000, 4
"""The changes of a large and of a small transaction."""


def make_tables(connection: Any, rows: int) -> int:
    """Make the tables, with so many orders and a tenth of that in accounts; return the number of all rows."""
    for statement in TABLES:
        connection.execute(statement)
    connection.execute(_ORDERS.format(1, rows))
    connection.execute(_ACCOUNTS.format(rows // 10))
    connection.execute("VACUUM ANALYZE")
    return rows + rows // 10


def make_backlog(connection: Any, rows: int) -> int:
    """Make half as many changes as there are orders; return their number.

    Four fifths are of orders, in transactions of 600 inserts, 300 updates and 100 deletes that are spread over the
    table; the rest in transactions of three updates of an account and an insert.
    """
    changes = 0
    for number in range(rows * 4 // 10 // _LARGE):
        first = 10 * rows + number * _LARGE
        ids = f"(({number} * 400 + i) * 104729 % {rows}) + 1"
        with connection.transaction():
            for statement in (
                _ORDERS.format(first, first + 599),
                "UPDATE orders SET amount = amount + 1, is_paid = NOT is_paid WHERE id IN "
                f"(SELECT {ids} FROM generate_series(0::bigint, 299) AS i)",
                f"DELETE FROM orders WHERE id IN (SELECT {ids} FROM generate_series(300::bigint, 399) AS i)",
            ):
                changes += connection.execute(statement).rowcount
    for number in range(rows // 10 // _SMALL):
        account = number * 7919 % (rows // 10) + 1
        with connection.transaction():
            for _ in range(3):
                update = f"UPDATE accounts SET balance = balance + {number} WHERE id = {account}"
                changes += connection.execute(update).rowcount
            changes += connection.execute(f"INSERT INTO history VALUES ({number}, {account}, 1, now())").rowcount
    return changes


__all__ = ["make_backlog", "make_tables"]
