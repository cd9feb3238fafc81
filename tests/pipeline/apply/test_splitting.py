"""A batch's rows by table: those of many small transactions are one batch for each table, in their order."""

from __future__ import annotations

import pyarrow as pa

from logicalrep.pipeline.apply.splitting import by_table


def rows(start: int, oids: list[int | None]) -> pa.RecordBatch:
    return pa.record_batch({"relation_id": pa.array(oids, pa.int64()), "ordinal": range(start, start + len(oids))})


def test_small_batches_are_joined() -> None:
    found = by_table(rows(4 * number, [1, 2, None, 1]) for number in range(1000))
    assert {oid: len(batches) for oid, batches in found.items()} == {1: 1, 2: 1}
    assert found[1][0]["ordinal"].to_pylist() == [each for each in range(4000) if each % 4 in (0, 3)]
    assert found[2][0]["ordinal"].to_pylist() == list(range(1, 4000, 4))


def test_large_batches_are_not_copied() -> None:
    large = [rows(0, [1] * 30_000), rows(30_000, [1] * 30_000)]
    found = by_table(large)[1]
    assert all(a is b for a, b in zip(found, large, strict=True))


def test_no_rows() -> None:
    assert by_table([]) == {}
