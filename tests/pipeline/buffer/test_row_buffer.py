"""Changes in a temporary file: they are memory of the process only while they are read."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest

from logicalrep.arrow.changes.change_batch import ChangeBatch
from logicalrep.arrow.changes.table_changes import TableChanges, in_parts
from logicalrep.pipeline.buffer.row_buffer import RowBuffer
from tests.pipeline.changes import change_batch, relation

PARTS = 16


def _changes() -> TableChanges:
    rows = [{"op": "insert", "after": {"id": str(number), "v": "x" * 1000}} for number in range(1000)]
    return TableChanges(batches=[change_batch(relation(("id", "v")), rows)])


def _resident() -> int:
    """Return the bytes of mapped files without a name that are in memory for this process."""
    size = 0
    for mapping in Path("/proc/self/smaps").read_text().split("\nVmFlags")[:-1]:
        if "(deleted)" in mapping:
            size += int(mapping.partition("\nRss:")[2].split()[0]) << 10
    return size


@pytest.mark.skipif(sys.platform != "linux", reason="Other systems do not tell what is in memory.")
def test_changes_in_a_file_are_memory_only_while_they_are_read() -> None:
    changes, buffer = _changes(), RowBuffer()
    for _ in range(PARTS):
        buffer.add(changes, in_memory=False)
    batches: list[ChangeBatch] = [batch for part in buffer.parts for batch in part.batches]
    resident, read, most = _resident(), 0, 0
    for part in in_parts(batches, changes.nbytes):
        read += sum(pa.RecordBatch.from_pydict(batch.rows.to_pydict()).num_rows for batch in part)
        most = max(most, _resident() - resident)
    assert read == PARTS * 1000
    assert changes.nbytes // 2 < most < 2 * changes.nbytes
    assert batches[0].rows.equals(changes.batches[0].rows)


@pytest.mark.skipif(sys.platform != "linux", reason="Other systems do not list open files.")
def test_many_small_buffers_one_after_another_are_few_open_files() -> None:
    def open_files() -> int:
        return len([*Path("/proc/self/fd").iterdir()])

    whole, open_count = RowBuffer(), open_files()
    for number in range(PARTS):
        small = RowBuffer()
        for _ in range(2):
            row = {"op": "insert", "after": {"id": str(number), "v": "x"}}
            small.add(TableChanges(batches=[change_batch(relation(("id", "v")), [row])]), in_memory=number % 5 < 2)
        whole.append(small)
        assert not small.has_changes
    parts = whole.parts
    assert open_files() - open_count <= 2
    ids = [value for part in parts for batch in part.batches for value in batch.rows["new.id"].to_pylist()]
    assert ids == [str(number) for number in range(PARTS) for _ in range(2)]
