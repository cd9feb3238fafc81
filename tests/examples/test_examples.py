"""The programs in examples/ do what their index says, on a real server."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from logicalrep.tables.tasks import LocalTasks
from tests.documents import ROOT
from tests.postgres.servers import Database

EXAMPLES = ROOT / "examples"


@pytest.fixture
def shop(db18: Database) -> Database:
    """A database with the examples' table."""
    db18.connection.execute((EXAMPLES / "shop.sql").read_text("utf-8"))
    return db18


@pytest.fixture
def run(shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run an example on the shop, and write into the test's folder; replicate's tasks run here, without Spark."""
    replicating = importlib.import_module("logicalrep.tables.replicate.replicate")
    monkeypatch.setattr(replicating, "spark_tasks", lambda _: nullcontext(LocalTasks()))
    monkeypatch.setattr(sys, "argv", ["example", shop.dsn, str(tmp_path / "out")])

    def run_example(name: str) -> None:
        exec(compile((EXAMPLES / name).read_text("utf-8"), name, "exec"), {})

    return run_example


def test_replicate_and_query(shop: Database, run: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    run("replicate_and_query.py")
    first = capsys.readouterr().out
    assert _cells(first, "Ada") == ["Ada", "2", "20.00"]
    assert _cells(first, "Ben") == ["Ben", "1", "3.99"]
    shop.execute("UPDATE orders SET price = 10 WHERE id = 1", "DELETE FROM orders WHERE id = 2")
    run("replicate_and_query.py")
    second = capsys.readouterr().out
    assert _cells(second, "Ada") == ["Ada", "2", "17.50"]
    assert "Ben" not in second


def _cells(shown: str, first: str) -> list[str]:
    """Return the cells of the one row of a printed table that begins with a value."""
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in shown.splitlines() if "│" in line]
    (row,) = [row for row in rows if row[0] == first]
    return row


def test_every_example_is_in_the_index() -> None:
    index = (EXAMPLES / "README.md").read_text("utf-8")
    files = {path.name for path in EXAMPLES.iterdir() if path.is_file()} - {"README.md", "shop.sql"}
    assert {name for name in files if f"[{name}]({name})" not in index} == set()
