"""The checks of a reader's tables: publication, rights, and changes that the server does not send."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from psycopg.rows import TupleRow

from logicalrep.postgres.preflight.findings import Findings, Needs
from logicalrep.postgres.publications import PublishedTable, query_listed_tables
from logicalrep.postgres.server import Connection, server_major
from logicalrep.postgres.server_faults import sends_defaults_as_null, sends_unlisted_columns, version_text

# Tables by OID, with the tables that hold their rows (their partitions, or the tables themselves), and the columns of
# their replica identities if a valid index or REPLICA IDENTITY FULL provides one.
_FILES = """
WITH files AS (
    SELECT root.oid AS root, {} AS oid FROM unnest(%s::oid[]) AS root(oid) {}
), identities AS (
    SELECT class.oid, format('%%I.%%I', namespace.nspname, class.relname) AS name, CASE
        WHEN class.relreplident = 'f' THEN ARRAY[NULL]
        ELSE (
            SELECT array_agg(attribute.attname::text ORDER BY attribute.attname)
            FROM pg_index AS index
            JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid AND attribute.attnum = ANY (index.indkey)
            WHERE index.indrelid = class.oid AND index.indisvalid AND index.indimmediate
            AND CASE class.relreplident WHEN 'd' THEN index.indisprimary WHEN 'i' THEN index.indisreplident END
        )
    END AS identity
    FROM pg_class AS class JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
    WHERE class.oid IN (SELECT root FROM files UNION SELECT oid FROM files)
)
"""


def check_tables(connection: Connection, needs: Needs, findings: Findings) -> None:
    """Add the findings about the publications' tables; the publications exist."""
    listed = query_listed_tables(connection, needs.publications)
    published = {table.name: table for table in listed}
    for name in needs.tables:
        table = published.get(name)
        if table is None:
            findings.add_error(
                "TABLE_NOT_PUBLISHED",
                f"Table {name} is not published by {', '.join(needs.publications)}: write it as SQL does, "
                "schema.table, or add it with ALTER PUBLICATION ... ADD TABLE; a partitioned table is published as "
                "its partitions, unless the publication has publish_via_partition_root.",
            )
        elif table.under is not None:
            findings.add_error(
                "TABLE_NOT_PUBLISHED",
                f"Table {name} is not published by its own name: a publication with publish_via_partition_root sends "
                f"its changes as changes of {table.under}: read that table, or omit that publication.",
            )
    _refuse_column_lists(connection, needs, findings)
    read = [table for name, table in published.items() if not needs.tables or name in needs.tables]
    _check_identities(connection, [table for table in read if table.sends_old], findings)
    read = [table for table in read if table.under is None]
    if needs.snapshot:
        _check_rights(connection, read, findings)
    _check_generated(connection, read, findings)
    if not needs.fills_defaults:
        _check_defaults(connection, needs.slot, read, findings)
        _check_old_rows(connection, read, findings)


def _refuse_column_lists(connection: Connection, needs: Needs, findings: Findings) -> None:
    # A row with unlisted columns would stop the reader for all tables.
    if not sends_unlisted_columns(connection):
        return
    rows = connection.execute(
        "SELECT DISTINCT format('%%I.%%I', nspname, relname) FROM pg_publication_rel "
        "JOIN pg_publication AS publication ON publication.oid = prpubid "
        "JOIN pg_class AS class ON class.oid = prrelid JOIN pg_namespace AS namespace ON namespace.oid = relnamespace "
        "WHERE pubname = ANY(%s) AND prattrs IS NOT NULL ORDER BY 1",
        (list(needs.publications),),
    ).fetchall()
    if rows:
        findings.add_error(
            "SERVER_SENDS_UNLISTED",
            f"{version_text(connection)} sends old rows with columns that the publication does not list, of "
            f"{_first_names([name for (name,) in rows])}: upgrade to 15.2 or later, or publish all columns.",
        )


def _check_identities(connection: Connection, tables: list[PublishedTable], findings: Findings) -> None:
    # The server refuses updates and deletes of a partition without a replica identity.
    rows = _query_files(
        connection,
        tables,
        "SELECT DISTINCT file.name, file.identity, root.name, file.identity IS DISTINCT FROM root.identity "
        "FROM files JOIN identities AS file ON file.oid = files.oid JOIN identities AS root ON root.oid = files.root "
        "ORDER BY 1",
    )
    refused = list(dict.fromkeys(name for name, identity, _, _ in rows if identity is None))
    if refused:
        findings.warnings.append(
            f"The server refuses UPDATE and DELETE on {_first_names(refused)}, which have no replica identity: add a "
            f"primary key that is not deferrable, or run ALTER TABLE {refused[0]} REPLICA IDENTITY FULL."
        )
    differing = [
        f"{name} (read as {root})" for name, identity, root, differs in rows if identity is not None and differs
    ]
    if differing:
        findings.warnings.append(
            f"The replica identity of {_first_names(differing)} differs from the replica identity of the table that it "
            "is read as, whose columns are shown as the key: old rows have other columns. Set the same with ALTER "
            "TABLE ... REPLICA IDENTITY."
        )


def _check_rights(connection: Connection, tables: list[PublishedTable], findings: Findings) -> None:
    # A snapshot reads partitions one by one, so that the role needs the right to read each of them.
    rows = _query_files(
        connection,
        tables,
        "SELECT DISTINCT name, quote_ident(current_user) FROM identities "
        "WHERE NOT has_table_privilege(oid, 'SELECT') ORDER BY 1",
    )
    if rows:
        names, role = ", ".join(row[0] for row in rows), rows[0][1]
        findings.add_error(
            "TABLE_NOT_READABLE", f"Role {role} may not read {names}: run GRANT SELECT ON {names} TO {role}."
        )


def _check_generated(connection: Connection, tables: list[PublishedTable], findings: Findings) -> None:
    # Generated columns exist since PostgreSQL 12 and can be published since 18.
    major = server_major(connection)
    if major < 12:
        return
    rows = connection.execute(
        "SELECT attrelid, attname FROM pg_attribute "
        "WHERE attrelid = ANY (%s::oid[]) AND attgenerated <> '' AND NOT attisdropped ORDER BY attrelid, attnum",
        ([table.oid for table in tables],),
    ).fetchall()
    missing = _columns(tables, rows, lambda table, column: major < 18 or not _is_published_column(table, column))
    if missing:
        way = (
            "" if major < 18 else ", unless its publication has publish_generated_columns = stored and they are stored"
        )
        findings.warnings.append(
            f"The server does not send generated columns{way}: a copy lacks {_first_names(missing)}."
        )


def _check_defaults(connection: Connection, slot: str, tables: list[PublishedTable], findings: Findings) -> None:
    # The server does not send the rows that ADD COLUMN ... DEFAULT fills after the slot's position.
    if server_major(connection) < 11:
        return
    rows = _query_files(
        connection,
        tables,
        "SELECT DISTINCT files.root, attribute.attname FROM files "
        "JOIN pg_attribute AS attribute ON attribute.attrelid = files.oid AND attribute.atthasmissing "
        "JOIN pg_replication_slots AS slot ON slot.slot_name = %s "
        "AND age(attribute.xmin) <= age(slot.catalog_xmin) ORDER BY 1, 2",
        slot,
    )
    added = _columns(tables, rows, _is_published_column)
    if added:
        findings.warnings.append(
            f"{_first_names(added)} came with ADD COLUMN ... DEFAULT: earlier rows have the default on the server, "
            "which does not send it, and NULL in a copy. Set it in the copy, or UPDATE the rows on the server."
        )


def _check_old_rows(connection: Connection, tables: list[PublishedTable], findings: Findings) -> None:
    if not sends_defaults_as_null(connection):
        return
    rows = _query_files(
        connection,
        tables,
        "SELECT DISTINCT files.root, attribute.attname FROM files "
        "JOIN pg_class AS class ON class.oid = files.oid AND class.relreplident = 'f' "
        "JOIN pg_attribute AS attribute ON attribute.attrelid = files.oid AND attribute.atthasmissing ORDER BY 1, 2",
    )
    if lacking := _columns(tables, rows, _is_published_column):
        findings.warnings.append(
            f"{version_text(connection)} sends NULL in old rows instead of the default that ADD COLUMN gave "
            f"{_first_names(lacking)}: upgrade to 15.6, 16.2 or later, or run VACUUM FULL, which stores it in each row."
        )


def _query_files(
    connection: Connection, tables: list[PublishedTable], query: str, *parameters: object
) -> list[TupleRow]:
    # Before PostgreSQL 13, partitioned tables are published as their partitions.
    tree = "LEFT JOIN LATERAL pg_partition_tree(root.oid) AS part ON part.isleaf"
    has_trees = server_major(connection) >= 13
    files = _FILES.format("coalesce(part.relid, root.oid)", tree) if has_trees else _FILES.format("root.oid", "")
    return connection.execute((files + query).encode(), ([table.oid for table in tables], *parameters)).fetchall()


def _is_published_column(table: PublishedTable, column: str) -> bool:
    return table.columns is None or column in table.columns


def _columns(
    tables: list[PublishedTable], rows: Iterable[TupleRow], is_selected: Callable[[PublishedTable, str], bool]
) -> list[str]:
    # A row has the table's OID and the column. Returns the qualified names of the selected columns.
    tables_by_oid = {table.oid: table for table in tables}
    return [f"{tables_by_oid[oid].name}.{column}" for oid, column in rows if is_selected(tables_by_oid[oid], column)]


def _first_names(names: list[str]) -> str:
    return ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
