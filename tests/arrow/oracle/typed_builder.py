"""The rows of a typed table, made change by change: the readable oracle of the columnar makers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from logicalrep.arrow.feed.texts import Texts
from logicalrep.arrow.table.rows import CHANGE_COLUMNS, ColumnCheck, with_way_out
from logicalrep.transactions.changes import Change, old_columns, resolved
from logicalrep.transactions.relations import SchemaChange, TableDescription
from logicalrep.transactions.tags import NULL, UNCHANGED
from logicalrep.transactions.transaction import NonTransactionalMessage, PreparedTransaction, Transaction
from logicalrep.values import Column, ColumnValueError, arrow_array
from logicalrep_protocol.v1 import TupleData
from logicalrep_protocol.versions import Delete, Insert, Truncate, Update
from logicalrep_runtime.scalars import UNIX_EPOCH
from tests.arrow.oracle.feed_builder import signed

_Described = tuple[TableDescription | None, list[int | None], tuple[Column, ...]]


class TypedBuilder:
    """Rows of a typed table; the changes of other tables are left out."""

    def __init__(self, schema: Any, check: ColumnCheck, encoding: str) -> None:
        """Take the Arrow schema of the checked table, and the session's encoding."""
        self._schema = schema
        self._check = check
        self._names = check.names
        self._texts = Texts(encoding, check.form.text_columns, check.form.catalog)
        # The last description, the place of each name in it, and its columns.
        self._described: _Described = None, [None] * len(self._names), ()
        self._clear()

    def _clear(self) -> None:
        self.rows = 0
        self.size = 0
        self._values: list[list[Any]] = [[] for _ in self._names]
        self._meta: list[tuple[Any, ...]] = []
        # Each name's values under earlier descriptions: types that are one in Spark may be loaded differently.
        self._earlier: list[list[Any]] = []

    def add(self, change: Change, transaction: Transaction | PreparedTransaction) -> None:
        relation = change.relation
        if relation is None or not self._check.is_ours(relation):
            return
        message = change.message
        if isinstance(message, Truncate):
            # A truncate has no values, so any description will do.
            self._append("truncate", None, [], change, transaction)
            return
        if self._described[0] is not relation:
            self._bind(relation, transaction)
        if isinstance(message, Update | Delete) and message.old is not None:
            # NULL in a key's tuple outside of the key means absent; both are null here.
            kept = set(old_columns(relation, message))
            kinds = bytes(kind if at in kept else NULL for at, kind in enumerate(message.old.kinds))
            old = TupleData(kinds=kinds, values=message.old.values)
            kind = "delete" if isinstance(message, Delete) else "update_preimage"
            self._append(kind, old, [], change, transaction)
        if isinstance(message, Insert | Update):
            new = resolved(message)
            unchanged: list[str] = []
            if UNCHANGED in new.kinds:
                unchanged = [name for name, kind in zip(relation.names, new.kinds, strict=True) if kind == UNCHANGED]
            kind = "insert" if isinstance(message, Insert) else "update_postimage"
            self._append(kind, new, unchanged, change, transaction)

    def add_schema_change(self, change: SchemaChange, transaction: Transaction | PreparedTransaction) -> None:
        """Do nothing: each row is bound to its table's description by itself."""

    def add_message(self, event: NonTransactionalMessage) -> None:
        """Do nothing: a table has no messages."""

    def finish(self) -> Any:
        self._keep()
        arrays = [pa.concat_arrays(parts) for parts in zip(*self._earlier, strict=True)]
        for name, column_values in zip(CHANGE_COLUMNS, zip(*self._meta, strict=True), strict=True):
            arrays.append(pa.array(column_values, self._schema.field(name).type))
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        self._clear()
        return batch

    def _keep(self) -> None:
        """Make arrays of the values under the last description."""
        _, places, columns = self._described
        arrays = []
        for name, values, place in zip(self._names, self._values, places, strict=True):
            type_ = self._schema.field(name).type
            try:
                column = None if place is None else columns[place]
                array = pa.nulls(len(values), type_) if column is None else arrow_array(column, values, for_spark=True)
            except ColumnValueError as error:
                raise with_way_out(error) from None
            arrays.append(array if array.type == type_ else array.cast(type_))
            values.clear()
        self._earlier.append(arrays)

    def _append(
        self,
        kind: str,
        row: TupleData | None,
        unchanged: list[str],
        change: Change,
        transaction: Transaction | PreparedTransaction,
    ) -> None:
        _, places, columns = self._described
        for values, place in zip(self._values, places, strict=True):
            value = None
            if row is not None and place is not None:
                raw = row.values[place]
                if raw is not None:
                    try:
                        value = columns[place].load(row.kinds[place], raw)
                    except ColumnValueError as error:
                        raise with_way_out(error) from None
                    self.size += len(raw)
            values.append(value)
        if isinstance(transaction, Transaction):
            commit = signed(transaction.commit_lsn), transaction.commit_timestamp + UNIX_EPOCH
        else:
            commit = signed(transaction.prepare_lsn), transaction.prepare_timestamp + UNIX_EPOCH
        self._meta.append((kind, *commit, change.ordinal, unchanged))
        self.rows += 1

    def _bind(self, relation: TableDescription, transaction: Transaction | PreparedTransaction) -> None:
        """Find the columns in a table's description, which must fit the stream's schema."""
        at = transaction.commit_lsn if isinstance(transaction, Transaction) else transaction.prepare_lsn
        self._check.bind(relation, at)
        if self.rows:
            self._keep()
        columns = self._texts.columns(relation)
        places = {name: place for place, name in enumerate(relation.names)}
        self._described = relation, [places.get(name) for name in self._names], columns
