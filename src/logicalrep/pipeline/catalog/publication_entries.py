from __future__ import annotations

from collections.abc import Collection

from logicalrep.postgres.server import Connection, server_major

# The publications' entries for a table: a changed filter, or removing and adding the table, makes another entry.
_ENTRIES = """
SELECT prrelid, entry::text, 'r' || entry.oid || ':' || entry.xmin::text{} FROM pg_publication_rel AS entry
JOIN pg_publication AS publication ON prpubid = publication.oid
WHERE prrelid = ANY(%(oids)s) AND pubname = ANY(%(names)s)
"""
# If a table leaves a published schema and returns, the only trace is the catalog row that has the table's schema.
_ENTRIES_OF_SCHEMAS = """
UNION ALL
SELECT class.oid, entry::text, concat_ws(':', 'n' || entry.oid, entry.xmin, stay.xmin), NULL
FROM pg_publication_namespace AS entry
JOIN pg_publication AS publication ON pnpubid = publication.oid JOIN pg_class AS class ON relnamespace = pnnspid
LEFT JOIN pg_depend AS stay ON stay.classid = 'pg_class'::regclass AND stay.objid = class.oid AND stay.objsubid = 0
    AND stay.refclassid = 'pg_namespace'::regclass
WHERE class.oid = ANY(%(oids)s) AND pubname = ANY(%(names)s)
"""
_UNDER_OTHERS = """
WITH RECURSIVE above AS (
    SELECT class.oid AS part, inhparent AS oid FROM pg_class AS class JOIN pg_inherits ON inhrelid = class.oid
    WHERE class.oid = ANY(%(oids)s) AND relispartition
    UNION ALL SELECT part, inhparent FROM above JOIN pg_inherits ON inhrelid = above.oid
)
SELECT DISTINCT part::bigint FROM above JOIN pg_class AS class ON class.oid = above.oid
JOIN pg_publication AS publication ON pubname = ANY(%(names)s)
WHERE puballtables OR EXISTS (SELECT FROM pg_publication_rel WHERE prpubid = publication.oid AND prrelid = above.oid)
"""
_SCHEMAS_OF_OTHERS = """
OR EXISTS (SELECT FROM pg_publication_namespace WHERE pnpubid = publication.oid AND pnnspid = class.relnamespace)
"""


def query_partitions_of_published(connection: Connection, oids: Collection[int], names: Collection[str]) -> set[int]:
    """It waits for no lock."""
    query = _UNDER_OTHERS + (_SCHEMAS_OF_OTHERS if server_major(connection) >= 15 else "")
    rows = connection.execute(query.encode(), {"oids": list(oids), "names": list(names)}).fetchall()
    return {oid for (oid,) in rows}


def query_entries(
    connection: Connection, oids: list[int], names: list[str]
) -> tuple[dict[int, list[tuple[str, str]]], dict[int, set[int] | None]]:
    """Return entries by table, and the numbers of the listed columns; None means all columns."""
    major = server_major(connection)
    of_tables = _ENTRIES.format(", prattrs::int2[]::int[]" if major >= 15 else ", NULL")
    query = of_tables + (_ENTRIES_OF_SCHEMAS if major >= 15 else "")
    entries: dict[int, list[tuple[str, str]]] = {oid: [] for oid in oids}
    lists: dict[int, set[int] | None] = {}
    for oid, text, row, numbers in connection.execute(query.encode(), {"oids": oids, "names": names}).fetchall():
        entries[oid].append((text, row))
        listed = lists.get(oid, set())
        lists[oid] = None if numbers is None or listed is None else listed | set(numbers)
    return entries, lists
