"""The publication of a destination: made where there is none, and kept complete if this project made it.

It names its tables one by one. A publication FOR ALL TABLES, or one with a table that has no replica identity, would
make the server refuse the application's updates and deletes. A table that comes to this leaves the publication again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import psycopg
from psycopg import sql

from logicalrep.pipeline.settings import ReplicateSettings
from logicalrep.postgres.publications import PublishedTable, query_listed_tables
from logicalrep.postgres.server import Connection, query_scalar, server_major
from logicalrep.transactions.table_names import TableName, all_table_names
from logicalrep_runtime.errors import LogicalRepError

_MARK = "made by logicalrep replicate"
"""The comment of publications that are ours."""
_ACTIONS = ("insert", "update", "delete", "truncate")

_FOUND = """
SELECT pubinsert, pubupdate, pubdelete, {truncate}, {via_root}, {generated}, obj_description(oid, 'pg_publication') = %s
FROM pg_publication WHERE pubname = %s
"""
# The columns of a table's replica identity, with REPLICA IDENTITY FULL those of the primary key, if an index has them.
_KEY = """(
    SELECT array_agg(attribute.attname)
    FROM pg_index AS index
    JOIN pg_attribute AS attribute ON attribute.attrelid = index.indrelid AND attribute.attnum = ANY (index.indkey)
    WHERE index.indrelid = {table}.oid AND index.indisvalid AND index.indimmediate
        AND CASE {table}.relreplident WHEN 'i' THEN index.indisreplident WHEN 'n' THEN false ELSE index.indisprimary END
)"""
# A generated column of a table's replica identity that is not sent: its name, its kind, the replica identity, and
# whether there is a primary key without such a column. From PostgreSQL 18 on the server refuses updates and deletes of
# such a table once it is published, with REPLICA IDENTITY FULL too; before, its old rows come without the column.
_UNSENT = """(
    SELECT ARRAY[generated.attname, generated.attgenerated::text, {table}.relreplident::text, (EXISTS (
        SELECT FROM pg_index AS index
        WHERE index.indrelid = {table}.oid AND index.indisprimary AND index.indisvalid AND index.indimmediate
            AND NOT EXISTS (
                SELECT FROM pg_attribute AS part
                WHERE part.attrelid = index.indrelid AND part.attnum = ANY (index.indkey) AND part.attgenerated <> ''
            )
    ))::text]
    FROM pg_attribute AS generated
    WHERE generated.attrelid = {table}.oid AND generated.attnum > 0 AND NOT generated.attisdropped
        AND generated.attgenerated NOT IN ({sent}) AND CASE
            WHEN {table}.relreplident = 'f' THEN {is_of_whole_rows} ELSE {key} @> ARRAY[generated.attname]
        END
    ORDER BY generated.attgenerated DESC, generated.attnum LIMIT 1
)"""
# Partitions are published with the table that they are parts of, and tables of an extension belong to it. The columns
# of a partition key depend on their table too. The server takes a partition's own replica identity: for its old rows,
# and for whether it accepts updates.
_CANDIDATES = """
WITH RECURSIVE tops AS (
    SELECT class.*, namespace.nspname, {key_of_class} AS key
    FROM pg_class AS class
    JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
    WHERE class.relkind IN ('r', 'p', 'f', 'v', 'm', 'S') AND NOT class.relispartition
        AND namespace.nspname NOT IN ('pg_catalog', 'information_schema') AND namespace.nspname !~ '^pg_(toast|temp)'
        AND NOT EXISTS (
            SELECT FROM pg_depend
            WHERE classid = 'pg_class'::regclass AND objid = class.oid AND objsubid = 0 AND deptype IN ('e', 'i', 'a')
        )
), parts AS (
    SELECT tops.oid AS top, tops.oid, tops.relkind FROM tops WHERE tops.relkind = 'p'
    UNION ALL
    SELECT parts.top, class.oid, class.relkind
    FROM parts JOIN pg_inherits ON parts.relkind = 'p' AND inhparent = parts.oid
    JOIN pg_class AS class ON class.oid = inhrelid
)
SELECT tops.nspname, tops.relname, tops.relkind, tops.relpersistence,
    tops.relreplident = 'f' OR tops.key IS NOT NULL, {unsent_of_tops}, other.*
FROM tops
LEFT JOIN LATERAL (
    SELECT namespace.nspname, leaf.relname, leaf.relkind = 'r' AND leaf.relpersistence = 'p',
        leaf.relreplident = 'f' OR leaf.key IS NOT NULL, leaf.unsent, leaf.relreplident <> 'f' AND NOT leaf.has_key
    FROM parts
    CROSS JOIN LATERAL (
        SELECT class.*, {key_of_class} AS key, ({key_of_class} @> tops.key) IS TRUE AS has_key,
            {unsent_of_class} AS unsent
        FROM pg_class AS class WHERE class.oid = parts.oid AND class.relkind <> 'p'
    ) AS leaf
    JOIN pg_namespace AS namespace ON namespace.oid = leaf.relnamespace
    WHERE parts.top = tops.oid AND (
        leaf.relkind <> 'r' OR leaf.relpersistence <> 'p'
        OR leaf.relreplident <> 'f' AND NOT leaf.has_key OR leaf.unsent IS NOT NULL
    )
    ORDER BY leaf.has_key, 1, 2 LIMIT 1
) AS other ON true
ORDER BY 1, 2
"""
_PARENT = """
SELECT parent_schema.nspname, parent.relname
FROM pg_inherits
JOIN pg_class AS class ON class.oid = inhrelid AND class.relispartition
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
JOIN pg_class AS parent ON parent.oid = inhparent
JOIN pg_namespace AS parent_schema ON parent_schema.oid = parent.relnamespace
WHERE namespace.nspname = %s AND class.relname = %s
"""
_EXISTS = """
SELECT FROM pg_class AS class JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE namespace.nspname = %s AND class.relname = %s
"""
_CHECKS_GENERATED = 18
"""The first major version that refuses updates and deletes of a table whose replica identity is not sent whole."""
_KINDS = {"f": "foreign tables", "v": "views", "m": "materialized views", "S": "sequences"}


class PublicationNeededError(LogicalRepError, RuntimeError):
    """A publication that a person has to make or to change; the text has the statements."""

    code = "PUBLICATION_NEEDED"


@dataclass(frozen=True, slots=True)
class Published:
    """The contents of a publication."""

    listed: tuple[PublishedTable, ...]
    """The tables to replicate."""
    warnings: tuple[str, ...]
    """One sentence for each table that is left out, with its remedy."""

    @property
    def tables(self) -> tuple[TableName, ...]:
        """The names of the tables to replicate."""
        return tuple(table.name for table in self.listed)


def ensure_publication(
    connection: Connection, name: str, settings: ReplicateSettings, *, at_start: bool = True
) -> Published:
    """Return the tables of a publication; make it, or add new tables to it if it is ours.

    Args:
        connection: a connection of a role that owns the tables, where there is something to make; it has a
            lock_timeout, as also the list of the tables waits for sessions that alter one.
        name: the publication's name.
        settings: the settings, which tell the tables to replicate, and those to exclude.
        at_start: whether a wanted table that is not there is an error; later it is a warning, as it may be dropped.

    Raises:
        PublicationNeededError: the role may not make it, or it leaves out some kinds of changes, or wanted tables.
        psycopg.errors.LockNotAvailable: another session alters a table.
    """
    wanted, excluded = all_table_names(settings.tables), sorted(all_table_names(settings.exclude_tables))
    major = server_major(connection)
    of_version = {
        "truncate": "pubtruncate" if major >= 11 else "true",
        "via_root": "pubviaroot" if major >= 13 else "true",
        "generated": "pubgencols = 's'" if major >= 18 else "false",
    }
    found = connection.execute(_FOUND.format(**of_version).encode(), (_MARK, name)).fetchone()
    if found is not None:
        _refuse_incomplete(connection, name, found[:4], via_root=found[4] or not found[-1])
    there = {table.name: table for table in query_listed_tables(connection, (name,))} if found is not None else {}
    sends_generated = found is not None and found[-2]
    if at_start:
        tops = {table.name for table in there.values() if table.under is None}
        unknown = [reason for table in excluded if table not in tops for reason in _query_unknown(connection, table)]
        if unknown:
            raise PublicationNeededError(f"what is to be excluded is no table to replicate: {'; '.join(unknown)}")
    candidates, refusing, warnings = _query_candidates(
        connection, name, wanted, excluded, there, sends_generated=sends_generated
    )
    missing = [table for table in wanted if table not in candidates and table not in there]
    if missing and (found is None or found[-1]):
        warnings += [reason for table in missing for reason in _query_unknown(connection, table)]
        if at_start:
            raise PublicationNeededError("; ".join(warnings))
    if found is None:
        try:
            _run(connection, _making(connection, name, candidates))
        except PublicationNeededError as error:
            raise PublicationNeededError("; ".join([*warnings, error.description])) from None
    elif found[-1]:
        warnings += _drop(connection, name, refusing, "the server refuses updates and deletes of")
        published = [table for table in excluded if table in there]
        warnings += _drop(connection, name, published, "the server still sends changes, which are ignored, of")
        warnings += _add(connection, name, [table for table in candidates if table not in there])
    else:
        warnings = []
    listed = [table for table in query_listed_tables(connection, (name,)) if table.under is None]
    absent = sorted(set(wanted) - {table.name for table in listed})
    if absent and at_start:
        raise PublicationNeededError(
            f"the publication {name} has no table {', '.join(map(str, absent))}: "
            + ("; ".join(warnings) or "name tables that it has, or add them to it")
        )
    if excluded:
        listing = ", ".join(map(str, excluded))
        warnings.append(f"excluded, so neither loaded nor followed: {listing}; rows that are there already stay")
    replicated = (table for table in listed if table.name not in excluded and (not wanted or table.name in wanted))
    return Published(tuple(replicated), tuple(warnings))


def _refuse_incomplete(connection: Connection, name: str, actions: Sequence[bool], *, via_root: bool) -> None:
    """Raise PublicationNeededError for a publication that leaves changes out, or sends those of partitions apart."""
    left_out = [action for action, is_published in zip(_ACTIONS, actions, strict=True) if not is_published]
    if not left_out and via_root:
        return
    what, option = "sends partitions as tables of their own", sql.SQL("publish_via_partition_root = true").format()
    if left_out:
        what = f"leaves out {', '.join(left_out)}"
        option = sql.SQL("publish = {}").format(sql.Literal(", ".join(_ACTIONS)))
    change = sql.SQL("ALTER PUBLICATION {} SET ({})").format(sql.Identifier(name), option)
    raise PublicationNeededError(
        f"the publication {name} {what}: run {change.as_string(connection)}", code="PUBLICATION_INCOMPLETE"
    )


def exists(connection: Connection, table: TableName) -> bool:
    """Return whether the database has a table."""
    return connection.execute(_EXISTS, table).fetchone() is not None


def is_ours(connection: Connection, name: str) -> bool:
    """Return whether a publication is there, and this project made it."""
    query = "SELECT obj_description(oid, 'pg_publication') = %s FROM pg_publication WHERE pubname = %s"
    return bool(query_scalar(connection, query, _MARK, name))


def _query_candidates(
    connection: Connection,
    publication: str,
    wanted: Sequence[TableName],
    excluded: Collection[TableName],
    there: Mapping[TableName, PublishedTable],
    *,
    sends_generated: bool,
) -> tuple[list[TableName], list[TableName], list[str]]:
    """Return the tables that can be published, those of `there` that must not be any longer, and warnings.

    Args:
        connection: a connection to the server.
        publication: the publication's name.
        wanted: the tables to replicate; none for all.
        excluded: the tables that are not to be replicated.
        there: the tables that are published already.
        sends_generated: whether the publication sends stored generated columns.
    """
    can: list[TableName] = []
    refusing: list[TableName] = []
    warnings: list[str] = []
    others: dict[str, list[str]] = {}
    major = server_major(connection)
    query = _candidates_query(major, sends_generated=sends_generated)
    for schema, name, kind, persistence, has_identity, unsent, *part in connection.execute(query.encode()).fetchall():
        table = TableName(schema, name)
        if table in excluded or (wanted and table not in wanted):
            continue
        published, is_carried = there.get(table), True
        columns = published.columns or () if published is not None else ()
        identities = [_ReplicaIdentity.of(table, has_identity, unsent, columns, is_root=kind == "p")]
        if part[0] is not None:
            *other, is_carried, part_has_identity, part_unsent, differs = part
            identities.append(
                _ReplicaIdentity.of(TableName(*other), part_has_identity, part_unsent, columns, differs=differs)
            )
        if kind in _KINDS or persistence != "p":
            others.setdefault(_KINDS.get(kind, "unlogged tables"), []).append(str(table))
        elif not is_carried:
            warnings.append(
                f"{table} is not replicated, as its partition {identities[1].table} is foreign or unlogged, whose "
                "changes logical replication does not carry: detach it"
            )
        elif reason := _reason(identities, major, publication):
            effect = "is not replicated"
            if published is not None:
                effect = "is published, and its updates and deletes cannot be followed"
                if any(each.is_refused(major) for each in identities):
                    refusing.append(table)
                    effect = "is not replicated any more"
            warnings.append(f"{table} {effect}, as {reason}")
        else:
            can.append(table)
    if others:
        listed = "; ".join(
            f"{kind} ({', '.join(names[:5])}{', …' if len(names) > 5 else ''})" for kind, names in others.items()
        )
        warnings.append(f"logical replication does not carry {listed}; nor does it carry large objects")
    return can, refusing, warnings


@dataclass(frozen=True, slots=True)
class _ReplicaIdentity:
    """The replica identity of a table or of a partition."""

    table: TableName
    is_there: bool
    unsent: tuple[str, str, str, str] | None
    """A generated column of it that is not sent, as `_UNSENT` tells."""
    is_root: bool = False
    """Whether it is that of a partitioned table, which has no rows of its own."""
    differs: bool = False
    """Whether it is that of a partition, without the columns of its table's."""

    @classmethod
    def of(
        cls,
        table: TableName,
        is_there: bool,
        unsent: Sequence[str] | None,
        columns: Collection[str],
        *,
        is_root: bool = False,
        differs: bool = False,
    ) -> Self:
        """Return one as the catalog tells it; `columns` has the columns of a column list, which are sent."""
        if unsent is None or unsent[0] in columns:
            return cls(table, is_there, None, is_root, differs)
        column, kind, identity, has_plain_key = unsent
        return cls(table, is_there, (column, kind, identity, has_plain_key), is_root, differs)

    def is_refused(self, major: int) -> bool:
        """Return whether the server refuses updates and deletes once the table is published."""
        is_wrong = not self.is_there or (self.unsent is not None and major >= _CHECKS_GENERATED)
        return is_wrong and not self.is_root


def _reason(identities: Sequence[_ReplicaIdentity], major: int, publication: str) -> str | None:
    """Return why a table must not be published, with the remedy; None if it may be.

    Args:
        identities: the table's, and that of a partition which differs, if one does.
        major: the server's major version.
        publication: the publication's name.
    """
    table, last = identities[0], identities[-1]
    for each in identities:
        if each.unsent is None:
            continue
        column, kind, identity, has_plain_key = each.unsent
        whose = "its replica identity" if each is table else f"the replica identity of its partition {each.table}"
        if major < _CHECKS_GENERATED:
            remedy = f"run ALTER TABLE {each.table} REPLICA IDENTITY FULL"
        elif kind == "s" and not (identity == "f" and has_plain_key == "true"):
            name = sql.Identifier(publication).as_string()
            remedy = f"run ALTER PUBLICATION {name} SET (publish_generated_columns = stored)"
        else:
            give = "" if has_plain_key == "true" else "give it a primary key, and "
            remedy = f"{give}run ALTER TABLE {each.table} REPLICA IDENTITY DEFAULT"
        return f"{whose} has the generated column {column}, which is not sent: {remedy}"
    if last.differs:
        why = f"its partition {last.table} has another replica identity: run"
    elif not table.is_there:
        why = "nothing tells its rows apart in updates and deletes: give it a primary key, or run"
    else:
        return None
    return f"{why} ALTER TABLE {last.table} REPLICA IDENTITY FULL"


def _candidates_query(major: int, *, sends_generated: bool) -> str:
    """Return the query for tables; `sends_generated` tells whether the publication sends stored generated columns."""

    def unsent(table: str) -> str:
        # Generated columns exist since PostgreSQL 12.
        if major < 12:
            return "NULL::text[]"
        return _UNSENT.format(
            table=table,
            key=_KEY.format(table=table),
            sent="'', 's'" if sends_generated else "''",
            is_of_whole_rows=str(major >= _CHECKS_GENERATED).lower(),
        )

    return _CANDIDATES.format(
        key_of_class=_KEY.format(table="class"), unsent_of_class=unsent("class"), unsent_of_tops=unsent("tops")
    )


def _query_unknown(connection: Connection, table: TableName) -> list[str]:
    """Return why a table is not among those that can be published; nothing if the catalog's warnings say it."""
    parent = connection.execute(_PARENT, table).fetchone()
    if parent is not None:
        return [f"{table} is a partition, which is replicated with {TableName(*parent)}: name that"]
    if not exists(connection, table):
        return [f"{table} cannot be replicated: there is no such table in this database"]
    return []


def _making(connection: Connection, name: str, tables: Sequence[TableName]) -> list[sql.Composed]:
    options = sql.SQL(" WITH (publish_via_partition_root = true)" if server_major(connection) >= 13 else "")
    of_tables = sql.SQL(" FOR TABLE ") + _list(tables) if tables else sql.SQL("")
    return [
        sql.SQL("CREATE PUBLICATION {}").format(sql.Identifier(name)) + of_tables + options,
        sql.SQL("COMMENT ON PUBLICATION {} IS {}").format(sql.Identifier(name), sql.Literal(_MARK)),
    ]


def _add(connection: Connection, name: str, tables: Sequence[TableName]) -> list[str]:
    """Add tables to the publication, each that can be; return why the others are not."""
    if not tables:
        return []
    adding = sql.SQL("ALTER PUBLICATION {} ADD TABLE ").format(sql.Identifier(name)) + _list(tables)
    try:
        _run(connection, [adding])
    except (PublicationNeededError, psycopg.errors.LockNotAvailable) as error:
        if len(tables) > 1:
            return [warning for table in tables for warning in _add(connection, name, [table])]
        if isinstance(error, PublicationNeededError):
            return [error.description]
        return [f"{tables[0]} is not replicated yet, as another session has locked it; it is tried again"]
    except (psycopg.errors.UndefinedTable, psycopg.errors.DuplicateObject, psycopg.errors.InvalidSchemaName):
        # Another session has dropped or added one of them: the next catalog refresh sees it.
        if len(tables) > 1:
            return [warning for table in tables for warning in _add(connection, name, [table])]
    return []


def _drop(connection: Connection, name: str, tables: Sequence[TableName], effect: str) -> list[str]:
    """Take tables out of the publication; return why some stay, and with what effect."""
    said = []
    for table in tables:
        dropping = sql.SQL("ALTER PUBLICATION {} DROP TABLE ONLY {}")
        statement = dropping.format(sql.Identifier(name), sql.Identifier(*table))
        try:
            _run(connection, [statement])
        except PublicationNeededError as error:
            said.append(f"{effect} {table}: {error.description}")
        except psycopg.errors.LockNotAvailable:
            said.append(f"{table} stays published for now, as another session has locked it; it is tried again")
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedObject, psycopg.errors.InvalidSchemaName):
            # Another session has dropped it.
            continue
    return said


def _list(tables: Sequence[TableName]) -> sql.Composed:
    # Without ONLY the tables that inherit from one would come with it.
    return sql.SQL(", ").join(sql.SQL("ONLY ") + sql.Identifier(*table) for table in tables)


def _run(connection: Connection, statements: Sequence[sql.Composed]) -> None:
    try:
        with connection.transaction():
            for statement in statements:
                connection.execute(statement)
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction) as error:
        texts = "; ".join(statement.as_string(connection) for statement in statements)
        who = "this role may not publish the tables"
        if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
            who = "a standby cannot publish tables, its primary can"
        raise PublicationNeededError(f"{who} ({error.diag.message_primary}): let their owner run: {texts}") from None
