"""The library's examples with a server do what it says; those with Spark are in tests/spark/test_documents.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from logicalrep.postgres.slots.creating import create_slot
from tests.documents import DSN, example
from tests.postgres.servers import Database, installation
from tests.waiting import eventually


def prepare(db: Database, slot: str) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, item text)", "CREATE PUBLICATION shop FOR ALL TABLES")
    create_slot(db.connection, slot)
    db.execute("INSERT INTO orders VALUES (1, 'a book')")


def test_changes_of_a_running_server(db18: Database, tmp_path: Path) -> None:
    prepare(db18, "changes")
    program = example("docs/how-to/library.md", "in changes:")
    assert DSN in program
    shown = tmp_path / "shown"
    with shown.open("wb") as out:
        command = [sys.executable, "-u", "-c", program.replace(DSN, db18.dsn)]
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        for text in (
            "insert public.orders None {'id': Text(value=b'1')",
            "delete public.orders {'id': Text(value=b'1')}",
        ):
            eventually(lambda text=text: text in shown.read_text() or process.poll() is not None)  # type: ignore[misc]
            assert process.poll() is None, shown.read_text()
            db18.execute("DELETE FROM orders")
        moved = "SELECT confirmed_flush_lsn > restart_lsn FROM pg_replication_slots WHERE slot_name = 'changes'"
        assert db18.value(moved)
    finally:
        process.kill()
        process.wait()


def test_a_slot_into_duckdb(db18: Database, tmp_path: Path) -> None:
    prepare(db18, "lake")
    program = example("docs/how-to/arrow.md", "import duckdb")
    assert example("docs/how-to/library.md", "import duckdb") == program
    command = [sys.executable, "-c", program.replace(DSN, db18.dsn)]
    for _ in range(2):
        subprocess.run(command, cwd=tmp_path, check=True)
        db18.execute("UPDATE orders SET item = 'a pen'")
    with duckdb.connect(tmp_path / "lake.duckdb") as lake:
        rows = lake.sql("SELECT id, item, _change_type FROM orders ORDER BY _commit_version, _ordinal").fetchall()
    assert rows == [(1, "a book", "insert"), (1, "a pen", "update_postimage")]


def test_a_capture_by_psql(db18: Database, tmp_path: Path) -> None:
    psql = installation(18).bin / "psql"
    if not psql.is_file():
        pytest.skip("there is no psql")
    prepare(db18, "spark")
    command = example("docs/how-to/library.md", "psql -XAtq")
    assert "psql -XAtq -d shop" in command
    command = command.replace("psql -XAtq -d shop", f"psql -XAtq -d '{db18.dsn}'")
    path = {"PATH": f"{psql.parent}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["bash", "-ec", command], cwd=tmp_path, env=os.environ | path, check=True)
    arguments = [Path(sys.executable).with_name("logicalrep"), "changes", "--format", "table", "shop.jsonl"]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "a book" in done.stdout
