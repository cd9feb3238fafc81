"""docs/operations.md's commands, run one after another as they stand."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from pathlib import Path

import pytest

from logicalrep.cli.main import main
from logicalrep.tables.tasks import LocalTasks
from tests.documents import examples
from tests.postgres.servers import Database
from tests.tables.comparison import differences
from tests.tables.test_replicate import TABLES, shop

__all__ = ["shop"]


def test_the_commands_of_the_page(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # The tasks run in this process in place of Spark.
    monkeypatch.setattr("logicalrep.tables.replicate.replicate.spark_tasks", lambda place: nullcontext(LocalTasks()))
    lines = [
        shlex.split(line, comments=True)
        for block in examples("docs/operations.md", "sh")
        for line in block.splitlines()
    ]
    commands = [[shop.dsn if word == "$DSN" else word for word in line[1:]] for line in lines]
    replicate, status, resync_one, pause, resume, resync_all, drop, create, show, advance, drop_slot = commands

    def run(command: list[str], code: int = 0) -> str:
        found = main(command)
        said = capsys.readouterr()
        assert found == code, said.err
        return said.out + said.err

    run(replicate)
    shop.execute("CREATE TABLE later (id int PRIMARY KEY)", "INSERT INTO later VALUES (1)")
    run(replicate)
    tables = [*TABLES, "public.later"]
    assert differences(shop.dsn, "lake", tables) == {}
    assert "public.later     following" in run(status)
    shop.execute("DELETE FROM orders WHERE id < 100")
    assert "public.orders: loaded 4,901 rows" in run(resync_one)
    run(pause)
    assert "[PLACE_PAUSED]" in run(replicate, 3)
    run(resume)
    run(replicate)
    shop.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()"
    )
    shop.execute("DELETE FROM customer WHERE id < 100")
    assert "[SLOT_LOST]" in run(replicate, 1)
    run(resync_all)
    assert differences(shop.dsn, "lake", tables) == {}
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
