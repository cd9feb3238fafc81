"""Tables of a SQL_ASCII database with a name, label, comment or default that is not UTF-8. Needs psycopg 3.

Such a server converts nothing, and refuses a query whose result has one of these texts: for all tables of the query.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from logicalrep.postgres.server import Connection, server_major
from logicalrep.transactions.table_names import TableName

_UTF8 = (
    "^([0-7].|(c[2-9a-f]|d.)[89ab].|e0[ab].[89ab].|(e[1-9abcef])([89ab].){{2}}|ed[89].[89ab].|f0[9ab].([89ab].){{2}}"
    "|f[1-3]([89ab].){{3}}|f48.([89ab].){{2}})*$"
)
_UNREADABLE = f"""
WITH RECURSIVE tables AS (
    SELECT class.oid, nspname, relname, relispartition FROM pg_class AS class JOIN pg_namespace AS namespace
        ON namespace.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'f', 'v', 'm', 'S') AND nspname NOT IN ('pg_catalog', 'information_schema')
        AND (%(oids)s::oid[] IS NULL OR class.oid = ANY(%(oids)s))
), used AS (
    SELECT attrelid AS top, atttypid AS type FROM pg_attribute JOIN tables ON tables.oid = attrelid
    WHERE attnum > 0 AND NOT attisdropped AND atttypid >= 10000
    UNION
    SELECT used.top, part.type FROM used JOIN pg_type AS type ON type.oid = used.type
    CROSS JOIN LATERAL (
        SELECT unnest(ARRAY[type.typbasetype, type.typelem]) AS type
        UNION ALL SELECT rngsubtype FROM pg_range WHERE {{ranges}}
        UNION ALL SELECT atttypid FROM pg_attribute
        WHERE attrelid = type.typrelid AND attnum > 0 AND NOT attisdropped
    ) AS part
    WHERE part.type >= 10000
), parts AS (
    SELECT tables.oid AS top, inhrelid AS oid FROM tables JOIN pg_inherits ON inhparent = tables.oid
    UNION ALL SELECT parts.top, inhrelid FROM parts JOIN pg_inherits ON inhparent = parts.oid
), texts AS (
    SELECT oid AS top, 1 AS place, 'its name' AS what, nspname || '.' || relname AS text FROM tables
    UNION ALL SELECT top, 2, 'the name of a partition', nspname || '.' || relname FROM parts
        JOIN pg_class ON pg_class.oid = parts.oid JOIN pg_namespace ON pg_namespace.oid = relnamespace
    UNION ALL SELECT attrelid, 3, 'the name of a column', attname FROM pg_attribute WHERE attnum > 0
    UNION ALL SELECT objoid, 4, 'a comment', description FROM pg_description WHERE classoid = 'pg_class'::regclass
    {{missing}}
    UNION ALL SELECT top, 6, 'a label of an enum type', enumlabel FROM used JOIN pg_enum ON enumtypid = type
    UNION ALL SELECT top, 7, 'the name of a type', nspname || '.' || typname
        FROM used JOIN pg_type ON pg_type.oid = type JOIN pg_namespace ON pg_namespace.oid = typnamespace
    UNION ALL SELECT top, 8, 'the name of an attribute', attname FROM used JOIN pg_type ON pg_type.oid = type
        JOIN pg_attribute ON attrelid = typrelid AND attnum > 0
)
SELECT DISTINCT ON (top) top::bigint, encode(convert_to(nspname, 'SQL_ASCII'), 'escape'),
    encode(convert_to(relname, 'SQL_ASCII'), 'escape'), what, relispartition
FROM texts JOIN tables ON tables.oid = top
WHERE encode(convert_to(text, 'SQL_ASCII'), 'hex') !~ '{_UTF8}'
ORDER BY top, place
"""


@dataclass(frozen=True, slots=True)
class UnreadableTable:
    name: TableName
    """The name with bytes that are not ASCII as octal numbers."""
    what: str
    is_partition: bool

    def __str__(self) -> str:
        return (
            f"{self.name} is not replicated, as {self.what} is not UTF-8, and its database has the encoding SQL_ASCII: "
            "change it to UTF-8"
        )


def query_unreadable_tables(connection: Connection, oids: Collection[int] | None = None) -> dict[int, UnreadableTable]:
    """Return the unreadable tables among the given tables, or all, by OID; none unless the database is SQL_ASCII."""
    if connection.info.parameter_status("server_encoding") != "SQL_ASCII":
        return {}
    major = server_major(connection)
    query = _UNREADABLE.format(
        # Multiranges exist since PostgreSQL 14, and values of old rows in new columns since 11.
        ranges="type.oid IN (rngtypid, rngmultitypid)" if major >= 14 else "type.oid = rngtypid",
        missing="UNION ALL SELECT attrelid, 5, 'a default of a column', array_to_string(attmissingval, '') "
        "FROM pg_attribute WHERE atthasmissing AND NOT attisdropped"
        if major >= 11
        else "",
    )
    rows = connection.execute(query.encode(), {"oids": None if oids is None else list(oids)}).fetchall()
    return {oid: UnreadableTable(TableName(schema, name), *facts) for oid, schema, name, *facts in rows}
