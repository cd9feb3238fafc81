"""Queries for rows by keys, and for keys without a row, that run no other role's code. Needs psycopg 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from logicalrep.postgres.server import Connection, query_scalar, server_major
from logicalrep.postgres.table_rows.conditions import ComparedColumn, Condition, ConditionError, columns_of
from logicalrep.transactions.table_names import TableName

# A column's base type if it is built-in (OID below 16384): its operators and casts are built-in; the base type to which
# texts can be converted; and the collation. A cast to a domain would run its CHECK, and casts of other types may belong
# to their owners. Only superusers can define the input functions of base types and enums.
_KEY_COLUMNS = """
WITH RECURSIVE bases AS (
    SELECT atttypid AS oid FROM pg_attribute WHERE attrelid = %(oid)s AND attname = %(name)s
    UNION ALL
    SELECT typbasetype FROM bases JOIN pg_type USING (oid) WHERE typbasetype <> 0
)
SELECT (
        SELECT format_type(oid, -1) FROM bases JOIN pg_type USING (oid) WHERE typbasetype = 0 AND oid < 16384
    ), (
        SELECT format_type(oid, -1) FROM bases JOIN pg_type USING (oid)
        WHERE typbasetype = 0 AND typcategory <> 'A' AND (oid < 16384 OR typtype IN ('b', 'e'))
    ), (
        SELECT format('%%I.%%I', nspname, collname) FROM pg_attribute
        JOIN pg_collation AS sorting ON sorting.oid = attcollation
        JOIN pg_namespace AS namespace ON namespace.oid = collnamespace
        WHERE attrelid = %(oid)s AND attname = %(name)s
    ), EXISTS (
        SELECT FROM bases JOIN pg_type USING (oid) WHERE typbasetype = 0 AND typtype = 'e'
    )
"""
_TREE = """
WITH RECURSIVE tree AS (
    SELECT %s::oid AS oid UNION ALL SELECT inhrelid FROM tree JOIN pg_inherits ON inhparent = tree.oid AND {}
)
SELECT oid FROM tree
"""
_CONDITION_ERRORS = (
    psycopg.ProgrammingError,
    psycopg.DataError,
    psycopg.NotSupportedError,
    psycopg.errors.InvalidTransactionState,
)


@dataclass(frozen=True, slots=True)
class KeyColumn:
    name: str
    own_type: str | None
    """The built-in base type; None for other types, whose values are compared as texts."""
    sent_type: str | None
    """The element type of arrays of texts sent to the server; None if the type cannot be sent."""
    collation: str | None
    is_enum: bool

    @property
    def compared(self) -> ComparedColumn | None:
        """The type for comparisons with literals; None if the type's operators may belong to other roles."""
        type_name = self.sent_type if self.is_enum else self.own_type
        return None if type_name is None else ComparedColumn(type_name, self.is_enum, self.collation)

    @property
    def collated(self) -> sql.SQL:
        return sql.SQL(f" COLLATE {self.collation}" if self.collation else "")


def query_key_columns(connection: Connection, oid: int, names: Sequence[str]) -> list[KeyColumn]:
    columns = []
    for name in names:
        row = connection.execute(_KEY_COLUMNS, {"oid": oid, "name": name}).fetchone()
        assert row is not None
        columns.append(KeyColumn(name, *row))
    return columns


def query_tree(connection: Connection, oid: int) -> list[int]:
    query = _TREE.format(attached_condition(connection)).encode()
    return [table_oid for (table_oid,) in connection.execute(query, (oid,)).fetchall()]


def attached_condition(connection: Connection) -> str:
    """Return the SQL condition of the rows of `pg_inherits` whose table is not being detached concurrently."""
    return "NOT inhdetachpending" if server_major(connection) >= 14 else "true"


def is_partitioned(connection: Connection, oid: int) -> bool:
    return bool(query_scalar(connection, "SELECT relkind = 'p' FROM pg_class WHERE oid = %s", oid))


def as_text(expression: sql.Composable) -> sql.Composed:
    """Return SQL for a value's text, by the type's output function: a cast to text may belong to the type's owner."""
    return sql.SQL('pg_catalog.concat({}) COLLATE "C"').format(expression)


def rows_of(table: TableName, *, is_partitioned: bool) -> sql.Composed:
    """Return a table for FROM, with the rows of partitions but without the rows of tables that inherit from it."""
    return sql.SQL("" if is_partitioned else "ONLY ") + sql.Identifier(*table)


@dataclass(frozen=True, slots=True)
class KeyCondition:
    condition: Condition | None
    """The condition; None for all rows."""
    table: TableName
    is_partitioned: bool
    columns: Sequence[KeyColumn]
    published: str | None
    """The SQL condition of the published rows; None for all rows."""

    @property
    def rendered(self) -> sql.Composed:
        if self.condition is None:
            return sql.SQL("({})").format(sql.SQL("true"))
        compared = {column.name: column.compared for column in self.columns}
        return sql.SQL("({})").format(
            self.condition.render({name: column for name, column in compared.items() if column is not None})
        )

    def check(self, connection: Connection) -> None:
        """Raise ConditionError unless all its columns belong to the key and can be compared with its literals."""
        names = {column.name for column in self.columns}
        compared_names = set() if self.condition is None else columns_of(self.condition)
        if unknown_names := sorted(compared_names - names):
            raise ConditionError(
                f"the condition {self.condition} names {', '.join(unknown_names)}, but may only name columns of the "
                f"key: {', '.join(column.name for column in self.columns)}"
            )
        for column in self.columns:
            if column.sent_type is None:
                raise ConditionError(f"the type of its key's column {column.name} cannot be sent to the server")
            if column.name in compared_names and column.compared is None:
                raise ConditionError(
                    f"the column {column.name} cannot be in a condition: its type is neither built-in nor an enum, so "
                    "that other roles' functions would compare its values"
                )
        none: dict[str, Sequence[str | None]] = {column.name: [] for column in self.columns}
        try:
            with connection.transaction():
                connection.execute("SET TRANSACTION READ ONLY")
                connection.execute(self._absent(none))
        except _CONDITION_ERRORS as error:
            raise ConditionError(
                f"the server does not accept the condition {self.condition}: {error.diag.message_primary or error}"
            ) from None

    def query_absent(self, connection: Connection, keys: Mapping[str, Sequence[str | None]]) -> list[int]:
        """Return the indexes of keys (texts by column) that satisfy the condition and have no row in the table.

        The session's transaction has locked the table. A key with a row is never among them, even if the condition
        changes with time.
        """
        return [number - 1 for (number,) in connection.execute(self._absent(keys)).fetchall()]

    def _absent(self, keys: Mapping[str, Sequence[str | None]]) -> sql.Composed:
        equal: list[sql.Composable] = []
        for column in self.columns:
            stored_value, key_value = sql.Identifier("there", column.name), sql.Identifier("keys", column.name)
            if column.own_type is not None:
                # The operator uses an index; the texts also distinguish values that count as equal.
                type_name = sql.SQL(column.own_type)
                equal.append(sql.SQL("({}::{}) OPERATOR(pg_catalog.=) {}").format(stored_value, type_name, key_value))
            equal.append(sql.SQL("{} OPERATOR(pg_catalog.=) {}").format(as_text(stored_value), as_text(key_value)))
        return sql.SQL(
            "SELECT {number} FROM {keys} WHERE {condition} AND NOT EXISTS "
            "(SELECT FROM {rows} AS there WHERE {equal} AND ({published}\n))"
        ).format(
            number=sql.Identifier(self._number),
            keys=self._keys(keys),
            condition=self.rendered,
            rows=rows_of(self.table, is_partitioned=self.is_partitioned),
            equal=sql.SQL(" AND ").join(equal),
            published=sql.SQL("true" if self.published is None else self.published),
        )

    def _keys(self, keys: Mapping[str, Sequence[str | None]]) -> sql.Composed:
        names = [sql.Identifier(f"key{number}") for number in range(len(self.columns))]
        return sql.SQL(
            "(SELECT {values}, {number} FROM unnest({arrays}) WITH ORDINALITY AS keys({names})) AS keys"
        ).format(
            values=sql.SQL(", ").join(
                sql.SQL("{}{} AS {}").format(name, column.collated, sql.Identifier(column.name))
                for name, column in zip(names, self.columns, strict=True)
            ),
            number=sql.Identifier(self._number),
            arrays=sql.SQL(", ").join(
                sql.SQL("{}::{}[]").format(sql.Literal(_array(keys[column.name])), sql.SQL(column.sent_type or ""))
                for column in self.columns
            ),
            names=sql.SQL(", ").join([*names, sql.Identifier(self._number)]),
        )

    @property
    def _number(self) -> str:
        # No key column may have this name.
        name = "number"
        while any(column.name == name for column in self.columns):
            name += "_"
        return name


def _array(texts: Sequence[str | None]) -> str:
    quoted = ("NULL" if text is None else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts)
    return "{" + ",".join(quoted) + "}"
