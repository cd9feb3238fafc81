"""The upkeep of a Delta table: checkpoints of its log, small files merged, old files and old log entries removed.

Each step is small, so that it can give way to batches.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import pyarrow as pa

from logicalrep.tables.delta.data_files import DataFile, read_rows, write_rows
from logicalrep.tables.delta.delta_log import DeltaLog
from logicalrep.tables.delta.place import Place
from logicalrep.tables.delta.replicated_table import ReplicatedTable
from logicalrep.tables.tasks import Tasks

CHECKPOINT_EVERY = 50
"""The number of commits after which the log gets a checkpoint."""
MOST_RETAINED = 20
"""Files that are in the last version no more take at most this multiple of those that are, and `_LEAST_RETAINED`."""
_LEAST_RETAINED = 256 << 20
_SMALL = 16 << 20
"""Files below this size are merged."""
_MERGED = range(8, 17)
"""The least and the most number of files that are merged at once."""


@dataclass(frozen=True)
class _Merge:
    place: Place
    folder: str
    table: ReplicatedTable
    files: tuple[DataFile, ...]


def is_due(log: DeltaLog) -> bool:
    """Return whether there is something to do for a table."""
    return log.version - log.checkpoint >= CHECKPOINT_EVERY or _too_many(log) or len(_small(log)) >= _MERGED.start


def maintain(log: DeltaLog, keep_hours: float, tasks: Tasks) -> None:
    """Do what is due for a table, one step of each kind.

    Args:
        log: the table.
        keep_hours: the hours for which old versions can be read, as far as `MOST_RETAINED` allows.
        tasks: the runner of the merging.
    """
    small = _small(log)
    if len(small) >= _MERGED.start:
        (merged,) = tasks.run(_merged, [_Merge(log.place, log.folder, log.table, tuple(small[: _MERGED.stop - 1]))])
        log.commit_merged(merged, small[: _MERGED.stop - 1])
    if log.version - log.checkpoint >= CHECKPOINT_EVERY:
        log.write_checkpoint(keep_hours)
    oldest = time.time() - keep_hours * 3600
    while log.removed and (log.removed[0][0] < oldest or _too_many(log)):
        _, file = log.removed.popleft()
        log.place.delete(f"{log.folder}/{file.path}")


def _too_many(log: DeltaLog) -> bool:
    there = sum(file.size for file in log.files.values())
    return sum(file.size for _, file in log.removed) > MOST_RETAINED * there + _LEAST_RETAINED


def _small(log: DeltaLog) -> list[DataFile]:
    """Return the small files, neighbours by the first column of the key, the smallest apart: it takes in new rows."""
    name = log.table.key_names[0] if log.table.key_names else ""
    small = sorted((file for file in log.files.values() if file.size < _SMALL), key=lambda file: file.size)[1:]
    return sorted(small, key=lambda file: (name not in file.least, file.least.get(name)))


def _merged(work: _Merge) -> list[DataFile]:
    schema = work.table.schema
    rows = [read_rows(work.place, work.folder, file, schema, schema.names) for file in work.files]
    return write_rows(work.place, work.folder, pa.concat_tables(rows))


__all__ = ["CHECKPOINT_EVERY", "MOST_RETAINED", "is_due", "maintain"]
