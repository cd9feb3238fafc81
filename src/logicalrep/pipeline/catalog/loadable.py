"""The reasons why a table cannot be loaded, whatever its rows are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from logicalrep.pipeline.catalog.changing_texts import refuse_names
from logicalrep.pipeline.catalog.definitions import CatalogTable, catalog_snapshot, query_catalog_tables
from logicalrep.pipeline.schema.fitting import refuse_unfit
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.postgres.server import Connection
from logicalrep.postgres.table_rows.parts import query_parts
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.errors import LogicalRepError

_OIDS = """
SELECT class.oid::bigint FROM unnest(%s::text[], %s::text[]) AS wanted(schema, name)
JOIN pg_namespace AS namespace ON namespace.nspname = wanted.schema
JOIN pg_class AS class ON class.relnamespace = namespace.oid AND class.relname = wanted.name
"""


def refuse_unloadable(catalog_table: CatalogTable, numbers: Mapping[str, int]) -> None:
    """Raise OldRowsError, ColumnOfNamesError, or an error of `refuse_unfit`."""
    catalog_table.refuse_incomplete_old_rows()
    refuse_unfit(catalog_table.table, numbers)
    refuse_names(catalog_table.table.relation.table, catalog_table.changing_texts)


def query_unloadable(
    connection: Connection,
    tables: Collection[TableName],
    publications: tuple[str, ...],
    settings_of: Callable[[TableName], TableSettings],
    *,
    following: Collection[TableName],
    sends_generated: bool,
) -> list[LogicalRepError]:
    """Return the errors that would stop tables.

    `following` are the tables that were loaded already: only their settings and columns can stop them.
    """
    errors: list[LogicalRepError] = []
    with catalog_snapshot(connection):
        names = [table.schema for table in tables], [table.name for table in tables]
        oids = [oid for (oid,) in connection.execute(_OIDS.encode(), names).fetchall()]
        for catalog_table in query_catalog_tables(
            connection, oids, publications, settings_of, sends_generated=sends_generated
        ).values():
            table = catalog_table.table
            try:
                refuse_unloadable(catalog_table, {})
                if table.relation.table not in following:
                    query_parts(connection, table.relation, publications, nulled=table.nulled)
            except LogicalRepError as error:
                errors.append(error)
    return errors
