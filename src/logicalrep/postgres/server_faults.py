"""Bugs of PostgreSQL's walsenders; `docs/reference/postgresql-minors.md` has their consequences for `replicate`."""

from __future__ import annotations

from logicalrep.postgres.server import Connection, server_major


def has_stale_sessions(connection: Connection) -> bool:
    """Return whether walsenders of the server may use outdated information about a table.

    Up to PostgreSQL 14, walsenders do not send rows of a table that was attached as a partition with rows, and
    continue to send rows of a detached partition. Minor versions before May 2025 send no changes of a table that was
    added to a publication while a transaction that had written it was open. Sessions that start later are correct.
    """
    return server_major(connection) < 15 or loses_new_tables(connection)


def loses_new_tables(connection: Connection) -> bool:
    """Return whether a session may send no changes of a table added to a publication; see `has_stale_sessions`."""
    version = connection.info.server_version
    # Versions before 13 have no fix.
    fixed_versions = {13: 130021, 14: 140018, 15: 150013, 16: 160009, 17: 170005}
    return version < fixed_versions.get(server_major(connection), 0 if version >= 180000 else version + 1)


def sends_unlisted_columns(connection: Connection) -> bool:
    """Return whether old rows have all columns of a table although the publication lists only some columns.

    The Relation message has the listed columns only: readers cannot assign the values to columns.
    """
    return 150000 <= connection.info.server_version < 150002


def sends_defaults_as_null(connection: Connection) -> bool:
    """Return whether old rows with REPLICA IDENTITY FULL may have NULL instead of the default of ADD COLUMN.

    This concerns rows from before ADD COLUMN. Row filters see the NULL too.
    """
    version = connection.info.server_version
    return 150000 <= version < 150006 or 160000 <= version < 160002


def version_text(connection: Connection) -> str:
    major, minor = divmod(connection.info.server_version, 10000)
    return f"PostgreSQL {major}.{minor}"
