"""Transactions of a given size."""

from __future__ import annotations

from tests.postgres.servers import Database

IN_TRANSACTIONS = (
    "DO $$BEGIN FOR i IN 0..{count} - 1 LOOP INSERT INTO t SELECT i * {rows} + j, repeat('x', {width}) FROM "
    "generate_series(0, {rows} - 1) AS j; COMMIT; END LOOP; END$$"
)


def write_transactions(db: Database, count: int, rows: int, width: int = 0) -> None:
    db.execute(IN_TRANSACTIONS.format(count=count, rows=rows, width=width))
