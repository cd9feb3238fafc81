"""The application of a batch to one stored table: this module plans and commits it, and an engine runs its tasks."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from logicalrep.arrow.changes.change_batch import UNREADABLE, ChangeBatch
from logicalrep.arrow.changes.table_changes import TableChanges, in_parts
from logicalrep.arrow.feed.texts import TextError
from logicalrep.arrow.table.rows import SchemaMismatchError
from logicalrep.pipeline.apply.change_rows import change_rows
from logicalrep.pipeline.apply.effects import Reduction, effects_of, reduce_changes, split_truncates, writes_each_part
from logicalrep.pipeline.apply.ending import Ending, may_have_current_rows
from logicalrep.pipeline.apply.events import Positions
from logicalrep.pipeline.apply.reduction import Reduced
from logicalrep.pipeline.apply.rewriting import EQUAL_KEYS, Rewriting, Rewritten, end_files, rewrite, write_versions
from logicalrep.pipeline.engines.engine import Engine, LocalValue, SequentialEngine, Shared
from logicalrep.pipeline.errors import MissingRows, NeedsResync, NeedsTexts
from logicalrep.pipeline.formats.stored_table import Position, StoredTable
from logicalrep.pipeline.index.key_index import IndexedRows
from logicalrep.pipeline.index.key_indexes import RowFinder
from logicalrep.pipeline.schema.forms import END_COLUMN
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.data_files import DataFile, write_rows
from logicalrep.pipeline.storage.parting import partitions_of
from logicalrep.pipeline.storage.storage import Storage, below
from logicalrep.transactions.tags import TRUNCATE


def apply(
    stored: StoredTable,
    changes: Sequence[ChangeBatch],
    position: Position,
    engine: Engine,
    *,
    may_lack_rows: bool = False,
    unfit: Counter[str] | None = None,
    index: RowFinder | None = None,
) -> bool:
    """Apply changes to a table in one commit; return False, without a commit, if the table has all of them already.

    A large batch is applied in parts, so that its memory has a bound; the commit is one all the same.

    Args:
        stored: the table.
        changes: changes of this table, whole transactions in the order of their commits, under the table's description.
        position: the table's position after the commit; its application id identifies the commits that the table has.
        engine: the engine that runs the tasks.
        may_lack_rows: whether updated or deleted rows may be missing, because their partitions are loaded later.
        unfit: a counter, which after the commit has also the values that their column's type cannot hold, by column.
        index: finds rows by the table's keys, and is updated after the commit; None if all keys are read.

    Raises:
        NeedsResync: the changes contradict the table, or have other columns or another replica identity.
        MissingRows: the table lacks a row that a change updates or deletes.
        NeedsTexts: the table has no text column yet for values that a column's type cannot hold.
        ColumnValueError: the column's type cannot hold a value.
        TextError: a value is not valid text.
        DamagedError: a data file of the table is missing.
        WriterError: another replicate process has committed to the table.
        StorageError: the destination cannot be read or written.
    """
    applied = stored.applied(position.application)
    new_changes = TableChanges(batches=changes).between(first=int(applied or 0) + 1).batches
    refuse_unreadable(new_changes)
    if not new_changes:
        return False
    if may_lack_rows:
        # An index that lacks a row shows only by a missing row, which is allowed here: read the keys instead.
        index = None
    files, counts, limits = dict(stored.files), Counter[str](), stored.storage.limits
    max_bytes = limits.batch_bytes // (1 if writes_each_part(stored.table) else limits.combined_parts)
    parts = split_truncates(in_parts(new_changes, max_bytes), stored.table.form)
    for part in effects_of(stored.table, parts, engine, limits.effect_bytes):
        batches, effect = ([], part) if isinstance(part, Reduced) else (part, None)
        # A part changes the files that earlier parts wrote, and which no commit has yet.
        task = ApplyTask(
            stored.storage,
            stored.folder,
            stored.table,
            tuple(files.values()),
            batches,
            may_lack_rows,
            has_index=index is not None,
        )
        rewritten = _apply_part(task, engine, index, effect)
        counts.update(rewritten.unfit)
        previous_files, removed_paths = files, {file.path for file in rewritten.removed}
        files = {path: file for path, file in previous_files.items() if path not in removed_paths}
        files |= {file.path: file for file in rewritten.added}
        # The files of earlier parts that this part has replaced.
        for path in previous_files.keys() - files.keys() - stored.files.keys():
            stored.storage.delete(below(stored.folder, path))
        # Free the memory of this part before the next part is reduced.
        del part, effect
    added = [file for path, file in files.items() if not file.is_same(stored.files.get(path))]
    removed = [file for path, file in stored.files.items() if not file.is_same(files.get(path))]
    stored.commit(added, removed, position)
    if unfit is not None:
        unfit.update(counts)
    if index is not None:
        index.follow(stored)
    return True


def refuse_unreadable(changes: Sequence[ChangeBatch]) -> None:
    """Raise TextError if a change has a value that is not valid text."""
    for batch in changes:
        is_unreadable = batch.ops == UNREADABLE
        if is_unreadable.any():
            columns = np.flatnonzero(batch.unsent()[is_unreadable].any(axis=0)).tolist()
            raise TextError.of(batch.relation.names[index] for index in columns)


def _apply_part(work: ApplyTask, engine: Engine, index: RowFinder | None, effect: Reduced | None) -> Rewritten:
    """Write a part of a batch into files: little work in the task that reduces its changes, else in a task per group
    of files. Rebuild an index that did not find all rows."""
    outcome: Rewritten | Reduced
    if effect is not None:
        outcome = effect
    elif work.table.form in END_COLUMN and work.changes[0].ops[0] == TRUNCATE:
        return _end_all_rows(work, engine)
    else:
        outcome = engine.run_together(_reduce_and_rewrite, work, sum(batch.nbytes for batch in work.changes))
    if isinstance(outcome, Rewritten):
        return outcome
    if _lacks_texts(work.table, outcome):
        raise NeedsTexts(outcome.unfit)
    if index is not None:
        indexed_rows = index.find(work.table, _candidates(work, outcome), outcome.removed_keys)
        rewritten = _rewrite_in_parts(work, outcome, engine, indexed_rows)
        if not indexed_rows or rewritten.found_count == outcome.expected:
            return _checked(work, outcome, rewritten)
        index.rebuild()
        for file in rewritten.added:
            if file.path not in {table_file.path for table_file in work.files}:
                work.storage.delete(below(work.folder, file.path))
    return _checked(work, outcome, _rewrite_in_parts(work, outcome, engine, {}))


def _end_all_rows(work: ApplyTask, engine: Engine) -> Rewritten:
    files = sorted(work.files, key=lambda file: -file.size)
    size = sum(file.size for file in files)
    count = -(-size // work.storage.limits.part_bytes)
    position = Positions.of(work.changes[0])
    endings = [Ending(work.storage, work.folder, work.table, files[number::count], position) for number in range(count)]
    rewritten_parts = engine.run(end_files, endings, size)
    return Rewritten(
        [file for rewritten in rewritten_parts for file in rewritten.added],
        [file for rewritten in rewritten_parts for file in rewritten.removed],
        0,
    )


@dataclass(frozen=True)
class ApplyTask:
    """A part of a batch, with the table that it changes."""

    storage: Storage
    folder: str
    table: TableSpec
    files: Sequence[DataFile]
    """All files of the table, with the files of earlier parts."""
    changes: Sequence[ChangeBatch]
    """The changes; empty if they are reduced already."""
    may_lack_rows: bool
    has_index: bool = False
    """Whether an index will find the rows to remove once the changes are reduced."""


def _reduce_and_rewrite(work: ApplyTask) -> Rewritten | Reduced:
    """Reduce the changes, and apply their effect in the same task if that is little work; else return the effect."""
    if work.table.form == "changes":
        return Rewritten(_change_files(work), [], 0)
    effect = reduce_changes(Reduction(work.table, work.changes))
    if _lacks_texts(work.table, effect):
        return effect
    files = _candidates(work, effect)
    max_bytes = work.storage.limits.in_process_bytes
    is_large = bool(files) if work.has_index else _rewriting_cost(work, effect, files, {}) > max_bytes
    if is_large and work.table.key is not None and not effect.replaces_all:
        return effect
    return _checked(work, effect, rewrite(_rewriting(work, effect, LocalValue(effect), files, files, writes_new=True)))


def _lacks_texts(table: TableSpec, effect: Reduced) -> bool:
    return table.with_texts_of(effect.unfit) is not table


def _rewriting_cost(
    work: ApplyTask, effect: Reduced, files: Sequence[DataFile], indexed_rows: Mapping[str, IndexedRows]
) -> int:
    """Return the cost of changing the files, as the number of bytes whose rewriting takes as long."""
    rows, limits = sum(file.rows for file in work.files), work.storage.limits
    if not work.table.marks_rows or limits.marked_share * len(effect.removed_keys) >= rows:
        return sum(file.size for file in files)
    read_bytes = {path: limits.row_read_bytes * len(rows.numbers) for path, rows in indexed_rows.items()}
    return sum(min(file.size, read_bytes.get(file.path, file.size)) for file in files) // limits.marked_weight


def _change_files(work: ApplyTask) -> list[DataFile]:
    stored = work.table.stored
    try:
        batches = change_rows(work.table, work.changes, stored)
    except SchemaMismatchError as error:
        raise NeedsResync(error.description) from None
    rows = pa.Table.from_batches(batches, stored)
    return write_rows(work.storage, work.folder, stored, rows, work.table.file_partitions)


def _rewrite_in_parts(
    work: ApplyTask, effect: Reduced, engine: Engine, indexed_rows: Mapping[str, IndexedRows]
) -> Rewritten:
    """Rewrite files in tasks of about the same size.

    `indexed_rows` has the rows to compare in each indexed file, by path; the tasks search all rows of other files.
    """
    files = [
        file
        for file in _candidates(work, effect)
        if file.path not in indexed_rows or len(indexed_rows[file.path].numbers)
    ]
    files.sort(key=lambda file: -file.size)
    size, limits = _rewriting_cost(work, effect, files, indexed_rows), work.storage.limits
    if max(size, effect.nbytes) <= limits.in_process_bytes:
        item = _rewriting(work, effect, LocalValue(effect), files, files, writes_new=True, indexed_rows=indexed_rows)
        return _merge_rewritten(engine.run(rewrite, [item], size))
    # A table without a key removes a number of equal rows from all files together: one task.
    count = max(-(-size // limits.part_bytes), 1) if work.table.key is not None else 1
    parts = [files[number::count] for number in range(count)]
    # Rows that are too large to send to other processes are written in this one.
    runner = SequentialEngine() if effect.rows.nbytes > limits.sent_bytes else engine
    with runner.share(effect) as shared:
        items = [
            _rewriting(work, effect, shared, part, files, writes_new=not number, indexed_rows=indexed_rows)
            for number, part in enumerate(parts)
        ]
        rewritten_parts = runner.run(rewrite, items, max(size, effect.nbytes))
    rows = [rewritten.rows for rewritten in rewritten_parts if rewritten.rows is not None]
    if rows:
        new_files = write_versions(work.storage, work.folder, work.table, pa.concat_tables(rows))
        rewritten_parts = [*rewritten_parts, Rewritten(new_files, [], 0)]
    return _merge_rewritten(rewritten_parts)


def _merge_rewritten(parts: Sequence[Rewritten]) -> Rewritten:
    added, removed = [file for part in parts for file in part.added], [file for part in parts for file in part.removed]
    return Rewritten(added, removed, sum(part.found_count for part in parts))


def _rewriting(
    work: ApplyTask,
    effect: Reduced,
    shared: Shared[Reduced],
    files: Sequence[DataFile],
    candidates: Sequence[DataFile],
    *,
    writes_new: bool,
    indexed_rows: Mapping[str, IndexedRows] = {},
) -> Rewriting:
    """Return the task that rewrites `files`; with `writes_new` it also writes the new rows.

    The new rows of a partition go into its largest small file, if it has one, so that batches do not leave many files.
    """
    grown_files: dict[object, DataFile] = {}
    marks = work.table.marks_rows
    if writes_new and not effect.replaces_all:
        small = [
            file
            for file in work.files
            if file.size <= work.storage.limits.small_file_bytes
            and may_have_current_rows(file, work.table.form)
            and (file in files or file not in candidates)
        ]
        growing = partitions_of(work.table.file_partitions, effect.rows)
        small.sort(key=lambda file: file.size, reverse=True)
        grown_files = {file.partition: file for file in small if file.partition in growing}
        files = [*files, *(file for file in grown_files.values() if file not in files)]
    returns_rows = marks and len(files) < len(candidates)
    rows_of_files = {file.path: indexed_rows[file.path] for file in files if file.path in indexed_rows}
    return Rewriting(
        work.storage,
        work.folder,
        work.table,
        files,
        shared,
        writes_new,
        [*grown_files.values()],
        returns_rows,
        rows_of_files,
    )


def _checked(work: ApplyTask, effect: Reduced, rewritten: Rewritten) -> Rewritten:
    """Return the result of all tasks of a part. Raises MissingRows if they did not find every row to remove."""
    expected = effect.expected
    if rewritten.found_count > expected:
        raise NeedsResync(EQUAL_KEYS)
    if rewritten.found_count != expected and not work.may_lack_rows:
        raise MissingRows(
            f"{expected - rewritten.found_count} of {expected} updated or deleted rows are missing in the copy of "
            f"{work.table.relation}"
        )
    return replace(
        rewritten, removed=list(work.files) if effect.replaces_all else rewritten.removed, unfit=effect.unfit
    )


def _candidates(work: ApplyTask, effect: Reduced) -> list[DataFile]:
    """Return the files that may have rows to remove, by the bounds of their keys."""
    if effect.replaces_all or not len(effect.removed_keys):
        return []
    table_files = [file for file in work.files if effect.are_marked or may_have_current_rows(file, work.table.form)]
    name = work.table.key_names[0]
    if len(work.table.key_names) > 1 or effect.removed_keys.type != work.table.schema.field(name).type:
        return table_files
    try:
        removed_keys = effect.removed_keys.sort().to_pylist()
    except OverflowError:
        # Dates beyond Python's range.
        return table_files

    def may_have(file: DataFile) -> bool:
        statistics = file.statistics
        if name not in statistics.least:
            # Without bounds, the file has no keys but NULL, or no statistics.
            return name not in statistics.nulls or statistics.nulls[name] < file.rows
        index = bisect_left(removed_keys, statistics.least[name])
        return index < len(removed_keys) and bool(removed_keys[index] <= statistics.greatest[name])

    return [file for file in table_files if may_have(file)]
