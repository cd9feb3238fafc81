"""The applying of a batch of one table's changes: planned here, done in tasks, committed here."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from logicalrep.arrow.table.rows import SchemaMismatchError
from logicalrep.tables.apply.events import events_of
from logicalrep.tables.apply.reduction import NeedsResync, Reduced, reduced
from logicalrep.tables.apply.rewriting import Rewriting, Rewritten, rewrite
from logicalrep.tables.delta.data_files import DataFile
from logicalrep.tables.delta.delta_log import DeltaLog
from logicalrep.tables.delta.place import Place
from logicalrep.tables.delta.replicated_table import ReplicatedTable
from logicalrep.tables.tasks import Tasks
from logicalrep_runtime.scalars import Lsn

_OF_ONE_TASK = 32 << 20
"""The most bytes of files that the task which reduces the changes also rewrites."""
_SMALL = 2 << 20
"""The most bytes of a file that is written anew for new rows to be in it."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What applying has done."""

    version: int
    """The table's version."""
    changes: int
    """The number of changes."""
    bytes_written: int


def apply(log: DeltaLog, changes: pa.Table, upto: Lsn, application: str, tasks: Tasks) -> Applied | None:
    """Apply changes to a table in one commit; None, and no commit, if the table has them all.

    Args:
        log: the table.
        changes: rows of the change feed, all of this table, whole transactions in the order of their commits.
        upto: the table has all commits up to this LSN then.
        application: the application id, whose LSN tells which commits the table has already.
        tasks: the runner of the work.

    Raises:
        NeedsResync: the changes do not fit the table.
        ColumnValueError: the column's type cannot hold a value.
        PlaceError: the place cannot be read or written.
    """
    applied = log.applied(application)
    if applied is not None:
        changes = changes.filter(pc.greater(changes["commit_lsn"], pa.scalar(int(applied), pa.int64())))
    if not changes.num_rows:
        return None
    first = _First(log.place, log.folder, log.table, tuple(log.files.values()), changes.to_batches())
    (done,) = tasks.run(_reduce_and_rewrite, [first])
    if isinstance(done, Reduced):
        done = _in_parts(first, done, tasks)
    log.commit(done.added, done.removed, application, upto)
    return Applied(log.version, changes.num_rows, sum(file.size for file in done.added))


@dataclass(frozen=True)
class _First:
    place: Place
    folder: str
    table: ReplicatedTable
    files: Sequence[DataFile]
    batches: Sequence[pa.RecordBatch]


def _reduce_and_rewrite(work: _First) -> Rewritten | Reduced:
    """Reduce the changes, and apply them too if that is little work."""
    try:
        effect = reduced(events_of(work.table, work.batches))
    except SchemaMismatchError as error:
        raise NeedsResync(error.description) from None
    files = _candidates(work, effect)
    if sum(file.size for file in files) > _OF_ONE_TASK and work.table.key is not None and not effect.replaces_all:
        return effect
    return _checked(work, effect, [rewrite(_rewriting(work, effect, files, files, writes_new=True))])


def _in_parts(work: _First, effect: Reduced, tasks: Tasks) -> Rewritten:
    """Rewrite many files in tasks, each with a part of about the same size."""
    files = sorted(_candidates(work, effect), key=lambda file: -file.size)
    count = -(-sum(file.size for file in files) // _OF_ONE_TASK)
    parts = [files[number::count] for number in range(count)]
    rewritings = [_rewriting(work, effect, part, files, writes_new=not number) for number, part in enumerate(parts)]
    return _checked(work, effect, tasks.run(rewrite, rewritings))


def _rewriting(
    work: _First, effect: Reduced, files: Sequence[DataFile], of_all: Sequence[DataFile], *, writes_new: bool
) -> Rewriting:
    grown = None
    if writes_new and not effect.replaces_all:
        small = [file for file in work.files if file.size <= _SMALL and (file in files or file not in of_all)]
        grown = min(small, key=lambda file: file.size, default=None)
        if grown is not None and grown not in files:
            files = [*files, grown]
    return Rewriting(work.place, work.folder, work.table, files, effect, writes_new, grown)


def _checked(work: _First, effect: Reduced, parts: Sequence[Rewritten]) -> Rewritten:
    found, expected = sum(part.found for part in parts), int(effect.gone_counts.sum())
    if found != expected:
        raise NeedsResync(
            f"{expected - found} of {expected} rows that were updated or deleted are not in the table of "
            f"{work.table.relation}"
        )
    removed = [file for part in parts for file in part.removed]
    if effect.replaces_all:
        removed = list(work.files)
    return Rewritten([file for part in parts for file in part.added], removed, found)


def _candidates(work: _First, effect: Reduced) -> list[DataFile]:
    """Return the files that may have rows which are gone, by the bounds of their keys."""
    if effect.replaces_all or not len(effect.gone):
        return []
    name = work.table.key_names[0]
    if len(work.table.key_names) > 1 or effect.gone.type != work.table.schema.field(name).type:
        return list(work.files)
    gone = effect.gone.sort().to_pylist()

    def may_have(file: DataFile) -> bool:
        if name not in file.least:
            return True
        place = bisect_left(gone, file.least[name])
        return place < len(gone) and bool(gone[place] <= file.greatest[name])

    return [file for file in work.files if may_have(file)]


__all__ = ["Applied", "NeedsResync", "apply"]
