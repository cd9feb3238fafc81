"""Faults of servers in what their walsenders send, each by the versions that have it.

`docs/reference/postgresql-minors.md` lists them with what follows for `replicate`.
"""

from __future__ import annotations

from logicalrep.postgres.server import Connection, server_major


def has_stale_sessions(connection: Connection) -> bool:
    """Return whether a walsender of the server may go on with what it knew of a table before that changed.

    Up to PostgreSQL 14, rows of a table that is attached as a partition, and had rows before, are not sent, and those
    of a detached one are sent as before. Minors before those of May 2025 also send no change of a table that joins a
    publication while a transaction which has written it is open. A session that begins later is right.
    """
    return server_major(connection) < 15 or loses_new_tables(connection)


def loses_new_tables(connection: Connection) -> bool:
    """Return whether a session may send nothing of a table that joins a publication, see `has_stale_sessions`."""
    version = connection.info.server_version
    # Versions before 13 were not mended.
    mended = {13: 130021, 14: 140018, 15: 150013, 16: 160009, 17: 170005}
    return version < mended.get(server_major(connection), 0 if version >= 180000 else version + 1)


def sends_unlisted_columns(connection: Connection) -> bool:
    """Return whether old rows have all columns of a table, although the publication lists some of them.

    The Relation message has the listed columns, so that no reader can tell which values these are.
    """
    return 150000 <= connection.info.server_version < 150002


def sends_defaults_as_null(connection: Connection) -> bool:
    """Return whether old rows with REPLICA IDENTITY FULL may have NULL in place of the default of ADD COLUMN.

    They have it for rows from before the column, whose file does not have the default. Row filters see the NULL too.
    """
    version = connection.info.server_version
    return 150000 <= version < 150006 or 160000 <= version < 160002


def version_text(connection: Connection) -> str:
    """Return the server's version, such as `PostgreSQL 15.3`."""
    major, minor = divmod(connection.info.server_version, 10000)
    return f"PostgreSQL {major}.{minor}"
