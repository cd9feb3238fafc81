"""One table's changes in its own columns and types, with the columns of Spark's and Delta's change feeds."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

import pyarrow as pa

from logicalrep.arrow.feed.texts import Texts
from logicalrep.arrow.row_form import CHANGE_FIELDS, RowForm, TableForm
from logicalrep.transactions.logs import warn
from logicalrep.transactions.relations import OLDER_ROWS, TableDescription, added_columns
from logicalrep.transactions.table_identity import is_of_table
from logicalrep.values import Column, ColumnValueError, TypeCatalog
from logicalrep_runtime.errors import LogicalRepError

CHANGE_COLUMNS = tuple(field.name for field in CHANGE_FIELDS)


class SchemaMismatchError(LogicalRepError, ValueError):
    """A row's table has other columns than at the start of the stream; the text names the remedy."""

    code = "SCHEMA_CHANGED"


def own_columns(
    table: TableDescription, text_columns: Container[str] = (), catalog: TypeCatalog | None = None
) -> tuple[Column, ...]:
    columns = Texts("utf-8", text_columns, catalog).columns(table)
    taken = sorted(set(CHANGE_COLUMNS) & {column.name for column in columns})
    if taken:
        raise SchemaMismatchError(
            f"{table} has a column {', '.join(taken)}, a name that the option table uses for a column of its own: read "
            "the table without that option"
        )
    return columns


def table_form(table: TableDescription, catalog: TypeCatalog, form: RowForm) -> RowForm:
    """Return a form for one table in its own columns and types, otherwise equal to `form`.

    Args:
        table: the table's description, from its Relation message or from `publications.published_relation`.
        catalog: the server catalog's facts on the table's types; an empty TypeCatalog without a server.
        form: the form that supplies batch size and memory limit.

    Raises:
        SchemaMismatchError: a column has a name that the form uses itself.

    Example:
        >>> from logicalrep import v1
        >>> from logicalrep.transactions.relations import TableDescription
        >>> columns = (v1.Column(flags=1, name="id", type_id=23, type_modifier=-1),)
        >>> orders = TableDescription(
        ...     relation_id=1,
        ...     schema="public",
        ...     name="orders",
        ...     replica_identity=v1.ReplicaIdentity.DEFAULT,
        ...     columns=columns,
        ...     types=(None,),
        ... )
        >>> table_form(orders, TypeCatalog(), feed_form()).schema.names[:2]
        ['id', '_change_type']
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


def with_way_out(error: ColumnValueError, way_out: str | None = None) -> ColumnValueError:
    way = way_out or f"the option text_columns = {error.column} reads the column as text"
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
    def __init__(self, form: TableForm) -> None:
        self.form = form
        self.names = list(form.column_types)
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
