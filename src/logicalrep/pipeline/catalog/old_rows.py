"""The refusal of tables whose old rows PostgreSQL sends with NULL in place of a default, as their files lack it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from logicalrep.postgres.server import Connection
from logicalrep.postgres.server_faults import sends_defaults_as_null, version_text
from logicalrep_runtime.errors import LogicalRepError

# Partitions have replica identities of their own.
_DEFAULTS = """
SELECT attrelid::bigint, attname FROM pg_attribute JOIN pg_class AS class ON class.oid = attrelid
WHERE attrelid = ANY(%s) AND relreplident = 'f' AND attnum > 0 AND atthasmissing AND NOT attisdropped ORDER BY 1, attnum
"""
_FILTERED = """
SELECT prrelid::bigint FROM pg_publication_rel JOIN pg_publication AS publication ON publication.oid = prpubid
WHERE prrelid = ANY(%s) AND pubname = ANY(%s) AND prqual IS NOT NULL
"""


class OldRowsError(LogicalRepError, RuntimeError):
    code = "OLD_ROWS_INCOMPLETE"


def query_old_rows_fault(connection: Connection) -> str | None:
    """Return why old rows may be missing in a copy although no default is missing in the table's file; None otherwise.

    VACUUM FULL and pg_repack store the default in each row, and leave no trace of old rows that were sent before.
    """
    if not sends_defaults_as_null(connection):
        return None
    return (
        f"{version_text(connection)} may have sent old rows with NULL in place of the default of ADD COLUMN: upgrade "
        "to 15.6, 16.2 or later"
    )


def query_incomplete_old_rows(
    connection: Connection,
    files: Mapping[int, list[tuple[int, int]]],
    publications: Collection[str],
    columns_of_rows: Mapping[int, Collection[str]],
) -> dict[int, str]:
    """Return why old rows do not identify the changed row, by the tables' OIDs."""
    if not sends_defaults_as_null(connection):
        return {}
    defaults: dict[int, list[str]] = {}
    for oid, name in connection.execute(
        _DEFAULTS, ([oid for table_files in files.values() for oid, _ in table_files],)
    ).fetchall():
        defaults.setdefault(oid, []).append(name)
    filtered = {oid for (oid,) in connection.execute(_FILTERED, (list(files), list(publications))).fetchall()}
    reasons = {}
    for top, top_files in files.items():
        names = dict.fromkeys(name for oid, _ in top_files for name in defaults.get(oid, ()))
        # A row filter may use any column.
        needed = [name for name in names if top in filtered or name in columns_of_rows[top]]
        if needed:
            reasons[top] = (
                f"{version_text(connection)} sends NULL in old rows in place of the default that ADD COLUMN gave "
                f"{', '.join(needed)}, so old rows do not identify the changed row: upgrade to 15.6, 16.2 or later; or "
                "give the table a primary key without this column, and no row filter; or run VACUUM FULL on it, which "
                "stores the default in each row"
            )
    return reasons
