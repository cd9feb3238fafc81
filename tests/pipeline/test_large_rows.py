"""Rows and transactions of many bytes: bounded by bytes everywhere, and never in one array that cannot hold them."""

from __future__ import annotations

import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from logicalrep.arrow.changes.change_batch import ChangeBatch, joined
from logicalrep.arrow.changes.sent_relation import SentRelation
from logicalrep.arrow.changes.table_changes import TableChanges, in_parts
from logicalrep.arrow.slices import sliced
from logicalrep.observe.observer import Observers
from logicalrep.pipeline.apply.applying import ApplyTask
from logicalrep.pipeline.buffer import change_buffer as buffered
from logicalrep.pipeline.engines.spark.engine import SparkEngine
from logicalrep.pipeline.engines.spark.jobs import ClassicJobs
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage import data_files
from logicalrep.pipeline.storage.data_files import write_rows
from logicalrep.pipeline.storage.storage import MalformedFileError, Storage
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.changes import change_batch, relation
from tests.pipeline.replicating import settings
from tests.postgres.servers import Database

MIB = 1 << 20


def inserts(sizes: list[int], oid: int = 7, first: int = 1000) -> ChangeBatch:
    """Return inserts with texts of these sizes."""
    changes = [
        {"op": "insert", "after": {"id": str(number), "v": "x" * size}, "commit_lsn": first + number, "ordinal": number}
        for number, size in enumerate(sizes)
    ]
    return change_batch(relation(("id", "v"), oid=oid), changes)


def test_a_part_is_sent_without_what_it_is_a_slice_of() -> None:
    part = inserts([10_000] * 1000).slice(500, 3)
    work = ApplyTask(Storage("/nowhere"), "t", None, (), [part], may_lack_rows=False)  # type: ignore[arg-type]
    sent = pickle.dumps(work)
    assert len(sent) < 50_000
    assert list(pickle.loads(sent).changes) == [part]


def test_parts_are_bounded_by_bytes_where_large_rows_are_neighbours() -> None:
    whole = inserts([10] * 500 + [60_000] * 8 + [300_000] + [10] * 500)
    parts = [joined(part) for part in in_parts([whole], 100_000)]
    assert [part.num_rows for part in parts if part.nbytes > 110_000] == [1]
    assert joined(parts) == whole


def test_data_files_are_bounded_by_bytes_where_large_rows_are_neighbours(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path), limits=Limits(file_bytes=100_000))
    rows = pa.table({"v": ["x"] * 5000 + ["y" * 40_000] * 50 + ["z"] * 5000})
    files = write_rows(storage, "t", rows.schema, rows)
    parts = [data_files.read_rows(storage, "t", file, rows.schema, ["v"]) for file in files]
    assert max(part.nbytes for part in parts) <= 200_000
    assert pa.concat_tables(parts).combine_chunks().equals(rows.combine_chunks())


def test_changes_that_wait_for_a_load_are_files_of_some_bytes(tmp_path: Path) -> None:
    kept = buffered.ChangeBuffer(Storage(str(tmp_path), limits=Limits(buffer_bytes=100_000)))
    whole = inserts([10] * 50 + [60_000] * 5 + [300_000] + [10] * 5)
    sent = SentRelation.of(whole.relation, commit_lsn=1001, ordinal=1, xid=1)
    changes = TableChanges([sent], [whole.slice(0, 56), whole.slice(56)])
    folder = tmp_path / "_logicalrep/buffered/public/t"
    kept.append("public/t", changes, Lsn(5000))
    assert len(list(folder.iterdir())) > 5
    # What a process that was killed had stored of a batch counts as little as nothing.
    (folder / "0000000000000200-0123456789abcdef.part").write_bytes(b"x")
    kept.append("public/t", TableChanges(batches=[inserts([7] * 3)]), Lsn(6000))
    kept.append("public/t", TableChanges(batches=[inserts([7] * 3, first=5500)]), Lsn(7000))
    parts = list(kept.changes("public/t"))
    assert [end for end, _ in parts] == [Lsn(5000), Lsn(7000)]
    assert joined(parts[0][1].batches) == whole
    assert parts[0][1].relations == (sent,)
    assert parts[1][1].num_rows == 3
    kept.forget("public/t", Lsn(5000))
    assert [path.name for path in folder.iterdir()] == [f"{7000:016X}-{0:016X}.parquet"]
    kept.forget("public/t")
    assert list(folder.iterdir()) == []
    kept.append("public/t", changes, Lsn(5000))
    next(path for path in folder.iterdir() if path.suffix == ".part").unlink()
    with pytest.raises(MalformedFileError, match="part is missing"):
        list(kept.changes("public/t"))


def _size(item: bytes) -> int:
    time.sleep(0.05)
    return len(item)


def test_items_are_sent_while_java_has_room_for_them(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(sent_bytes=900, sent_at_once_bytes=1000)
    engine, job = SparkEngine(ClassicJobs(spark), limits), ClassicJobs.run
    lock, sizes, most = threading.Lock(), [0], [0]

    def counted(self: ClassicJobs, function: Any, items: Any, *, apart: bool) -> Any:
        size = sum(map(len, items))
        with lock:
            sizes[0] += size
            most[0] = max(most[0], sizes[0])
        try:
            return job(self, function, items, apart=apart)
        finally:
            with lock:
                sizes[0] -= size

    monkeypatch.setattr(ClassicJobs, "run", counted)
    with ThreadPoolExecutor(8) as pool:
        items = [bytes(400)] * 6 + [bytes(5000)]
        assert list(pool.map(lambda item: engine.run_together(_size, item, len(item)), items)) == list(map(len, items))
    # The last one is too large to be sent.
    assert 400 <= most[0] <= 1000


def test_rows_at_all_sizes_are_sliced_in_order() -> None:
    batch = inserts([1, 5000, 1, 1, 20_000, 1]).rows
    parts = list(sliced(batch, 6000))
    assert pa.Table.from_batches(parts).combine_chunks().equals(pa.Table.from_batches([batch]).combine_chunks())
    assert all(part.num_rows == 1 or part.nbytes <= 6000 for part in parts)


@pytest.mark.thorough
@pytest.mark.parametrize("kept", [False, True], ids=["plain", "with history and changes"])
def test_three_gigabytes_in_one_transaction(spark: Any, db18: Database, tmp_path: Path, kept: bool) -> None:
    """Java's heap has a third of it."""
    table_settings = TableSettings(history=kept, append=kept)

    def once() -> None:
        replicate_with(settings(db18, tmp_path, once=True, engine="spark", table_settings=table_settings), Observers())

    db18.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (0, 'first')")
    once()
    # Text that the server stores in little, and sends whole.
    db18.execute(
        """DO $$ BEGIN
            INSERT INTO t SELECT i, repeat(md5(i::text), 32768) FROM generate_series(1, 2560) AS i;
            INSERT INTO t SELECT i, repeat(md5(i::text), 640) FROM generate_series(10001, 30000) AS i;
            INSERT INTO t SELECT i, repeat(md5(i::text), 8 << 20) FROM generate_series(50001, 50002) AS i;
        END $$"""
    )
    once()
    expected = {(id_, length) for id_, length in db18.rows("SELECT id, length(v) FROM t")}

    def lengths(folder: str) -> list[tuple[int, int]]:
        dataset = DeltaTable(str(tmp_path / folder)).to_pyarrow_dataset()
        return [
            (row["id"], len(row["v"]))
            for batch in dataset.to_batches(columns=["id", "v"], batch_size=64)
            for row in batch.to_pylist()
        ]

    for folder in ["public/t", *(["public/t~history", "public/t~changes"] if kept else [])]:
        stored = lengths(folder)
        assert len(stored) == len(expected) - (folder.endswith("~changes"))
        assert set(stored) <= expected
    db18.execute("UPDATE t SET id = -id WHERE id > 2000")
    once()
    assert set(lengths("public/t")) == {(id_, length) for id_, length in db18.rows("SELECT id, length(v) FROM t")}
