"""Keys that are sent to the server: its rows of these keys, and those that it does not have. Needs psycopg 3.

Values are compared by the server's own operators, or as texts of output functions: no code of others runs with the
rights of the reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from logicalrep.postgres.server import Connection, query_scalar
from logicalrep.postgres.table_rows.conditions import ComparedColumn, Condition, ConditionError, columns_of
from logicalrep.transactions.table_names import TableName

# A column's base type, by itself and if the server came with it (such types have small OIDs), and its collation: its
# operators and casts are the server's own. A cast to a domain would run its CHECK, and a cast of another type might be
# its owner's. Texts become values of base types and enums by functions of superusers.
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
    SELECT %s::oid AS oid UNION ALL SELECT inhrelid FROM tree JOIN pg_inherits ON inhparent = tree.oid
)
SELECT oid FROM tree
"""
_OF_CONDITION = (
    psycopg.ProgrammingError,
    psycopg.DataError,
    psycopg.NotSupportedError,
    psycopg.errors.InvalidTransactionState,
)
"""The server's errors of a condition that cannot be evaluated."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of a key."""

    name: str
    own_type: str | None
    """Its base type if the server came with it; else None, and its values are compared as texts."""
    sent_type: str | None
    """The type as which an array of texts is sent; None for a type for which that cannot be."""
    collation: str | None
    is_enum: bool
    """Whether its base type is an enum."""

    @property
    def compared(self) -> ComparedColumn | None:
        """The type as which literals are compared with it; None for a type whose operators others may have made."""
        type_name = self.sent_type if self.is_enum else self.own_type
        return None if type_name is None else ComparedColumn(type_name, self.is_enum, self.collation)

    @property
    def collated(self) -> sql.SQL:
        """The end of an expression that has the column's collation."""
        return sql.SQL(f" COLLATE {self.collation}" if self.collation else "")


def query_key_columns(connection: Connection, oid: int, names: Sequence[str]) -> list[KeyColumn]:
    """Return what is to be known of some columns of a table to look its rows up by them."""
    found = []
    for name in names:
        row = connection.execute(_KEY_COLUMNS, {"oid": oid, "name": name}).fetchone()
        assert row is not None
        found.append(KeyColumn(name, *row))
    return found


def query_tree(connection: Connection, oid: int) -> list[int]:
    """Return the OIDs of a table and of its partitions of all levels."""
    return [each for (each,) in connection.execute(_TREE, (oid,)).fetchall()]


def is_partitioned(connection: Connection, oid: int) -> bool:
    """Return whether a table is partitioned: its rows are those of its partitions, and else its own alone."""
    return bool(query_scalar(connection, "SELECT relkind = 'p' FROM pg_class WHERE oid = %s", oid))


def as_text(expression: sql.Composable) -> sql.Composed:
    """Return the text of a value, by the output function of its type: a cast to text might be the type's owner's."""
    return sql.SQL('pg_catalog.concat({}) COLLATE "C"').format(expression)


def rows_of(table: TableName, *, is_partitioned: bool) -> sql.Composed:
    """Return a table in FROM: rows of tables that inherit from it are not its own, and those of partitions are."""
    return sql.SQL("" if is_partitioned else "ONLY ") + sql.Identifier(*table)


@dataclass(frozen=True, slots=True)
class KeyCondition:
    """A condition on the columns of a table's key, that the server evaluates."""

    condition: Condition | None
    """The condition; None for all rows."""
    table: TableName
    is_partitioned: bool
    columns: Sequence[KeyColumn]
    published: str | None
    """The condition of the rows that are published; None for all."""

    @property
    def rendered(self) -> sql.Composed:
        """The condition as SQL, in parentheses."""
        if self.condition is None:
            return sql.SQL("({})").format(sql.SQL("true"))
        compared = {column.name: column.compared for column in self.columns}
        return sql.SQL("({})").format(
            self.condition.render({name: column for name, column in compared.items() if column is not None})
        )

    def check(self, connection: Connection) -> None:
        """Raise ConditionError unless all of its columns belong to the key, and can be compared with its literals."""
        names = {column.name for column in self.columns}
        wanted = set() if self.condition is None else columns_of(self.condition)
        if other := sorted(wanted - names):
            raise ConditionError(
                f"the condition {self.condition} names {', '.join(other)}, and may name columns of the key alone, "
                f"which are {', '.join(column.name for column in self.columns)}"
            )
        for column in self.columns:
            if column.sent_type is None:
                raise ConditionError(f"the type of its key's column {column.name} cannot be sent to the server")
            if column.name in wanted and column.compared is None:
                raise ConditionError(
                    f"the column {column.name} can be in no condition: its type neither came with the server nor is "
                    "an enum, so that functions of others would compare its values"
                )
        none: dict[str, Sequence[str | None]] = {column.name: [] for column in self.columns}
        try:
            with connection.transaction():
                connection.execute("SET TRANSACTION READ ONLY")
                connection.execute(self._absent(none))
        except _OF_CONDITION as error:
            raise ConditionError(
                f"the server does not accept the condition {self.condition}: {error.diag.message_primary or error}"
            ) from None

    def query_absent(self, connection: Connection, keys: Mapping[str, Sequence[str | None]]) -> list[int]:
        """Return which of some keys the condition holds for, and no row of the table has, by their numbers from 0.

        So a key whose row is there is never among them, whatever the condition is at another moment.

        Args:
            connection: a session in a transaction, in which the table is locked.
            keys: the texts of the values of each column.
        """
        return [number - 1 for (number,) in connection.execute(self._absent(keys)).fetchall()]

    def _absent(self, keys: Mapping[str, Sequence[str | None]]) -> sql.Composed:
        equal: list[sql.Composable] = []
        for column in self.columns:
            there, key = sql.Identifier("there", column.name), sql.Identifier("keys", column.name)
            if column.own_type is not None:
                # By an index; the texts differ too where values count as equal.
                type_name = sql.SQL(column.own_type)
                equal.append(sql.SQL("({}::{}) OPERATOR(pg_catalog.=) {}").format(there, type_name, key))
            equal.append(sql.SQL("{} OPERATOR(pg_catalog.=) {}").format(as_text(there), as_text(key)))
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
        """Return keys as a relation of the columns' names and types, and of their numbers from 1."""
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
        """A name that no column of the key has."""
        name = "number"
        while any(column.name == name for column in self.columns):
            name += "_"
        return name


def _array(texts: Sequence[str | None]) -> str:
    """Return PostgreSQL's text of an array of values."""
    quoted = ("NULL" if each is None else '"' + each.replace("\\", "\\\\").replace('"', '\\"') + '"' for each in texts)
    return "{" + ",".join(quoted) + "}"
