"""The core of `logicalrep replicate` with PostgreSQL 16 and 18: a load while others write, many tables, and `verify`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow.compute as pc
import pytest

from conformance import rows
from logicalrep.pipeline.operate.status import query_status
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.verify.verifying import verify
from tests.pipeline.comparison import find_differences
from tests.pipeline.reading import read_table
from tests.pipeline.replicating import replicate_meanwhile, replicate_once
from tests.postgres.servers import Database, installation
from tests.spark import workload
from tests.waiting import eventually

OF_WORKLOAD = ["public.plain", "public.whole", "public.by_index", "public.toasted", 'public.Odd "Näme']
OF_PGBENCH = [f"public.pgbench_{name}" for name in ("accounts", "branches", "tellers", "history")]


@contextmanager
def run_pgbench(db: Database) -> Iterator[None]:
    """Make pgbench's tables, and let it change them while the context lasts."""
    postgres = installation(db.major)
    environment = os.environ | {"LD_LIBRARY_PATH": str(postgres.folder / "lib"), "PGUSER": "postgres"}
    command = [str(postgres.bin / "pgbench"), "--host", str(db.server.folder), db.name]
    subprocess.run([*command, "--initialize", "--quiet"], env=environment, check=True, capture_output=True)
    db.execute("ALTER TABLE pgbench_history REPLICA IDENTITY FULL")
    running = subprocess.Popen(
        [*command, "--time=600", "--client=2", "--rate=200", "--no-vacuum"],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
        assert running.poll() is None
    finally:
        running.terminate()
        running.wait(30)


@pytest.mark.parametrize("db", [pytest.param(16, marks=pytest.mark.thorough), 18], indirect=True)
@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.thorough)])
def test_many_tables_are_loaded_while_others_write_and_equal_then(db: Database, tmp_path: Path, count: int) -> None:
    names = [f"t{number}" for number in range(count)]
    workload.prepare(db)
    db.execute("DROP PUBLICATION p", "ALTER TABLE bare REPLICA IDENTITY NOTHING")
    for name in names:
        db.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v int)", f"INSERT INTO {name} VALUES (1, 0), (2, 0)")
    tables = [*OF_WORKLOAD, *OF_PGBENCH, *(f"public.{name}" for name in names)]
    storage = Storage(str(tmp_path))
    with closing(db.writer()) as writer, replicate_meanwhile(db, tmp_path) as caught_up:
        with run_pgbench(db):
            for number, name in enumerate(names):
                db.execute(f"UPDATE {name} SET v = {number} WHERE id = 1")
                if number % 10 == 0:
                    rows.run(writer, number, 5)
            expected = {name if name != OF_WORKLOAD[-1] else 'public."Odd ""Näme"' for name in tables}
            # Those that got their identity after the start are published by a later look.
            eventually(lambda: State.read(storage).tables.keys() == expected)
            caught_up()
            versions = {name: table["version"] for name, table in query_status(db.settings, storage).tables.items()}
            for number in range(5):
                db.execute(f"INSERT INTO t0 VALUES ({3 + number})", f"UPDATE t1 SET v = {number}")
                caught_up()
        caught_up()
        status = query_status(db.settings, storage)
        assert status.is_running
        # A table without changes gets no commit.
        assert {
            name for name in names[2:] if status.tables[f"public.{name}"]["version"] != versions[f"public.{name}"]
        } == set()
        assert [verdict for verdict in verify(db.settings, storage) if verdict.result != "equal"] == []
    assert find_differences(db.dsn, str(tmp_path), tables) == {}


@pytest.mark.thorough
def test_a_transaction_of_a_million_rows_and_verify_in_little_memory(db16_and_18: Database, tmp_path: Path) -> None:
    db = db16_and_18
    db.execute("CREATE TABLE small (id int PRIMARY KEY)", "CREATE TABLE large (id int PRIMARY KEY, n int, v text)")
    db.execute("INSERT INTO large SELECT i, i, repeat('x', 300) FROM generate_series(1, 500000) AS i")
    replicate_once(db, tmp_path)
    with db.connection.transaction():
        db.execute(
            "INSERT INTO large SELECT i, i, repeat('y', 300) FROM generate_series(500001, 1000000) AS i",
            "UPDATE large SET n = n + 1, id = -id",
            "DELETE FROM large WHERE id % 1000 = 0",
        )
    replicate_once(db, tmp_path)
    rows = read_table(str(tmp_path / "public" / "large"))
    totals = (
        rows.num_rows,
        pc.sum(rows["id"]).as_py(),
        pc.sum(rows["n"]).as_py(),
        pc.sum(pc.utf8_length(rows["v"])).as_py(),
    )
    assert totals == db.rows("SELECT count(*), sum(id), sum(n), sum(length(v)) FROM large")[0]
    peaks = {}
    db.execute("UPDATE large SET v = 'z' WHERE id = -1")
    for name, code in (("small", 0), ("large", 5)):
        command = [sys.executable, "-m", "logicalrep.cli.main", "verify", "--dsn", db.dsn, "--to", str(tmp_path)]
        process = subprocess.Popen([*command, "--tables", name, "--patience", "1"])
        _, status_, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status_)
        assert process.returncode == code
        peaks[name] = usage.ru_maxrss / 1024
    # Its rows are 300 MiB, and are read twice on both sides.
    assert peaks["large"] - peaks["small"] < 200, peaks
