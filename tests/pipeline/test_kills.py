"""`logicalrep replicate` killed without warning, or stopped until another one replicates: tables end as the server's.

Rows and, of some tables, columns change all the time. Where this machine's processes mark rows, the files of some tables
are divided.

Five kills with each engine and write mode, of each kind one, and KILLS with SEED for `make soak`, half of them with each.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow.compute as pc
import pytest

from conformance import rows
from tests.pipeline.catalog.random_application import TABLES as ALTERED
from tests.pipeline.catalog.random_application import Migrations
from tests.pipeline.command import Command
from tests.pipeline.comparison import find_differences
from tests.pipeline.partitioned_files import files_of
from tests.pipeline.replicating import FORMATS
from tests.pipeline.stored import WriteMode
from tests.postgres.servers import Database, create_database
from tests.spark import workload
from tests.spark.writer import Writer
from tests.waiting import eventually

pytestmark = [pytest.mark.postgres, pytest.mark.spark]

KILLS, SEED = int(os.environ.get("KILLS", "10")) // 2, int(os.environ.get("SEED", "1"))
TABLES = ["public.plain", "public.whole", "public.by_index", "public.toasted", 'public.Odd "Näme', "public.large"]
TABLES += [f"public.{table}" for table in ALTERED]
DIVIDED = {
    "public.large": "bucket(4, id)",
    "public.plain": "bucket(3, id)",
    "public.by_index": "bucket(2, b)",
    "public.toasted": "bucket(2, id)",
}
"""The partitions of tables whose files are divided."""


def _overtake(db: Database, command: Command, other: Command) -> Command:
    """Stop a command until another one replicates; it wakes, and ends by itself. Return the other one."""
    slots = f"FROM pg_replication_slots WHERE database = '{db.name}' AND NOT temporary AND active_pid IS NOT NULL"

    def is_read() -> bool:
        return db.value(f"SELECT count(*) {slots}") == 1

    command.stop()
    # As the server does once a reader has not answered for wal_sender_timeout. Until it has, the slot is this reader's,
    # or will be, as a session may be about to take it.
    sessions = f"FROM pg_stat_activity WHERE datname = '{db.name}' AND backend_type = 'walsender'"
    eventually(lambda: not db.rows(f"SELECT pg_terminate_backend(pid) {sessions}"))
    other.start("--every", "0")
    try:
        eventually(lambda: is_read() or not other.is_alive())
        assert other.is_alive(), other.log()
        time.sleep(5)
        command.resume_processes()
        eventually(lambda: not command.is_alive())
    except BaseException:
        other.kill("")
        raise
    finally:
        command.kill("")
    return other


_KILLED = {
    "spark": ("java", "pyspark.daemon"),
    "connect": ("java", "pyspark.daemon"),
    "local": ("engines.local import serve",) * 2,
}
"""The programs of each engine that are killed."""


@pytest.mark.parametrize(
    ("major", "engine", "mode", "table_format"),
    [
        pytest.param(16, "local", "copy-on-write", "delta", marks=pytest.mark.thorough),
        pytest.param(16, "local", "merge-on-read", "delta", marks=pytest.mark.thorough),
        pytest.param(16, "local", "copy-on-write", "iceberg", marks=pytest.mark.thorough),
        pytest.param(16, "local", "merge-on-read", "iceberg", marks=pytest.mark.thorough),
        pytest.param(16, "local", "copy-on-write", "iceberg3", marks=pytest.mark.thorough),
        pytest.param(16, "local", "merge-on-read", "iceberg3", marks=pytest.mark.thorough),
        pytest.param(18, "spark", "copy-on-write", "delta", marks=pytest.mark.thorough),
        (18, "spark", "merge-on-read", "delta"),
        pytest.param(18, "spark", "merge-on-read", "iceberg", marks=pytest.mark.thorough),
        pytest.param(18, "connect", "merge-on-read", "delta", marks=pytest.mark.thorough),
    ],
)
def test_kills_lose_nothing_and_double_nothing(
    major: int, engine: str, mode: WriteMode, table_format: str, tmp_path: Path
) -> None:
    name, version = FORMATS[table_format]
    more = ["--write-mode", mode, "--format", name, "--format-version", str(version)]
    is_divided = engine == "local" and mode == "merge-on-read"
    if is_divided:
        config = tmp_path / "config.yaml"
        config.write_text(json.dumps({"tables": {name: {"partition_by": by} for name, by in DIVIDED.items()}}))
        more += ["--config", str(config)]
    with create_database(major) as db:
        _kill_server(db, engine, [*more, "--index-size", "200"] if mode == "merge-on-read" else more, tmp_path)
    logs = [path.read_text() for path in tmp_path.rglob("large/_delta_log/*.json")]
    has_marked = any('"deletionVector"' in log for log in logs) or any(tmp_path.rglob("large/deletes-*"))
    assert has_marked == (mode == "merge-on-read")
    assert any(tmp_path.rglob("*.run")) == (mode == "merge-on-read")
    if is_divided:
        numbers = [len({*files_of(tmp_path / "lake", name.replace(".", "/"))}) for name in DIVIDED]
        # Some have few rows, or none, at the end.
        assert numbers[0] == 4


def _kill_server(db: Database, engine: str, options: Sequence[str], tmp_path: Path) -> None:
    workload.prepare(db)
    db.execute(
        "DROP PUBLICATION p",
        "ALTER TABLE bare REPLICA IDENTITY NOTHING",
        "CREATE TABLE large (id int PRIMARY KEY, v text)",
        "INSERT INTO large SELECT i, repeat('x', 500) FROM generate_series(1, 200000) AS i",
    )
    chance = random.Random(f"{SEED} {db.major}")
    command = Command(db, tmp_path / "lake", tmp_path / "log", engine, options)
    migrations = Migrations(db, SEED)
    writer = Writer(db)
    kinds = ["", *_KILLED[engine], "server", "stopped"]
    ended_by_itself = 0
    try:
        for number in range(KILLS):
            if not command.is_alive():
                command.start("--every", "0")
            time.sleep(3 + chance.random() * 9)
            if not command.is_alive():
                ended_by_itself += 1
                continue
            kind = kinds[number % len(kinds)]
            if kind == "server":
                db.server.stop("immediate")
                time.sleep(chance.random())
                db.server.start()
                db.reconnect()
            elif kind == "stopped":
                command = _overtake(db, command, Command(db, tmp_path / "lake", tmp_path / "log", engine, options))
            else:
                command.kill(kind)
    finally:
        writer.stop()
        migrations.stop()
        command.kill("")
    db.reconnect()
    for (gid,) in db.rows("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"):
        db.execute(f"ROLLBACK PREPARED '{gid}'")
    rows.run(db.connection, 10_000, 6)
    command.once()
    # All tables are loaded by now, however slow the machine is.
    db.execute("UPDATE large SET v = 'updated' WHERE id % 1000 = 0")
    command.once()
    # Tables whose files are divided may have columns of their own, of the partitions.
    lake, divided = str(tmp_path / "lake"), DIVIDED if "--config" in options else {}
    assert find_differences(db.dsn, lake, [name for name in TABLES if name not in divided]) == {}, command.log()
    assert find_differences(db.dsn, lake, [*divided], condition=pc.scalar(True)) == {}, command.log()
    assert ended_by_itself <= KILLS // 4 + 1, command.log()
    assert writer.seeds >= KILLS
    assert migrations.count >= 20 * KILLS
