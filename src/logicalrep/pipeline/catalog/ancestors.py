"""The partitions whose rows are sent as those of a table above them."""

from __future__ import annotations

from collections.abc import Collection

from logicalrep.postgres.server import Connection, server_major

_QUERY = """
WITH RECURSIVE above AS (
    SELECT class.oid AS part, inhparent AS oid FROM pg_class AS class JOIN pg_inherits ON inhrelid = class.oid
    WHERE class.oid = ANY(%(oids)s) AND relispartition
    UNION ALL SELECT part, inhparent FROM above JOIN pg_inherits ON inhrelid = above.oid
)
SELECT DISTINCT part::bigint FROM above JOIN pg_class AS class ON class.oid = above.oid
JOIN pg_publication AS publication ON pubname = ANY(%(names)s)
WHERE puballtables OR EXISTS (SELECT FROM pg_publication_rel WHERE prpubid = publication.oid AND prrelid = above.oid)
"""
_OF_SCHEMAS = """
OR EXISTS (SELECT FROM pg_publication_namespace WHERE pnpubid = publication.oid AND pnnspid = class.relnamespace)
"""


def query_published_under_others(connection: Connection, oids: Collection[int], names: Collection[str]) -> set[int]:
    """Return the partitions of these that publications publish under a table above them. It waits for no lock.

    Args:
        connection: a connection to the server.
        oids: the OIDs of tables.
        names: the names of the publications.
    """
    query = _QUERY + (_OF_SCHEMAS if server_major(connection) >= 15 else "")
    rows = connection.execute(query.encode(), {"oids": list(oids), "names": list(names)}).fetchall()
    return {oid for (oid,) in rows}
