"""PostgreSQL refuses updates and deletes of a published table whose replica identity it cannot send."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from psycopg import sql

from logicalrep.observe.events import listed
from logicalrep.postgres.publications import PublishedTable
from logicalrep.postgres.server import Connection, query_scalar, server_major
from logicalrep.postgres.unreadable_texts import query_unreadable_tables
from logicalrep.transactions.table_names import TableName, TableSelection

# The columns of a table's replica identity; with REPLICA IDENTITY FULL the columns of the primary key, if it has one.
_KEY = """(
    SELECT array_agg(attribute.attname)
    FROM pg_index AS index
    JOIN pg_attribute AS attribute ON attribute.attrelid = index.indrelid AND attribute.attnum = ANY (index.indkey)
    WHERE index.indrelid = {table}.oid AND index.indisvalid AND index.indimmediate
        AND CASE {table}.relreplident WHEN 'i' THEN index.indisreplident WHEN 'n' THEN false ELSE index.indisprimary END
)"""
# The unique index that is a table's replica identity, or can be if the table has none: then the index with the fewest
# columns. A valid index of a partitioned table has an index of each partition.
_FITTING_INDEX = """(
    SELECT index_class.relname
    FROM pg_index AS index JOIN pg_class AS index_class ON index_class.oid = index.indexrelid
    WHERE index.indrelid = {table}.oid AND index.indisunique AND index.indisvalid
        AND (index.indisreplident OR {table}.relreplident <> 'i' OR {table}.key IS NULL)
        AND index.indimmediate AND index.indpred IS NULL AND index.indexprs IS NULL AND NOT EXISTS (
            SELECT FROM pg_attribute AS part
            WHERE part.attrelid = index.indrelid AND part.attnum = ANY ((index.indkey::int2[])[0:{keys} - 1])
                AND (NOT part.attnotnull{is_generated})
        )
    ORDER BY {keys}, 1 LIMIT 1
)"""
# A generated column of a table's replica identity that is not sent: its name, its kind, the replica identity, and
# whether there is a primary key without such a column. PostgreSQL 18 and later refuse updates and deletes of such a
# table once it is published, also with REPLICA IDENTITY FULL; earlier versions send old rows without the column.
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
# A schema that belongs to an extension has tables that the extension makes for its work, and that are no members of it:
# the logs of pg_repack, the chunks of TimescaleDB.
_IS_WORK = """EXISTS (
    SELECT FROM pg_depend
    WHERE classid = 'pg_namespace'::regclass AND objid = {table}.relnamespace AND deptype = 'e'
)"""
# The rows of a hypertable of TimescaleDB are in its chunks.
_HAS_CHUNKS = f"""EXISTS (
    SELECT FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid
    WHERE inhparent = tops.oid AND tops.relkind = 'r' AND {_IS_WORK.format(table="child")}
)"""
# Citus has the rows of such a table in shards, on its workers too.
_DISTRIBUTED = """
SELECT nspname, relname
FROM pg_catalog.pg_dist_partition AS part JOIN pg_class AS class ON class.oid = part.logicalrelid
JOIN pg_namespace AS namespace ON namespace.oid = relnamespace
"""
# Partitions are published with their root, and tables of an extension belong to the extension. The columns of a
# partition key depend on their table too. PostgreSQL uses a partition's own replica identity, both for its old rows and
# to decide whether it accepts updates.
_CANDIDATES = """
WITH RECURSIVE tops AS (
    SELECT class.*, namespace.nspname, {key_of_class} AS key
    FROM pg_class AS class
    JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
    WHERE class.relkind IN ('r', 'p', 'f', 'v', 'm', 'S') AND NOT class.relispartition
        AND class.oid <> ALL (%s::oid[])
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
    tops.relreplident = 'f' OR tops.key IS NOT NULL,
    CASE WHEN tops.relreplident = 'i' OR tops.relreplident <> 'f' AND tops.key IS NULL THEN {fitting_index} END,
    {unsent_of_tops},
    pg_has_role(tops.relowner, 'USAGE'), {is_work}, {has_chunks}, other.*
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
# The table, and the partitions below it, whose replica identity differs from the given one.
_WITHOUT_IDENTITY = """
WITH RECURSIVE members AS (
    SELECT class.oid, 0 AS height FROM pg_class AS class JOIN pg_namespace AS namespace ON namespace.oid = relnamespace
    WHERE namespace.nspname = %s AND class.relname = %s
    UNION ALL
    SELECT inhrelid, height + 1
    FROM members JOIN pg_class AS class ON class.oid = members.oid AND class.relkind = 'p'
    JOIN pg_inherits ON inhparent = members.oid
)
SELECT namespace.nspname, class.relname
FROM members JOIN pg_class AS class USING (oid) JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE class.relreplident <> %s ORDER BY height, 1, 2
"""
# The tables whose replica identity is not the given index of a table, or its part in a partition.
_WITHOUT_INDEX = """
WITH RECURSIVE members AS (
    SELECT index.indexrelid AS oid, 0 AS height
    FROM pg_class AS class JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
    JOIN pg_index AS index ON index.indrelid = class.oid
    JOIN pg_class AS index_class ON index_class.oid = index.indexrelid
    WHERE namespace.nspname = %s AND class.relname = %s AND index_class.relname = %s
    UNION ALL
    SELECT inhrelid, height + 1 FROM members JOIN pg_inherits ON inhparent = members.oid
)
SELECT namespace.nspname, class.relname, index_class.relname
FROM members JOIN pg_index AS index ON index.indexrelid = members.oid
JOIN pg_class AS index_class ON index_class.oid = members.oid
JOIN pg_class AS class ON class.oid = index.indrelid
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE NOT (index.indisreplident AND class.relreplident = 'i') ORDER BY height, 1, 2
"""
_EXISTS = """
SELECT FROM pg_class AS class JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE namespace.nspname = %s AND class.relname = %s
"""
_CHECKS_GENERATED = 18
"""The first major version that refuses updates and deletes if it cannot send a column of the replica identity."""
_KINDS = {"f": "foreign tables", "v": "views", "m": "materialized views", "S": "sequences"}


def exists(connection: Connection, table: TableName) -> bool:
    return connection.execute(_EXISTS, table).fetchone() is not None


@dataclass(frozen=True, slots=True)
class LeftOut:
    table: TableName
    text: str
    statements: tuple[str, ...] = ()
    """The statements after which it can be published; empty if somebody has to decide more."""
    needs_generated: bool = False
    """Whether it could be published if the publication sent stored generated columns."""
    is_carried: bool = True
    """Whether PostgreSQL would send the changes of all its partitions."""
    keyless_effect: str | None = None
    """What happens to tables without a replica identity such as this table, for the sentence on all of them."""


@dataclass(frozen=True, slots=True)
class Candidates:
    publishable: tuple[TableName, ...]
    not_owned: frozenset[TableName]
    """The publishable tables that the role may not add to a publication."""
    to_unpublish: tuple[TableName, ...]
    left_out: tuple[LeftOut, ...]
    not_carried: str | None
    """A sentence about objects that logical replication does not carry; None if there are none."""

    @property
    def incomplete(self) -> dict[TableName, str]:
        return {table.table: table.text for table in self.left_out if not table.is_carried}

    @property
    def warnings(self) -> list[str]:
        """One sentence for each table that is left out, or for all such tables without a replica identity."""
        keyless: dict[str | None, list[LeftOut]] = {}
        for table in self.left_out:
            keyless.setdefault(table.keyless_effect, []).append(table)
        texts = [table.text for table in keyless.pop(None, [])]
        for effect, tables in keyless.items():
            texts.append(
                tables[0].text
                if len(tables) == 1
                else f"{len(tables):,} tables {effect}, as nothing identifies their rows in updates and deletes: "
                f"{listed([table.table for table in tables])}. Give each a primary key, or run ALTER TABLE … REPLICA "
                "IDENTITY FULL for it and its partitions"
            )
        return texts + ([self.not_carried] if self.not_carried else [])


def query_candidates(
    connection: Connection,
    publication: str,
    wanted: TableSelection,
    excluded: TableSelection,
    published_tables: Mapping[TableName, PublishedTable],
    *,
    sends_generated: bool,
) -> Candidates:
    """An empty `wanted` means all tables."""
    publishable: list[TableName] = []
    not_owned: set[TableName] = set()
    to_unpublish: list[TableName] = []
    left_out: list[LeftOut] = []
    not_carried_tables: dict[str, list[str]] = {}
    major = server_major(connection)
    unreadable = query_unreadable_tables(connection)
    left_out += [
        LeftOut(table.name, str(table))
        for table in unreadable.values()
        if not table.is_partition and table.name not in excluded and (not wanted or table.name in wanted)
    ]
    query = _candidates_query(major, sends_generated=sends_generated)
    rows = connection.execute(query.encode(), (list(unreadable),)).fetchall()
    distributed = _query_distributed(connection)
    work_schemas: set[str] = set()
    for schema, name, kind, persistence, has_identity, index, unsent, is_own, is_work, has_chunks, *part in rows:
        table = TableName(schema, name)
        if table in excluded or (wanted and table not in wanted):
            continue
        if is_work and table not in wanted.names:
            work_schemas.add(schema)
            continue
        published, is_carried = published_tables.get(table), True
        columns = published.columns or () if published is not None else ()
        identities = [_ReplicaIdentity.of(table, has_identity, unsent, columns, is_root=kind == "p")]
        if part[0] is not None:
            *other, is_carried, part_has_identity, part_unsent, differs = part
            identities.append(
                _ReplicaIdentity.of(TableName(*other), part_has_identity, part_unsent, columns, differs=differs)
            )
        if kind in _KINDS or persistence != "p":
            not_carried_tables.setdefault(_KINDS.get(kind, "unlogged tables"), []).append(str(table))
        elif has_chunks or table in distributed:
            where = "the chunks of a hypertable" if has_chunks else "the shards of Citus"
            left_out.append(LeftOut(table, f"{table} is not replicated, as its rows are in {where}"))
        elif not is_carried:
            text = (
                f"{table} is not replicated, as its partition {identities[1].table} is foreign or unlogged, whose "
                "changes logical replication does not carry: detach it"
            )
            left_out.append(LeftOut(table, text, is_carried=False))
        elif refusal := _refusal(identities, major, publication, index):
            effect, effect_of_several = "is not replicated", "are not replicated"
            if published is not None:
                effect = "is published, but its updates and deletes cannot be applied"
                effect_of_several = "are published, but their updates and deletes cannot be applied"
                if any(identity.makes_server_refuse_updates(major) for identity in identities):
                    to_unpublish.append(table)
                    effect, effect_of_several = "is no longer replicated", "are no longer replicated"
            reason, remedy = refusal
            statements = _remedy_statements(connection, table, remedy, publication) if remedy is not None else ()
            left_out.append(
                LeftOut(
                    table,
                    f"{table} {effect}, as {reason}",
                    statements,
                    needs_generated=remedy == "stored",
                    keyless_effect=None if has_identity else effect_of_several,
                )
            )
        else:
            publishable.append(table)
            if not is_own:
                not_owned.add(table)
    not_carried = None
    if not_carried_tables:
        kinds = "; ".join(
            f"{kind} ({', '.join(names[:5])}{', …' if len(names) > 5 else ''})"
            for kind, names in not_carried_tables.items()
        )
        not_carried = f"logical replication does not carry {kinds}; nor does it carry large objects"
    if work_schemas:
        schemas = ", ".join(sorted(work_schemas))
        work = f"tables in the schemas of extensions are not replicated unless --tables names them: {schemas}"
        not_carried = "; ".join(filter(None, (not_carried, work)))
    return Candidates(tuple(publishable), frozenset(not_owned), tuple(to_unpublish), tuple(left_out), not_carried)


def _query_distributed(connection: Connection) -> set[TableName]:
    if query_scalar(connection, "SELECT to_regclass('pg_catalog.pg_dist_partition')") is None:
        return set()
    return {TableName(*row) for row in connection.execute(_DISTRIBUTED).fetchall()}


@dataclass(frozen=True, slots=True)
class _ReplicaIdentity:
    table: TableName
    is_usable: bool
    unsent: tuple[str, str, str, str] | None
    """A generated column of it that is not sent, as `_UNSENT` returns it."""
    is_root: bool = False
    """Whether the table is partitioned, and so has no rows of its own."""
    differs: bool = False
    """Whether the table is a partition whose replica identity lacks columns of its root's replica identity."""

    @classmethod
    def of(
        cls,
        table: TableName,
        is_usable: bool,
        unsent: Sequence[str] | None,
        columns: Collection[str],
        *,
        is_root: bool = False,
        differs: bool = False,
    ) -> Self:
        """`columns` are the columns of a column list, which are sent."""
        if unsent is None or unsent[0] in columns:
            return cls(table, is_usable, None, is_root, differs)
        column, kind, identity, has_plain_key = unsent
        return cls(table, is_usable, (column, kind, identity, has_plain_key), is_root, differs)

    def makes_server_refuse_updates(self, major: int) -> bool:
        is_wrong = not self.is_usable or (self.unsent is not None and major >= _CHECKS_GENERATED)
        return is_wrong and not self.is_root


@dataclass(frozen=True, slots=True)
class _Index:
    name: str

    def statement(self, table: TableName) -> str:
        return f"ALTER TABLE {table} REPLICA IDENTITY USING INDEX {sql.Identifier(self.name).as_string()}"


_Remedy = Literal["FULL", "DEFAULT", "stored"] | _Index
"""The replica identity that a table needs; `stored`: the publication has to send stored generated columns."""


def _refusal(
    identities: Sequence[_ReplicaIdentity], major: int, publication: str, index: str | None
) -> tuple[str, _Remedy | None] | None:
    """Return why a table must not be published, and the remedy; None if it may be published.

    `index` is the unique index that is the table's replica identity, or can be.
    """
    table, last = identities[0], identities[-1]
    for refused in identities:
        if refused.unsent is None:
            continue
        column, kind, identity, has_plain_key = refused.unsent
        whose = "its replica identity" if refused is table else f"the replica identity of its partition {refused.table}"
        remedy: _Remedy | None
        if major < _CHECKS_GENERATED:
            remedy, text = "FULL", f"run ALTER TABLE {refused.table} REPLICA IDENTITY FULL"
        elif kind == "s" and not (identity == "f" and has_plain_key == "true"):
            remedy, text = "stored", f"run {_send_generated_statement(publication)}"
        else:
            give = "" if has_plain_key == "true" else "give it a primary key, and "
            remedy = None if give else "DEFAULT"
            text = f"{give}run ALTER TABLE {refused.table} REPLICA IDENTITY DEFAULT"
        return f"{whose} has the generated column {column}, which is not sent: {text}", remedy
    if not table.is_usable:
        fault = "nothing identifies its rows in updates and deletes: give it a primary key, or run"
        if index is not None:
            every = ", and the same for each of its partitions, with the partition's own index" if table.is_root else ""
            return f"{fault} {_Index(index).statement(table.table)}{every}", _Index(index)
        every = ", also for each of its partitions" if table.is_root else ""
        return f"{fault} ALTER TABLE {table.table} REPLICA IDENTITY FULL{every}", "FULL"
    if last.differs:
        fault = f"its partition {last.table} has another replica identity: run"
        if index is not None:
            return f"{fault} ALTER TABLE {last.table} REPLICA IDENTITY USING INDEX, with its index", _Index(index)
        return f"{fault} ALTER TABLE {last.table} REPLICA IDENTITY FULL", "FULL"
    return None


def _send_generated_statement(publication: str) -> str:
    name = sql.Identifier(publication).as_string()
    return f"ALTER PUBLICATION {name} SET (publish_generated_columns = stored)"


def _remedy_statements(connection: Connection, table: TableName, remedy: _Remedy, publication: str) -> tuple[str, ...]:
    if remedy == "stored":
        return (_send_generated_statement(publication),)
    if isinstance(remedy, _Index):
        members = connection.execute(_WITHOUT_INDEX, (*table, remedy.name)).fetchall()
        return tuple(_Index(name).statement(TableName(*member)) for *member, name in members)
    members = connection.execute(_WITHOUT_IDENTITY, (*table, remedy[0].lower())).fetchall()
    return tuple(f"ALTER TABLE {TableName(*member)} REPLICA IDENTITY {remedy}" for member in members)


def _candidates_query(major: int, *, sends_generated: bool) -> str:
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

    fitting_index = _FITTING_INDEX.format(
        table="tops",
        keys="index.indnkeyatts" if major >= 11 else "index.indnatts",
        is_generated=" OR part.attgenerated <> ''" if major >= 12 else "",
    )
    return _CANDIDATES.format(
        fitting_index=fitting_index,
        is_work=_IS_WORK.format(table="tops"),
        has_chunks=_HAS_CHUNKS,
        key_of_class=_KEY.format(table="class"),
        unsent_of_class=unsent("class"),
        unsent_of_tops=unsent("tops"),
    )


def query_unpublishable_reasons(connection: Connection, table: TableName) -> list[str]:
    """Empty if the catalog's warnings explain it."""
    parent = connection.execute(_PARENT, table).fetchone()
    if parent is not None:
        return [f"{table} is a partition, which is replicated with {TableName(*parent)}: name {TableName(*parent)}"]
    if not exists(connection, table):
        return [f"{table} cannot be replicated: there is no such table in this database"]
    return []
