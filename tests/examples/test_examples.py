"""The programs in examples/ do what their index says, on a real server."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable
from psycopg.conninfo import conninfo_to_dict

from logicalrep.cli.main import argument_parser
from logicalrep.pipeline.engines.engine import SequentialEngine
from tests.documents import ROOT, cells
from tests.postgres.servers import Database
from tests.waiting import eventually

EXAMPLES = ROOT / "examples"


@pytest.fixture
def shop(db18: Database) -> Database:
    """A database with the examples' table."""
    db18.connection.execute((EXAMPLES / "shop.sql").read_text("utf-8"))
    return db18


@pytest.fixture
def run(shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run an example on the shop, and write into the test's folder; replicate's tasks run here, without Spark."""
    replicating = importlib.import_module("logicalrep.pipeline.run.run")
    monkeypatch.setattr(replicating, "start_engine", lambda *_: nullcontext(SequentialEngine()))
    monkeypatch.setattr(sys, "argv", ["example", shop.dsn, str(tmp_path / "out")])

    def run_example(name: str, *replaced: tuple[str, str]) -> None:
        text = (EXAMPLES / name).read_text("utf-8")
        for old, new in replaced:
            assert old in text
            text = text.replace(old, new)
        exec(compile(text, name, "exec"), {})

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


def test_on_a_cluster(shop: Database, run: Callable[..., None], tmp_path: Path) -> None:
    """The tests of a cluster run it there."""
    run("on_a_cluster.py")
    assert DeltaTable(tmp_path / "out" / "public" / "orders").to_pyarrow_table().num_rows == 3


def test_changes_to_polars(
    shop: Database, run: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("changes_to_polars.py")
    assert capsys.readouterr().out == ""
    shop.execute(
        "INSERT INTO orders VALUES (4, 'Cy', 1.25), (5, 'Cy', 2.25)", "UPDATE orders SET price = 9 WHERE id = 2"
    )
    for seen in range(2):
        # A run that finds nothing new shows what was there.
        run("changes_to_polars.py")
        out = capsys.readouterr().out
        assert _cells(out, "Cy") == ["Cy", "insert", "2", "3.50"]
        assert _cells(out, "Ben") == ["Ben", "update_postimage", "1", "9.00"]
        if not seen:
            (file,) = (tmp_path / "out").glob("*.parquet")
            # As if the program had died before it told the server.
            shutil.copy(file, file.with_name("again.parquet"))


def test_stream_to_parquet(spark: Any, shop: Database, run: Callable[..., None], tmp_path: Path) -> None:
    files = tmp_path / "out" / "changes"
    slots = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'parquet'"

    def found() -> list[tuple[Any, ...]]:
        """Return the rows of the files that Spark has committed."""
        if not any(files.glob("_spark_metadata/[0-9]*")):
            return []
        return [tuple(row) for row in spark.read.parquet(str(files)).select("id", "_change_type").collect()]

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, "stream_to_parquet.py", ("1 minute", "1 second"))
        try:
            eventually(lambda: running.done() or shop.value(slots) == 1)
            shop.execute("INSERT INTO orders VALUES (4, 'Cy', 1.25)")
            eventually(lambda: running.done() or found() != [])
            assert not running.done(), running.result()
        finally:
            for query in spark.streams.active:
                query.stop()
    assert found() == [(4, "insert")]


def test_scheduled(
    spark: Any, shop: Database, run: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("scheduled.py")
    assert capsys.readouterr().out == "0 changes\n"
    shop.execute("INSERT INTO orders VALUES (4, 'Cy', 1.25)", "DELETE FROM orders WHERE id < 3")
    run("scheduled.py")
    assert capsys.readouterr().out == "3 changes\n"
    rows = spark.read.parquet(str(tmp_path / "out" / "changes")).orderBy("_commit_version", "_ordinal").collect()
    assert [(row["id"], row["_change_type"]) for row in rows] == [(4, "insert"), (1, "delete"), (2, "delete")]


@pytest.mark.usefixtures("run")
def test_the_notebook(shop: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names_of_places, *code = cells("examples/quick_start.ipynb")
    variables: dict[str, Any] = {}
    exec(names_of_places, variables)
    assert set(variables) >= {"dsn", "lake"}
    variables |= {"dsn": shop.dsn, "lake": str(tmp_path / "lake")}
    _, loaded, changed, verified, dropped = (_shown(cell, variables) for cell in code)
    assert loaded["price"].to_list() == [Decimal("12.50"), Decimal("3.99"), Decimal("7.50")]
    assert changed["price"].to_list() == [Decimal("13.50"), Decimal("3.99"), Decimal("8.50")]
    assert "public.orders: equal, 3 rows" in capsys.readouterr().out
    assert (verified, dropped) == (0, 0)
    assert shop.value("SELECT count(*) FROM pg_replication_slots WHERE database = current_database()") == 0
    assert shop.rows("SELECT pubname FROM pg_publication") == [("shop",)]


def test_the_spark_notebook(spark: Any, shop: Database, capsys: pytest.CaptureFixture[str]) -> None:
    server, *code = cells("examples/spark.ipynb")
    variables: dict[str, Any] = {}
    exec(server, variables)
    assert set(variables) >= {"dsn"}
    variables["dsn"] = shop.dsn
    values = [_shown(cell, variables) for cell in code]
    assert values[0] == spark.version
    output = capsys.readouterr().out
    for shown in ("|2|NULL|delete|", "|1|13.50|update_postimage|"):
        assert shown in output.replace(" ", "")
    current = [(row["id"], row["price"]) for row in variables["current"].collect()]
    assert current == shop.rows("SELECT id, price FROM orders ORDER BY id")
    assert shop.value("SELECT count(*) FROM pg_replication_slots WHERE database = current_database()") == 0
    variables["rows"].unpersist()


def _shown(cell: str, variables: dict[str, Any]) -> Any:
    """Run a cell, and return the value of its last line if that is an expression, which a notebook shows."""
    statements = ast.parse(cell).body
    last = statements[-1] if isinstance(statements[-1], ast.Expr) else None
    if last is not None:
        statements.pop()
    exec(compile(ast.Module(statements, []), "cell", "exec"), variables)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), variables)


def _cells(shown: str, first: str) -> list[str]:
    """Return the cells of the one row of a printed table that begins with a value."""
    rows = [re.split(r"\s*[│┆]\s*", line)[1:-1] for line in shown.splitlines()]
    (row,) = [row for row in rows if row[:1] == [first]]
    return row


def test_docker_compose_is_read() -> None:
    services = yaml.safe_load((EXAMPLES / "docker-compose.yaml").read_text("utf-8"))["services"]
    assert services["replicate"]["depends_on"].keys() == services.keys() - {"replicate"}
    mounted = [volume.split(":")[0] for service in services.values() for volume in service["volumes"]]
    assert {"./shop.sql", "..", "./lake", "data"} == set(mounted)
    assert "wal_level=logical" in services["database"]["command"]
    shell, flag, line = services["replicate"]["command"]
    command = shlex.split(line.partition("exec logicalrep ")[2])
    assert (shell, flag, argument_parser().parse_args(command).to) == ("sh", "-c", "/lake")
    assert conninfo_to_dict(command[command.index("--dsn") + 1]) == {
        "host": "database",
        "dbname": "shop",
        "user": "postgres",
    }


@pytest.mark.thorough
@pytest.mark.postgres
@pytest.mark.spark
def test_the_demonstration_shows_both_products() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py")], capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    decoded, replicated, queried, summary = re.split(r"\n.*\n=+\n", done.stdout)[1:]
    assert "- final_lsn: Int64 (XLogRecPtr)" in decoded
    assert "Begin(final_lsn=Lsn(" in decoded
    work = re.search(r"Spark 4\S+ on (\d+) cores ran (\d+) jobs, (\d+) tasks", replicated)
    assert work is not None
    assert all(int(number) > 0 for number in work.groups())
    assert "SIGKILL" in replicated
    assert "4 tables, " in replicated
    assert queried.count("batch ") >= 3
    assert summary.count("equal to the server's rows") == 1
    assert "docs/how-to/spark.md" in summary


def test_every_example_is_in_the_index() -> None:
    index = (EXAMPLES / "README.md").read_text("utf-8")
    files = {path.name for path in EXAMPLES.iterdir() if path.is_file()} - {"README.md", "shop.sql"}
    assert {name for name in files if f"[{name}]({name})" not in index} == set()
