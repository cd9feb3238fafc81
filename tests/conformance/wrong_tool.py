"""A tool that is wrong on purpose: it copies rows above the highest key that it has, and so misses updates and deletes.

It copies tables with a key `id` or `number`: `wrong_tool.py VERB …`, by the contract of conformance/README.md.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import psycopg
from psycopg import sql

_TABLES = "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s"


def follow(dsn: str, publication: str, folder: Path) -> None:
    """Copy new rows every tenth of a second."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        while True:
            for schema, name in connection.execute(_TABLES, [publication]).fetchall():
                copy_rows(connection, schema, name, folder / f"{schema}.{name}")
            time.sleep(0.1)


def copy_rows(connection: psycopg.Connection, schema: str, name: str, file: Path) -> None:
    """Append the rows with higher keys than the file's last row has."""
    lines = file.read_text().splitlines() if file.is_file() else []
    highest = next(iter(json.loads(lines[-1]).values())) if lines else "0"
    query = sql.SQL("SELECT * FROM {0} AS t WHERE t.{1} > %s ORDER BY {1}").format(
        sql.Identifier(schema, name), sql.Identifier("number" if name == "conformance_marks" else "id")
    )
    cursor = connection.execute(query, [int(highest)])
    names = [column.name for column in cursor.description or ()]
    with file.open("a") as out:
        for row in cursor:
            texts = {name: None if value is None else str(value) for name, value in zip(names, row, strict=True)}
            out.write(json.dumps(texts) + "\n")


def read(folder: Path, tables: list[str]) -> None:
    """Print the rows of tables."""
    for table in tables:
        file = folder / table
        for line in file.read_text().splitlines() if file.is_file() else []:
            print(json.dumps({"table": table, "row": json.loads(line)}))


if __name__ == "__main__":
    verb, *arguments = sys.argv[1:]
    if verb == "follow":
        follow(arguments[0], arguments[1], Path(arguments[2]))
    elif verb == "read":
        read(Path(arguments[0]), arguments[1:])
    else:
        print("wrong tool 1")
