"""One table's changes in its own columns and types, with the columns that Spark's and Delta's change feeds have."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import Any

import pyarrow as pa

from logicalrep.arrow.feed.rows import Texts, signed
from logicalrep.arrow.row_form import CHANGE_FIELDS, RowForm, TableForm
from logicalrep.transactions.changes import Change, old_columns, resolved
from logicalrep.transactions.logs import warn
from logicalrep.transactions.relations import OLDER_ROWS, SchemaChange, TableDescription, added_columns
from logicalrep.transactions.table_identity import is_of_table
from logicalrep.transactions.tags import NULL, UNCHANGED
from logicalrep.transactions.transaction import NonTransactionalMessage, PreparedTransaction, Transaction
from logicalrep.values import Column, ColumnValueError, TypeCatalog, arrow_array
from logicalrep_protocol.v1 import TupleData
from logicalrep_protocol.versions import Delete, Insert, Truncate, Update
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import UNIX_EPOCH

CHANGE_COLUMNS = tuple(field.name for field in CHANGE_FIELDS)
"""The columns behind a typed table's own."""


class SchemaMismatchError(LogicalRepError, ValueError):
    """A row of a table whose columns differ from those that the stream began with; the text tells the remedy."""

    code = "SCHEMA_CHANGED"


def own_columns(
    table: TableDescription, text_columns: Container[str] = (), catalog: TypeCatalog | None = None
) -> tuple[Column, ...]:
    """Return a table's columns with their types. Raises SchemaMismatchError if one has the name of a CHANGE_COLUMN."""
    columns = Texts("utf-8", text_columns, catalog).columns(table)
    taken = sorted(set(CHANGE_COLUMNS) & {column.name for column in columns})
    if taken:
        raise SchemaMismatchError(
            f"{table} has a column {', '.join(taken)}, a name that the option table uses for a column of its own: read "
            "the table without that option"
        )
    return columns


def table_form(table: TableDescription, catalog: TypeCatalog, form: RowForm) -> RowForm:
    """Return a form for one table in its own columns and types, which is otherwise like `form`.

    Args:
        table: the table's description, from its Relation message or from `publications.published_relation`.
        catalog: the server catalog's facts on the table's types; an empty TypeCatalog if there is no server to ask.
        form: the form whose batch size and memory limit are kept.

    Raises:
        SchemaMismatchError: a column has a name that the form uses itself.

    Example:
        >>> form = table_form(published_relation(connection, "public.orders"), TypeCatalog(), feed_form())
    """
    columns = own_columns(table, catalog=catalog)
    own = [pa.field(column.name, column.type.arrow_type(for_spark=True)) for column in columns]
    return replace(
        form,
        schema=pa.schema([*own, *CHANGE_FIELDS]),
        table=TableForm(
            table=table.table,
            column_types={column.name: column.type.spark_type for column in columns},
            catalog=catalog,
            relation_id=table.relation_id,
        ),
    )


def with_way_out(error: ColumnValueError) -> ColumnValueError:
    """Return the same error with a remedy for the stream added."""
    way = f"the option text_columns = {error.column} reads the column as text"
    if error.kind == "b":
        way = "leave out the option binary"
    return ColumnValueError(
        f"{error.reason}; {way}",
        type_name=error.type_name,
        text=error.text,
        kind=error.kind,
        table=error.table,
        column=error.column,
    )


class ColumnCheck:
    """Compares a table's descriptions with the schema that the stream began with."""

    def __init__(self, form: TableForm) -> None:
        self.form = form
        self.names = list(form.column_types)
        """The table's own columns."""
        self._texts = Texts("utf-8", form.text_columns, form.catalog)
        self._checked: TableDescription | None = None

    def is_ours(self, relation: TableDescription) -> bool:
        """Return whether a description is the table's. Raises TableChangedError for another table of its name."""
        return is_of_table(relation, self.form.table, self.form.relation_id)

    def bind(self, relation: TableDescription, at: int) -> tuple[Column, ...]:
        """Return the columns of a description valid at an LSN. Raises SchemaMismatchError if it does not fit."""
        columns = self._texts.columns(relation)
        if relation is self._checked:
            return columns
        for column in columns:
            if column.name not in self.form.column_types:
                raise SchemaMismatchError(
                    f"{relation} has the column {column.name} ({column.type.name}) at {at}, which the stream's schema "
                    "does not have: restart the query with the option new_columns = null to read it, NULL in older "
                    f"rows ({OLDER_ROWS}); if it has been dropped since, pass .schema(...) with this column as well"
                )
            expected = self.form.column_types[column.name]
            if column.type.spark_type != expected:
                raise SchemaMismatchError(
                    f"{relation}.{column.name} is {column.type.name} at {at}, in Spark {column.type.spark_type}, "
                    f"not {expected} as in the stream's schema: restart the query; to read the changes committed "
                    f"before the type was changed as well, set the option text_columns = {column.name}"
                )
        missing = [name for name in self.names if name not in relation.names]
        if missing and self.form.new_columns == "error":
            raise SchemaMismatchError(
                f"{relation} has no column {', '.join(missing)} at {at}, unlike the stream's schema: set the option "
                "new_columns = null to read NULL there"
            )
        if self._checked is not None:
            warn(added_columns(self._checked, relation))
        self._checked = relation
        return columns


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
