"""Published tables from the server's catalog, and the error for a missing publication. Needs psycopg 3."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg.errors import Diagnostic
from psycopg.rows import TupleRow

from logicalrep.postgres.server import Connection, server_major
from logicalrep.postgres.slots.errors import MissingWalError, SlotError, UndecodableError
from logicalrep.postgres.unreadable_texts import query_unreadable_tables
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.table_names import TableName
from logicalrep.values import CatalogType, TypeCatalog
from logicalrep_protocol import v1
from logicalrep_protocol.v1 import ReplicaIdentity
from logicalrep_runtime.scalars import Oid

FIRST_NAMED_TYPE = 10_000
"""The first OID of a data type that the server names in a Type message."""

# For a domain, the message has the name of its base type.
_BASES = """
JOIN LATERAL (
    WITH RECURSIVE bases AS (
        SELECT type.oid, type.typbasetype
        UNION ALL
        SELECT next.oid, next.typbasetype FROM bases JOIN pg_type AS next ON next.oid = bases.typbasetype
    )
    SELECT pg_type.* FROM bases JOIN pg_type USING (oid) WHERE bases.typbasetype = 0
) AS base ON true
JOIN pg_namespace AS base_schema ON base_schema.oid = base.typnamespace
LEFT JOIN pg_type AS element ON element.oid = base.typelem AND base.typcategory = 'A'
LEFT JOIN pg_namespace AS element_schema ON element_schema.oid = element.typnamespace
"""
_FROM_COLUMNS = f"""
FROM pg_attribute AS attribute
JOIN pg_class AS class ON class.oid = attribute.attrelid
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
JOIN pg_type AS type ON type.oid = attribute.atttypid
{_BASES}
WHERE namespace.nspname = %s AND class.relname = %s AND attribute.attnum > 0 AND NOT attribute.attisdropped
"""
_COLUMNS = f"""
SELECT class.oid, class.relreplident, attribute.attname, attribute.atttypid, attribute.atttypmod,
    base.typname, base_schema.nspname {_FROM_COLUMNS}
"""
_TYPES = f"""
SELECT attribute.atttypid, base_schema.nspname, base.typname, base.typtype = 'b', base.typdelim,
    element_schema.nspname, element.typname, element.typtype = 'b' {_FROM_COLUMNS} AND type.oid >= {FIRST_NAMED_TYPE}
"""


def query_published_relation(
    connection: Connection, table: TableName, publications: tuple[str, ...]
) -> TableDescription | None:
    """Return a table with its published columns, without key flags; None if the table does not exist."""
    # Generated columns exist since PostgreSQL 12, and can be published since 18.
    is_sent = "AND attribute.attgenerated = ''" if 12 <= server_major(connection) < 18 else ""
    rows = connection.execute(f"{_COLUMNS} {is_sent} ORDER BY attribute.attnum", table).fetchall()
    if not rows:
        return None
    published = {column for names in _query_column_lists(connection, table, publications) for column in names}
    columns: list[v1.Column] = []
    types: list[v1.Type | None] = []
    for *_, column, type_id, modifier, base, base_schema in rows:
        if not published or column in published:
            columns.append(v1.Column(flags=0, name=column, type_id=Oid(type_id), type_modifier=modifier))
            type_ = v1.Type(type_id=Oid(type_id), namespace=_message_schema(base_schema), name=base)
            types.append(type_ if type_id >= FIRST_NAMED_TYPE else None)
    return TableDescription(
        relation_id=Oid(rows[0][0]),
        schema=table.schema,
        name=table.name,
        replica_identity=ReplicaIdentity(rows[0][1]),
        columns=tuple(columns),
        types=tuple(types),
    )


def query_type_catalog(connection: Connection, table: TableName) -> TypeCatalog:
    return TypeCatalog({type_id: _catalog_type(*facts) for type_id, *facts in connection.execute(_TYPES, table)})


_TYPES_BY_OID = f"""
SELECT type.oid::bigint, base_schema.nspname, base.typname, base.typtype = 'b', base.typdelim,
    element_schema.nspname, element.typname, element.typtype = 'b'
FROM pg_type AS type {_BASES} WHERE type.oid = ANY(%s)
"""


def query_types(connection: Connection, type_ids: Collection[int]) -> TypeCatalog:
    """Return the catalog's entries for types, without waiting for locks, in the session's held snapshot if any."""
    types = connection.execute(_TYPES_BY_OID.encode(), (list(type_ids),)).fetchall() if type_ids else []
    return TypeCatalog({type_id: _catalog_type(*facts) for type_id, *facts in types})


def _catalog_type(schema: str, name: str, is_base: bool, delimiter: str, *element: str) -> CatalogType:
    of_elements = None
    if element[0] is not None:
        of_elements = CatalogType(_message_schema(element[0]), element[1], bool(element[2]), delimiter)
    return CatalogType(_message_schema(schema), name, is_base, delimiter, of_elements)


def _message_schema(schema: str) -> str:
    # In messages, pg_catalog is the empty name.
    return "" if schema == "pg_catalog" else schema


@dataclass(frozen=True, slots=True)
class PublishedTable:
    oid: int
    name: TableName
    sends_old: bool
    columns: tuple[str, ...] | None
    """The published columns; None before PostgreSQL 15, which publishes all columns."""
    under: str | None
    """The ancestor whose name a partition's changes have; None if changes have the table's own name."""


# A partition's changes have the name of its topmost listed ancestor, in whichever publication. A partitioned table is
# listed only with publish_via_partition_root, since PostgreSQL 13.
_LISTED = """
WITH listed AS (
    SELECT class.oid, namespace.nspname, class.relname,
        bool_or(publication.pubupdate OR publication.pubdelete) AS sends_old, {} AS columns
    FROM pg_publication_tables AS published
    JOIN pg_publication AS publication ON publication.pubname = published.pubname
    JOIN pg_namespace AS namespace ON namespace.nspname = published.schemaname
    JOIN pg_class AS class ON class.relnamespace = namespace.oid AND class.relname = published.tablename
    WHERE published.pubname = ANY(%s) AND class.oid <> ALL(%s)
    GROUP BY class.oid, namespace.nspname, class.relname
)
SELECT oid, nspname, relname, sends_old, columns, {}
FROM listed ORDER BY nspname, relname
"""
_UNDER = """(
    SELECT format('%%I.%%I', above.nspname, above.relname)
    FROM pg_partition_ancestors(listed.oid) WITH ORDINALITY AS ancestor(oid, height)
    JOIN listed AS above ON above.oid = ancestor.oid AND above.oid <> listed.oid
    ORDER BY height DESC LIMIT 1
)"""


def query_listed_tables(connection: Connection, publications: tuple[str, ...]) -> list[PublishedTable]:
    major = server_major(connection)
    query = _LISTED.format(
        "max(published.attnames::text[])" if major >= 15 else "NULL", _UNDER if major >= 13 else "NULL"
    )
    unreadable = list(query_unreadable_tables(connection))
    rows = query_current_entries(connection, query, list(publications), unreadable)
    return [
        PublishedTable(oid, TableName(schema, name), sends_old, None if columns is None else tuple(columns), under)
        for oid, schema, name, sends_old, columns, under in rows
    ]


# A partition's rows are subscribed by the partition's name or by the root's name.
_SUBSCRIBED = """
SELECT oid FROM unnest(%s::oid[]) AS listed(oid)
WHERE EXISTS (SELECT FROM pg_subscription_rel WHERE coalesce(pg_partition_root(srrelid), srrelid) = listed.oid)
"""


def query_foreign_rows(connection: Connection, tables: Sequence[PublishedTable]) -> str | None:
    """A warning for a reader with origin = none, if a table has rows of another server; needs PostgreSQL 16."""
    rows = connection.execute(_SUBSCRIBED, ([table.oid for table in tables],)).fetchall()
    subscribed = {oid for (oid,) in rows}
    names = ", ".join(str(table.name) for table in tables if table.oid in subscribed)
    if not names:
        return None
    return (
        f"this server subscribes to {names} at another server: loads copy the rows of every origin, but later changes "
        "of other origins are not replicated"
    )


def query_published_tables(connection: Connection, publications: tuple[str, ...]) -> list[TableName]:
    listed = query_listed_tables(connection, publications)
    return [table.name for table in listed if table.under is None]


def query_definitions(connection: Connection, publications: tuple[str, ...]) -> set[str]:
    """Return the catalog's rows for the publications, in the session's held snapshot if any."""
    catalogs = ["pg_publication AS entry ON entry.oid = publication.oid"]
    catalogs += ["pg_publication_rel AS entry ON prpubid = publication.oid"]
    if server_major(connection) >= 15:
        catalogs += ["pg_publication_namespace AS entry ON pnpubid = publication.oid"]
    query = "SELECT entry::text FROM pg_publication AS publication JOIN {} WHERE publication.pubname = ANY(%(names)s)"
    union = " UNION ALL ".join(query.format(catalog) for catalog in catalogs)
    return {row[0] for row in connection.execute(union.encode(), {"names": list(publications)}).fetchall()}


# The view pg_publication_tables would compute all tables of the publications.
_ROW_FILTERS = """
SELECT CASE WHEN NOT puballtables AND pnpubid IS NULL THEN pg_get_expr(prqual, prrelid) END
FROM pg_class AS class JOIN pg_namespace AS namespace ON namespace.oid = relnamespace
JOIN pg_publication AS publication ON nspname = %s AND relname = %s AND pubname = ANY(%s)
LEFT JOIN pg_publication_namespace ON pnpubid = publication.oid AND pnnspid = relnamespace
LEFT JOIN pg_publication_rel ON prpubid = publication.oid AND prrelid = class.oid
WHERE puballtables OR pnpubid IS NOT NULL OR prpubid IS NOT NULL
"""


def query_row_filter(connection: Connection, table: TableName, publications: tuple[str, ...]) -> str | None:
    """Return the SQL condition of a table's published rows; None for all rows."""
    # Before PostgreSQL 15 publications have no filters.
    if server_major(connection) < 15:
        return None
    filters = [row[0] for row in connection.execute(_ROW_FILTERS, (*table, list(publications))).fetchall()]
    # A row is published if it satisfies the filter of any publication.
    if not filters or None in filters:
        return None
    return " OR ".join(f"({expression})" for expression in filters)


def _query_column_lists(connection: Connection, table: TableName, publications: tuple[str, ...]) -> list[Sequence[str]]:
    # Before PostgreSQL 15 publications have no column lists.
    if server_major(connection) < 15:
        return []
    query = "SELECT attnames FROM pg_publication_tables WHERE schemaname = %s AND tablename = %s AND pubname = ANY(%s)"
    return [names for (names,) in query_current_entries(connection, query, *table, list(publications))]


_MOST_TRIES = 100


def query_current_entries(connection: Connection, query: str, *parameters: object) -> list[TupleRow]:
    """Return the rows of a query on `pg_publication_tables`; retry if a table was dropped during the query."""
    for _ in range(_MOST_TRIES):
        try:
            with connection.transaction():
                return connection.execute(query.encode(), parameters).fetchall()
        except psycopg.errors.InternalError_ as error:
            if not is_of_dropped_table(error):
                raise
    return connection.execute(query.encode(), parameters).fetchall()


def is_of_dropped_table(error: psycopg.Error) -> bool:
    return error.sqlstate == "XX000" and error.diag.source_function == "relation_open"


# The server's functions that report a missing publication: their texts may be in any language.
_WARNS = "LoadPublications"
_REFUSE = ("GetPublicationByName", "get_publication_oid")


class PublicationError(SlotError):
    """A publication did not exist at the time of one of the changes to read.

    It is unknown what it would have published. Up to PostgreSQL 17 the server raises an error. PostgreSQL 18 only warns
    and omits these changes.
    """

    code = "PUBLICATION_GONE"


@contextmanager
def publication_errors(connection: Connection) -> Iterator[None]:
    """Turn the server's errors and warnings about decoding into errors of the slot, with a remedy."""
    missing: list[str] = []

    def collect(diagnostic: Diagnostic) -> None:
        if diagnostic.source_function == _WARNS:
            missing.append(diagnostic.message_primary or "")

    connection.add_notice_handler(collect)
    try:
        yield
    except psycopg.errors.UndefinedObject as error:
        if error.diag.source_function not in _REFUSE:
            raise
        raise _error(error.diag.message_primary or "") from error
    except psycopg.errors.InternalError_ as error:
        raise UndecodableError.of(error.diag.message_primary or "") from error
    except psycopg.errors.UndefinedFile as error:
        raise MissingWalError.of(error.diag.message_primary or "") from error
    finally:
        connection.remove_notice_handler(collect)
    if missing:
        raise _error(missing[0])


def _error(server_text: str) -> PublicationError:
    return PublicationError.for_stream(
        f"the server reached a change from before a publication was created, or after it was dropped ({server_text}), "
        "and what was published then is unknown: creating it again does not help",
        "make a new slot",
    )
