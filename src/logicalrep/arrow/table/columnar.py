"""A typed table in columns, a chunk of messages at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.message_batch import MessageBatch
from logicalrep.arrow.positioned_rows import PositionedRows
from logicalrep.arrow.row_form import RowForm
from logicalrep.arrow.table.rows import ColumnCheck
from logicalrep.arrow.table.table_decoder import DecodedTable, TableDecoder
from logicalrep.arrow.table.typed_rows import DELETE, INSERT, POSTIMAGE, PREIMAGE, TRUNCATE, refuse_unfit, typed_batch
from logicalrep.arrow.transaction_index import IndexedBatch, TransactionIndex
from logicalrep.transactions import tags
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.tags import UNCHANGED
from logicalrep.values import Column
from logicalrep_protocol.columnar import Session
from logicalrep_runtime.columnar.located import Int64s, Ints
from logicalrep_runtime.scalars import Lsn


class ColumnarTyped:
    def __init__(self, form: RowForm, session: Session, *, start: int | None, end: int | None) -> None:
        assert form.table is not None
        self._schema = form.schema
        self._check = check = ColumnCheck(form.table)
        self._decoder = TableDecoder(
            session,
            text_columns=check.form.text_columns,
            for_spark=True,
            catalog=check.form.catalog,
            wanted=check.is_ours,
        )
        self._runs = TransactionIndex(start, end)

    @property
    def relations(self) -> Iterable[TableDescription]:
        return self._decoder.relations.values()

    def rows(self, messages: MessageBatch, gids: Mapping[int, str] | None = None) -> Iterator[PositionedRows]:
        stop = self._runs.supported(messages.tags)
        if stop:
            yield from self._chunk(messages[:stop])
        if stop < len(messages):
            self._runs.refuse(stop, int(messages.tags[stop]))

    def _chunk(self, messages: MessageBatch) -> Iterator[PositionedRows]:
        run = self._runs.next(messages)
        tables = self._decoder.decode(messages.array)
        # A Truncate is a row of nulls, between the rows of the changes before and after it.
        position = 0
        for at in [*self._take_truncates(messages, run), len(messages)]:
            for table in tables:
                yield from self._rows(table, run, position, at)
            if at < len(messages):
                yield self._batch(
                    [pa.nulls(1, field.type) for field in self._own()], np.array([TRUNCATE]), np.array([at]), run, []
                )
            position = at

    def _own(self) -> list[pa.Field]:
        return [self._schema.field(name) for name in self._check.names]

    def _take_truncates(self, messages: MessageBatch, run: IndexedBatch) -> Iterator[int]:
        for at in np.flatnonzero((messages.tags == tags.TRUNCATE) & run.in_range).tolist():
            for number, relation in enumerate(self._decoder.truncated[at]):
                if self._check.is_ours(relation):
                    run.ordinals[at] += number
                    yield at

    def _rows(self, table: DecodedTable, run: IndexedBatch, first: int, last: int) -> Iterator[PositionedRows]:
        rows = table.rows.to_numpy(zero_copy_only=False)
        chosen = np.flatnonzero((rows >= first) & (rows < last) & run.in_range[rows])
        if not len(chosen):
            return
        described = {column.name: column for column in self._bind(table.relation, run, int(rows[chosen[0]]))}
        distinct_tags = np.frombuffer(b"".join(tag.as_py().encode() for tag in table.tags.unique()), dtype=np.uint8)
        kinds = table.tags.dictionary_encode().indices.to_numpy(zero_copy_only=False)
        tag = distinct_tags[kinds][chosen]
        old_kinds = table.old_kinds.take(pa.array(chosen))
        has_old = old_kinds.is_valid().to_numpy(zero_copy_only=False)
        new, old = chosen[tag != tags.DELETE], chosen[has_old]
        # Old and new rows are merged: an update's old row comes before its new one.
        order = np.argsort(np.concatenate((old * 2, new * 2 + 1)), kind="stable")
        change_type = np.concatenate(
            (
                np.where(tag[has_old] == tags.DELETE, DELETE, PREIMAGE),
                np.where(tag[tag != tags.DELETE] == tags.INSERT, INSERT, POSTIMAGE),
            )
        )[order]
        whole = table.old_kinds.to_numpy(zero_copy_only=False) == chr(tags.WHOLE_ROW)
        columns = []
        unchanged: list[tuple[str, NDArray[np.bool_]]] = []
        for field in self._own():
            ordinal = table.new.values.schema.get_field_index(field.name)
            if ordinal < 0:
                columns.append(pa.nulls(len(order), field.type))
                continue
            refuse_unfit(table.old, described[field.name], ordinal, old)
            source = new + len(rows)
            states = table.new.states.column(ordinal).to_numpy(zero_copy_only=False)[new]
            missing = states == UNCHANGED
            if missing.any():
                # A value that was not sent is taken from the old row if that is whole.
                source = np.where(missing & whole[new], new, source)
                is_unsent = np.concatenate((np.zeros(len(old), bool), missing & ~whole[new]))[order]
                if is_unsent.any():
                    unchanged.append((field.name, is_unsent))
            refuse_unfit(table.new, described[field.name], ordinal, new[~missing])
            if not len(old) and not missing.any():
                array = table.new.values.column(ordinal)
                columns.append(array if len(new) == len(array) else array.take(pa.array(new)))
            else:
                both = pa.concat_arrays([table.old.values.column(ordinal), table.new.values.column(ordinal)])
                columns.append(both.take(pa.array(np.concatenate((old, source))[order])))
        yield self._batch(columns, change_type, rows[np.concatenate((old, new))[order]], run, unchanged)

    def _batch(
        self,
        columns: list[pa.Array],
        change_type: Ints,
        rows: Int64s,
        run: IndexedBatch,
        unchanged: list[tuple[str, NDArray[np.bool_]]],
    ) -> PositionedRows:
        transaction = run.transaction_of[rows]
        of_commits = run.final_lsn[transaction], run.commit_timestamp[transaction], run.ordinals[rows]
        return PositionedRows(typed_batch(self._schema, columns, change_type, *of_commits, unchanged), of_commits[0])

    def _bind(self, relation: TableDescription, run: IndexedBatch, row: int) -> tuple[Column, ...]:
        at = Lsn(int(run.final_lsn[run.transaction_of[row]]) % (1 << 64))
        return self._check.bind(relation, at)


__all__ = ["ColumnarTyped"]
