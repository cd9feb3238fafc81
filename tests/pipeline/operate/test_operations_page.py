"""The commands of the pages about operating, run one after another as they stand."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from pathlib import Path

import pytest

from logicalrep.cli.main import main
from logicalrep.pipeline.engines.engine import SequentialEngine
from tests.documents import examples
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import TABLES
from tests.postgres.servers import Database
from tests.waiting import eventually


def test_the_commands_of_the_pages(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # The tasks run in this process in place of Spark.
    monkeypatch.setattr("logicalrep.pipeline.run.run.start_engine", lambda *_: nullcontext(SequentialEngine()))
    lines = [
        shlex.split(line, comments=True)
        for page in ("operations", "server-changes", "slots")
        for block in examples(f"docs/how-to/{page}.md", "sh")
        for line in block.splitlines()
    ]
    commands = [[shop.dsn if word == "$DSN" else word for word in line[1:]] for line in lines]
    replicate, status, resync_one, verify, resync_rows, resync_partition, skip, pause, *last_commands = commands
    resume, drop, resync_all, failover, new_server, *slot = last_commands
    create, show, advance, drop_slot = slot

    def run(command: list[str], code: int = 0) -> str:
        exit_code = main(command)
        output = capsys.readouterr()
        assert exit_code == code, output.err
        return output.out + output.err

    run(replicate)
    shop.execute("CREATE TABLE later (id int PRIMARY KEY)", "INSERT INTO later VALUES (1)")
    run(replicate)
    tables = [*TABLES, "public.later"]
    assert find_differences(shop.dsn, "lake", tables) == {}
    assert "public.later     following" in run(status)
    shop.execute("DELETE FROM orders WHERE id < 100")
    assert "public.orders: loaded 4,901 rows" in run(resync_one)
    assert "4 tables" in run(verify)
    assert "public.orders: loaded 1 rows" in run(resync_rows)
    assert "has no table public.orders_2026_01" in run(resync_partition, 1)
    assert "[SKIP_REFUSED] public.orders is not stopped" in run(skip, 1)
    run(pause)
    assert "[DESTINATION_PAUSED]" in run(replicate, 3)
    run(resume)
    run(replicate)
    slots = "FROM pg_replication_slots WHERE database = current_database()"
    # The server may not have noticed yet that its client has ended.
    eventually(lambda: shop.value(f"SELECT count(*) {slots} AND active") == 0)
    shop.execute(f"SELECT pg_drop_replication_slot(slot_name) {slots}")
    shop.execute("DELETE FROM customer WHERE id < 100")
    assert "[SLOT_LOST]" in run(replicate, 1)
    run(resync_all)
    assert find_differences(shop.dsn, "lake", tables) == {}
    run(failover)
    assert shop.value("SELECT failover FROM pg_replication_slots WHERE database = current_database()")
    # The server is the same one: tests/pipeline/test_servers.py has others.
    run(new_server)
    assert find_differences(shop.dsn, "lake", tables) == {}
    run(drop)
    run(create)
    assert shop.rows("SELECT slot_name, failover FROM pg_replication_slots WHERE database = current_database()") == [
        ("changes", True)
    ]
    assert "safe_wal_size             without bound" in run(show)
    assert "the replication slot changes" in run(advance)
    run(drop_slot)
    assert shop.value("SELECT count(*) FROM pg_replication_slots WHERE database = current_database()") == 0
    assert shop.value("SELECT count(*) FROM pg_publication") == 0
    assert [path for path in Path("lake").rglob("*") if path.is_file()] == []
