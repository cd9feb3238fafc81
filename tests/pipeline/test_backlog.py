"""A backlog from before the start is applied at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from logicalrep.pipeline.formats.delta.delta_log import DeltaLog
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.storage.storage import Storage
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import replicate_once
from tests.postgres.servers import Database


def version_of(storage: Path) -> int:
    log = DeltaLog.open(Storage(str(storage)), "public/t")
    assert log is not None
    return log.version


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_backlog_is_one_commit(db18: Database, tmp_path: Path, mode: str) -> None:
    # Most of what is received goes through files, and the batch is reduced in many parts.
    limits = Limits(received_bytes=1_000_000, batch_bytes=3 * 20_000)
    db18.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    db18.execute("INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 5000) AS i")
    replicate_once(db18, tmp_path, limits=limits, write_mode=mode)
    version = version_of(tmp_path)
    for number in range(60):
        db18.execute(f"UPDATE t SET v = 'at {number}' WHERE id % 60 = {number} OR id % 59 = {number}")
        db18.execute(f"UPDATE t SET id = id + 10000 WHERE id % 97 = {number}")
        db18.execute(f"DELETE FROM t WHERE id = {number * 7}")
        db18.execute(f"INSERT INTO t SELECT {number} * 100000 + i, 'new' FROM generate_series(90000, 90050) AS i")
    replicate_once(db18, tmp_path, limits=limits, write_mode=mode)
    # The run may write files anew after the batch.
    commits = sorted((tmp_path / "public/t/_delta_log").glob("*.json"))[version + 1 :]
    assert [path.read_text().count('"txn"') for path in commits].count(1) == 1
    assert find_differences(db18.dsn, str(tmp_path), ["public.t"]) == {}
