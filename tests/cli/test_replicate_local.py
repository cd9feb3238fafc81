"""The commands `replicate` and `resync` with the default engine, where neither PySpark nor py4j nor pandas can be imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import eventually

pytest.importorskip("psycopg")
from tests.cli.commands import LARGE_TABLE, processes, run_command, run_replicate, send_signal, start_command
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import TABLES
from tests.postgres.servers import Database

WORKER = "engines.local import serve"
_WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "pandas"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


@pytest.fixture
def without_spark(tmp_path: Path) -> dict[str, str]:
    """Return the environment of programs, and of those that these start, that cannot import Spark's packages."""
    folder = tmp_path / "without"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_WITHOUT)
    return {"PYTHONPATH": str(folder), "JAVA_HOME": "/nonexistent"}


def test_each_of_two_runs_stores_all_rows(shop: Database, tmp_path: Path, without_spark: dict[str, str]) -> None:
    arguments = ["--dsn", shop.dsn, "--to", str(tmp_path / "lake"), "--once"]
    for options, variables, reason in (
        (["--engine", "spark"], {}, "the option engine requires it"),
        ([], {"SPARK_REMOTE": "sc://localhost"}, "SPARK_REMOTE is set"),
    ):
        refused = run_replicate(*arguments, *options, **without_spark, **variables)
        assert refused.returncode == 1
        first, *lines = refused.stderr.splitlines()
        assert first.endswith(f" starts, engine spark: {reason}")
        assert lines == [
            f"error: [ENGINE_MISSING] the engine is Spark, as {reason}, and pyspark is not installed: run pip install "
            "'logicalrep[replicate]', or use --engine local, which needs no Spark"
        ]
    # It is said before anything is made.
    assert shop.rows("SELECT slot_name FROM pg_replication_slots WHERE database = current_database()") == []
    for _ in range(2):
        done = run_replicate(*arguments, **without_spark)
        assert done.returncode == 0, done.stderr
        reason = "there is no Spark session, SPARK_REMOTE or spark-submit"
        assert done.stderr.splitlines()[0].endswith(f" starts, engine local: {reason}")
        assert find_differences(shop.dsn, str(tmp_path / "lake"), TABLES) == {}
        shop.execute(
            "UPDATE customer SET city = 'Hof' WHERE id % 2 = 0",
            "DELETE FROM orders WHERE id % 3 = 0",
            "INSERT INTO audit VALUES (NULL, NULL)",
        )


def test_killed_processes_and_then_a_signal_to_all_processes(
    shop: Database, tmp_path: Path, without_spark: dict[str, str]
) -> None:
    lake, log = tmp_path / "lake", tmp_path / "log"
    shop.execute(*LARGE_TABLE)
    tables = [*TABLES, "public.large"]
    with start_command(shop, lake, log, **without_spark) as command:

        def has_all() -> bool:
            assert command.poll() is None, log.read_text()
            is_loaded = all(any(lake.glob(f"*/{name.partition('.')[2]}/_delta_log/*.json")) for name in tables)
            return is_loaded and find_differences(shop.dsn, str(lake), tables) == {}

        eventually(has_all, seconds=240)
        for number in range(3):
            shop.execute(f"UPDATE orders SET note = '{number}'", f"INSERT INTO audit VALUES (NULL, '{number}')")
            # One of them may have a part of the batch, or begin with it.
            shop.execute(f"UPDATE large SET v = v || '{number}'")
            assert processes(command, WORKER)
            for pid in processes(command, WORKER):
                os.kill(pid, signal.SIGKILL)
            eventually(has_all, seconds=240)
        shop.execute("UPDATE orders SET id = -id")
        assert send_signal(command, signal.SIGTERM) == 130, log.read_text()
        assert processes(command) == []
    assert "Traceback" not in log.read_text()


def test_processes_end_with_a_command_that_is_killed(
    shop: Database, tmp_path: Path, without_spark: dict[str, str]
) -> None:
    shop.execute(*LARGE_TABLE)
    with start_command(shop, tmp_path / "lake", tmp_path / "log", "--engine", "local", **without_spark) as command:
        eventually(lambda: bool(processes(command, WORKER)), seconds=240)
        os.kill(command.pid, signal.SIGKILL)
        command.wait(60)
        eventually(lambda: not processes(command))


def test_a_script_without_a_main_guard_runs_once(shop: Database, tmp_path: Path, without_spark: dict[str, str]) -> None:
    """Processes that are started from Python often run the script again."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, logicalrep\nprint('started')\nlogicalrep.replicate(sys.argv[1], sys.argv[2], once=True)\n"
    )
    done = subprocess.run(
        [sys.executable, script, shop.dsn, tmp_path / "lake"],
        capture_output=True, text=True, check=False, timeout=600, env=os.environ | without_spark,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "started\n"), done.stderr
    assert find_differences(shop.dsn, str(tmp_path / "lake"), TABLES) == {}


@pytest.mark.parametrize("what", ["publication", "slot"])
def test_the_remedy_of_a_dropped_object_is_a_way_back(
    shop: Database, tmp_path: Path, without_spark: dict[str, str], what: str
) -> None:
    where = ["--dsn", shop.dsn, "--to", str(tmp_path / "lake")]
    once = [*where, "--once"]
    assert run_replicate(*once, **without_spark).returncode == 0
    if what == "publication":
        (name,) = shop.rows("SELECT quote_ident(pubname) FROM pg_publication")[0]
        shop.execute(f"DROP PUBLICATION {name}")
    else:
        shop.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()"
        )
    shop.execute("UPDATE orders SET note = 'changed' WHERE id < 100", "DELETE FROM customer WHERE id = 1")
    refused = run_replicate(*once, **without_spark)
    last = refused.stderr.splitlines()[-1]
    code = {"publication": "PUBLICATION_GONE", "slot": "SLOT_LOST"}[what]
    assert (refused.returncode, last.partition("]")[0]) == (1, f"error: [{code}"), refused.stderr
    assert "run logicalrep resync --all with the same --dsn and --to" in last
    assert "checkpoint" not in last
    resynced = run_command("resync", "--all", *where, **without_spark)
    assert resynced.returncode == 0, resynced.stderr
    done = run_replicate(*once, **without_spark)
    assert done.returncode == 0, done.stderr
    assert find_differences(shop.dsn, str(tmp_path / "lake"), TABLES) == {}


def test_the_other_commands_need_no_spark(shop: Database, tmp_path: Path, without_spark: dict[str, str]) -> None:
    where = ["--dsn", shop.dsn, "--to", str(tmp_path / "lake")]
    assert run_replicate(*where, "--once", **without_spark).returncode == 0
    shop.execute("UPDATE orders SET note = 'changed' WHERE id < 100")
    for command in (
        ["check"],
        ["status"],
        ["pause"],
        ["resume"],
        ["resync", "public.orders", "--engine", "local"],
        ["resync", "public.orders", "--where", "id < 50"],
        ["verify"],
        ["drop", "--delete-tables", "--yes"],
    ):
        done = run_command(*command, *where, **without_spark)
        assert done.returncode == 0, (command, done.stderr)
