"""The upkeep of a Delta table: checkpoints of its log, small files merged, old files and old log entries removed.

Each step is small, so that it can give way to batches.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import pyarrow as pa

from logicalrep.pipeline.engines.engine import Engine
from logicalrep.pipeline.formats.delta.delta_log import DeltaLog
from logicalrep.pipeline.spec.forms import END
from logicalrep.pipeline.spec.table_spec import TableSpec
from logicalrep.pipeline.storage import data_files
from logicalrep.pipeline.storage.data_files import DataFile, read_rows, write_rows
from logicalrep.pipeline.storage.storage import Storage

CHECKPOINT_EVERY = 50
"""The number of commits after which the log gets a checkpoint."""
_CANNOT_WAIT = 2
"""The multiple of `CHECKPOINT_EVERY` commits after which a checkpoint comes before batches."""
MOST_RETAINED = 20
"""Files that are in the last version no more take at most this multiple of those that are, and `_LEAST_RETAINED`."""
_LEAST_RETAINED = 256 << 20
_MOST_DELETED = 200
"""The most files that are deleted in one step."""
_SMALL = 16 << 20
"""Files below this size are merged."""
_MERGED = range(8, 17)
"""The least and the most number of files that are merged at once."""


@dataclass(frozen=True)
class _Merge:
    storage: Storage
    folder: str
    table: TableSpec
    files: tuple[DataFile, ...]


def is_due(log: DeltaLog, keep_hours: float) -> bool:
    """Return whether there is something to do for a table."""
    return (
        needs_checkpoint(log)
        or not log.removed.is_complete
        or _has_surplus(log, keep_hours)
        or len(_small(log)) >= _MERGED.start
    )


def cannot_wait(log: DeltaLog, keep_hours: float) -> bool:
    """Return whether something is so much due that it comes before batches: old files, or a log without checkpoint."""
    return (
        log.version - log.checkpoint >= _CANNOT_WAIT * CHECKPOINT_EVERY
        or not log.removed.is_complete
        or _has_surplus(log, keep_hours)
    )


def needs_checkpoint(log: DeltaLog) -> bool:
    """Return whether the log has so many commits that it is read slowly without another checkpoint."""
    return log.version - log.checkpoint >= CHECKPOINT_EVERY


def maintain(log: DeltaLog, keep_hours: float, engine: Engine) -> None:
    """Do what is due for a table, one step of each kind.

    Args:
        log: the table.
        keep_hours: the hours for which old versions can be read, as far as `MOST_RETAINED` allows.
        engine: the runner of the merging.
    """
    small = _small(log)
    if len(small) >= _MERGED.start:
        (done,) = engine.run(_merge, [_Merge(log.storage, log.folder, log.table, tuple(small[: _MERGED.stop - 1]))])
        log.commit_merged(done.added, done.removed)
    if not log.removed.is_complete:
        log.removed.recall(log.version, log.files, keep_hours)
    if needs_checkpoint(log):
        log.write_checkpoint()
    for _ in range(_MOST_DELETED):
        if not _has_surplus(log, keep_hours):
            break
        log.removed.delete_oldest()


def _has_surplus(log: DeltaLog, keep_hours: float) -> bool:
    """Return whether a removed file is to be deleted."""
    there = sum(file.size for file in log.files.values())
    is_old = log.removed.oldest < time.time() - keep_hours * 3600
    return is_old or log.removed.size > MOST_RETAINED * there + _LEAST_RETAINED


def _small(log: DeltaLog) -> list[DataFile]:
    """Return the files to be merged, neighbours by the first column of the key.

    The smallest stays apart, as it takes in new rows. A file of narrow rows, or of such that compress well, is small on
    the disk and full all the same: merged with others it would become as many files again.
    """
    name = log.table.key_names[0] if log.table.key_names else ""
    small = [file for file in log.files.values() if file.size < _SMALL and not file.is_full]
    small = sorted(small, key=lambda file: file.size)[1:]
    if log.table.form == "history":
        # Ended versions of rows never change; current ones do. They are kept in different files.
        past = [file for file in small if not file.statistics.nulls.get(END["history"], 1)]
        small = max(past, [file for file in small if file not in past], key=len)
    return sorted(small, key=lambda file: (name not in file.statistics.least, file.statistics.least.get(name)))


@dataclass(frozen=True)
class _Merged:
    added: list[DataFile]
    removed: tuple[DataFile, ...]


def _merge(work: _Merge) -> _Merged:
    """Merge so many of the files that their rows fill one: each merge leaves fewer files that are not full."""
    schema, size = work.table.stored, 0
    rows: list[pa.Table] = []
    for file in work.files:
        rows.append(read_rows(work.storage, work.folder, file, schema, schema.names))
        size += rows[-1].nbytes
        if size >= data_files.MOST_BYTES:
            break
    added = write_rows(work.storage, work.folder, pa.concat_tables(rows))
    return _Merged(added, work.files[: len(rows)])
