"""The programs for dlt and Dagster, in an environment of their own with the releases of the day."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.documents import ROOT
from tests.postgres.servers import Database

pytestmark = pytest.mark.thorough

_COMPONENT = """
import sys

import dagster
from dagster_component import Replication

dsn, lake = sys.argv[1:]
context = dagster.ComponentTree.for_test().load_context
definitions = Replication(name="shop", dsn=dsn, to=lake).build_defs(context)
dagster.Definitions.validate_loadable(definitions)
result = dagster.materialize([*definitions.assets, *definitions.asset_checks])
print(result.success, [check.passed for check in result.get_asset_check_evaluations()])
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Run a program of an environment with dlt, Dagster and this logicalrep; return what it prints."""
    folder = tmp_path_factory.mktemp("orchestrators")
    subprocess.run([sys.executable, "-P", "-m", "venv", folder / "venv"], check=True)
    scripts = folder / "venv" / "bin"
    packages = [f"{ROOT}[local]", f"{ROOT}/native", "dlt[duckdb]", "dagster"]
    subprocess.run([scripts / "pip", "install", "--quiet", *packages], check=True)
    environment = {
        **os.environ,
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "examples/deploy"),
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        "DAGSTER_DISABLE_TELEMETRY": "yes",
    }

    def run_program(program: str, *arguments: str | Path) -> str:
        command = [scripts / program, *arguments]
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run_program


def test_dlt_loads_each_change_once(db18: Database, run: Callable[..., str], tmp_path: Path) -> None:
    db18.connection.execute((ROOT / "examples/shop.sql").read_text("utf-8"))
    lake = tmp_path / "lake"
    replicate = ("replicate", "--dsn", db18.dsn, "--to", lake, "--append", "--once")
    run("logicalrep", *replicate)
    db18.execute("INSERT INTO orders VALUES (4, 'Cy', 1.25), (5, 'Cy', 2.25)")
    run("logicalrep", *replicate)
    load = (ROOT / "examples/dlt_changes.py", lake)
    assert run("python", *load).splitlines() == ["insert 2"]
    assert run("python", *load).splitlines() == ["insert 2"]
    db18.execute("UPDATE orders SET price = 9 WHERE id = 4", "DELETE FROM orders WHERE id = 5")
    run("logicalrep", *replicate)
    assert run("python", *load).splitlines() == ["delete 1", "insert 2", "update_postimage 1"]


def test_dagster_replicates_and_compares(db18: Database, run: Callable[..., str], tmp_path: Path) -> None:
    db18.connection.execute((ROOT / "examples/shop.sql").read_text("utf-8"))
    assert run("python", "-c", _COMPONENT, db18.dsn, str(tmp_path / "lake")).endswith("True [True]\n")
