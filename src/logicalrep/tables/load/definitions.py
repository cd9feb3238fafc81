"""Tables' definitions on the server, as far as their copies depend on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import psycopg
from psycopg import sql

from logicalrep.postgres.publications import FIRST_NAMED_TYPE, published_relation, type_catalog
from logicalrep.postgres.slots import Connection, server_major
from logicalrep.postgres.snapshots import SnapshotError
from logicalrep.postgres.table_rows.reading import UnsafeTableError, check_functions, lock_table
from logicalrep.tables.delta.replicated_table import ReplicatedTable, TypePart
from logicalrep.tables.table_settings import TableSettings
from logicalrep.transactions.table_names import TableName
from logicalrep_protocol import v1
from logicalrep_protocol.v1 import ReplicaIdentity
from logicalrep_runtime.scalars import Oid

_TEXT = 25
_COLUMNS = """
SELECT attrelid, attnum, attname, atttypid, atttypmod FROM pg_attribute
WHERE attrelid = ANY(%s) AND attnum > 0 AND NOT attisdropped {} ORDER BY attrelid, attnum
"""
# The key is that of the replica identity. With REPLICA IDENTITY FULL it is the primary key, unless that is deferrable.
_KEYS = """
SELECT class.oid, attribute.attname
FROM pg_class AS class
JOIN pg_index AS index ON index.indrelid = class.oid AND index.indisvalid AND index.indimmediate
    AND CASE class.relreplident WHEN 'i' THEN index.indisreplident WHEN 'n' THEN false ELSE index.indisprimary END
CROSS JOIN LATERAL unnest(index.indkey::int[]) WITH ORDINALITY AS part(attnum, place)
JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid AND attribute.attnum = part.attnum
WHERE class.oid = ANY(%s) AND part.place <= index.indnkeyatts
ORDER BY class.oid, part.place
"""
# Each row has its own values in the columns of such an index.
_UNIQUE = """
SELECT index.indrelid, array_agg(attribute.attname::text)
FROM pg_index AS index
JOIN pg_attribute AS attribute ON attribute.attrelid = index.indrelid
    AND attribute.attnum = ANY ((index.indkey::int2[])[0:index.indnkeyatts - 1])
WHERE index.indrelid = ANY(%s) AND index.indisunique AND index.indisvalid AND index.indimmediate
    AND index.indpred IS NULL AND index.indexprs IS NULL
GROUP BY index.indexrelid, index.indrelid HAVING bool_and(attribute.attnotnull)
"""
_IDENTITIES = "SELECT oid, relreplident FROM pg_class WHERE oid = ANY(%s)"
# The files of a partitioned table are those of its partitions.
_FILES = """
WITH RECURSIVE files AS (
    SELECT oid, oid AS top, relkind, relfilenode FROM pg_class WHERE oid = ANY(%s)
    UNION ALL
    SELECT class.oid, files.top, class.relkind, class.relfilenode
    FROM files JOIN pg_inherits ON files.relkind = 'p' AND inhparent = files.oid
    JOIN pg_class AS class ON class.oid = inhrelid
)
SELECT top, oid, relfilenode FROM files WHERE relkind NOT IN ('p', 'f') ORDER BY top, oid
"""
# The publications' entries for a table: a filter that changes, or a table that leaves and joins, has another one.
_ENTRIES = """
SELECT prrelid, entry::text FROM pg_publication_rel AS entry
JOIN pg_publication AS publication ON prpubid = publication.oid
WHERE prrelid = ANY(%(oids)s) AND pubname = ANY(%(names)s)
"""
_ENTRIES_OF_SCHEMAS = """
UNION ALL
SELECT class.oid, entry::text FROM pg_publication_namespace AS entry
JOIN pg_publication AS publication ON pnpubid = publication.oid JOIN pg_class AS class ON relnamespace = pnnspid
WHERE class.oid = ANY(%(oids)s) AND pubname = ANY(%(names)s)
"""
# The types of the columns and, within them, those of domains, arrays, ranges and composite types.
_TYPE_PARTS = """
WITH RECURSIVE used AS (
    SELECT attrelid AS top, atttypid AS type FROM pg_attribute
    WHERE attrelid = ANY(%(oids)s) AND attnum > 0 AND NOT attisdropped AND atttypid >= %(first)s::oid
    UNION
    SELECT used.top, part.type
    FROM used JOIN pg_type AS type ON type.oid = used.type
    CROSS JOIN LATERAL (
        SELECT unnest(ARRAY[type.typbasetype, type.typelem]) AS type
        UNION ALL SELECT rngsubtype FROM pg_range WHERE {}
        UNION ALL SELECT atttypid FROM pg_attribute
        WHERE attrelid = type.typrelid AND attnum > 0 AND NOT attisdropped
    ) AS part
    WHERE part.type >= %(first)s::oid
)
SELECT top, type::bigint, enum.oid::bigint, enumlabel::text FROM used JOIN pg_enum AS enum ON enumtypid = type
UNION ALL
SELECT top, used.type::bigint, attnum, NULL
FROM used JOIN pg_type AS type ON type.oid = used.type
JOIN pg_attribute ON attrelid = typrelid AND attnum > 0 AND NOT attisdropped
ORDER BY 1, 2, 3
"""


@dataclass(frozen=True, slots=True)
class Definition:
    """A table's definition."""

    columns: tuple[tuple[int, str, int, int], ...]
    """The published columns: number, name, type's OID and modifier."""
    replica_identity: str
    key: tuple[str, ...] | None
    """The columns that identify a row; None if there are none."""
    files: tuple[tuple[int, int], ...]
    """The OIDs and file numbers of the table, or of its partitions. A rewritten or truncated one has another file."""
    published: str
    """A digest of how the publications list the table."""
    type_parts: tuple[TypePart, ...] = ()
    """The labels and attributes of its columns' types: the texts of rows that do not change are made of them."""
    protected: tuple[tuple[int, str], ...] = ()
    """The numbers and names of columns that are masked or left out; what is hashed is text in `columns`."""

    @classmethod
    def of(cls, table: ReplicatedTable) -> Definition:
        """Return the definition with which a table was loaded."""
        columns = zip(table.attnums, table.relation.columns, strict=True)
        return cls(
            columns=tuple((number, each.name, each.type_id, each.type_modifier) for number, each in columns),
            replica_identity=table.relation.replica_identity.value,
            key=table.key,
            files=table.files,
            published=table.published,
            type_parts=table.type_parts,
            protected=table.protected,
        )

    def _under(self, settings: TableSettings) -> Definition:
        """Return the definition of the table as it is written: without columns that are left out, hashes as text."""
        hashed = {name for name, mask in settings.masked.items() if mask == "hashed"}
        return replace(
            self,
            columns=tuple(
                (number, name, _TEXT, -1) if name in hashed else (number, name, type_id, modifier)
                for number, name, type_id, modifier in self.columns
                if name not in settings.left_out
            ),
            protected=tuple((number, name) for number, name, *_ in self.columns if name in settings.protected),
        )

    @property
    def has_whole_old(self) -> bool:
        """Whether the server sends whole old rows."""
        return self.replica_identity == ReplicaIdentity.FULL.value

    def has_protected(self, settings: TableSettings, numbers: Mapping[str, int]) -> bool:
        """Return whether all columns to be masked or left out are there, those with known numbers under these."""
        there = {name: number for number, name in self.protected}
        return settings.protected <= there.keys() and all(
            numbers.get(name, number) == number for name, number in there.items()
        )

    @property
    def names(self) -> frozenset[str]:
        """The names of all published columns, with those that are left out."""
        return frozenset((*(name for _, name, *_ in self.columns), *(name for _, name in self.protected)))


def definitions(
    connection: Connection,
    published: Mapping[int, Collection[str] | None],
    publications: tuple[str, ...],
    settings: Mapping[int, TableSettings],
) -> dict[int, Definition]:
    """Return the definitions of tables as they are, or as they were in the snapshot that the session holds.

    They have the columns that are written by the tables' settings, and the key that those give them, if it is one.

    Args:
        connection: a connection to the server.
        published: the tables' OIDs, each with the names of the published columns; None for all.
        publications: the publications.
        settings: each table's settings.
    """
    oids = list(published)
    columns: dict[int, list[tuple[int, str, int, int]]] = {oid: [] for oid in oids}
    # Generated columns exist since PostgreSQL 12, and can be published since 18.
    is_sent = "AND attgenerated = ''" if 12 <= server_major(connection) < 18 else ""
    for oid, number, name, type_id, modifier in connection.execute(
        _COLUMNS.format(is_sent).encode(), (oids,)
    ).fetchall():
        names = published[oid]
        if names is None or name in names:
            columns[oid].append((number, name, type_id, modifier))
    keys: dict[int, list[str]] = {}
    for oid, name in connection.execute(_KEYS, (oids,)).fetchall():
        keys.setdefault(oid, []).append(name)
    files: dict[int, list[tuple[int, int]]] = {oid: [] for oid in oids}
    for top, oid, file in connection.execute(_FILES, (oids,)).fetchall():
        files[top].append((oid, file))
    entries: dict[int, list[str]] = {oid: [] for oid in oids}
    query = _ENTRIES + (_ENTRIES_OF_SCHEMAS if server_major(connection) >= 15 else "")
    for oid, entry in connection.execute(query.encode(), {"oids": oids, "names": list(publications)}).fetchall():
        entries[oid].append(entry)
    parts: dict[int, list[TypePart]] = {oid: [] for oid in oids}
    # Multiranges exist since PostgreSQL 14.
    of_ranges = "type.oid IN (rngtypid, rngmultitypid)" if server_major(connection) >= 14 else "type.oid = rngtypid"
    query = _TYPE_PARTS.format(of_ranges)
    for oid, *part in connection.execute(query.encode(), {"oids": oids, "first": FIRST_NAMED_TYPE}).fetchall():
        parts[oid].append(TypePart(*part))
    own = {oid: settings[oid].key for oid in oids if settings[oid].key}
    uniques = connection.execute(_UNIQUE, (list(own),)).fetchall() if own else []
    are_keys = {oid for oid, names in uniques if set(names) == set(own[oid])}
    found = {}
    for oid, identity in connection.execute(_IDENTITIES, (oids,)).fetchall():
        key = own[oid] if oid in are_keys and identity == ReplicaIdentity.FULL.value else tuple(keys.get(oid, ()))
        is_published = bool(key) and set(key) <= {name for _, name, _, _ in columns[oid]}
        found[oid] = Definition(
            columns=tuple(columns[oid]),
            replica_identity=identity,
            key=key if is_published else None,
            files=tuple(files[oid]),
            published=sha256("\n".join(sorted(entries[oid])).encode()).hexdigest()[:16],
            type_parts=tuple(parts[oid]),
        )._under(settings[oid])
    return found


def described(
    connection: Connection, table: TableName, publications: tuple[str, ...], settings: TableSettings
) -> ReplicatedTable | None:
    """Return a table as it is, or as it was in the snapshot that the session holds; None if there is none.

    It has the columns that are written by its settings.
    """
    relation = published_relation(connection, table, publications)
    if relation is None:
        return None
    oid, types = relation.relation_id, dict(zip(relation.names, relation.types, strict=True))
    found = definitions(connection, {oid: relation.names}, publications, {oid: settings})[oid]
    return ReplicatedTable(
        relation=replace(
            relation,
            columns=tuple(
                v1.Column(flags=0, name=name, type_id=Oid(type_id), type_modifier=modifier)
                for _, name, type_id, modifier in found.columns
            ),
            types=tuple(None if type_id == _TEXT else types[name] for _, name, type_id, _ in found.columns),
        ),
        catalog=type_catalog(connection, table),
        key=found.key,
        attnums=tuple(number for number, *_ in found.columns),
        files=found.files,
        published=found.published,
        settings=settings,
        type_parts=found.type_parts,
        protected=found.protected,
    )


# Whether a partition was attached after it was made, whether it has rows, and whether the first was inserted by the
# transaction that made it a partition: the stream has nothing of rows from before.
_NEW_PARTITION = """
SELECT namespace.nspname, class.relname, inherits.xmin::text = type.xmin::text, inherits.xmin::text,
    has_table_privilege(class.oid, 'SELECT')
FROM pg_inherits AS inherits
JOIN pg_class AS class ON class.oid = inherits.inhrelid
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
JOIN pg_type AS type ON type.oid = class.reltype
WHERE inherits.inhrelid = %s
"""


def has_unsent_rows(connection: Connection, partitions: Sequence[int]) -> bool:
    """Return whether one of some new partitions may have rows from before it was a partition."""
    for oid in partitions:
        row = connection.execute(_NEW_PARTITION, (oid,)).fetchone()
        # Where the role may not read it, or not safely, the load tells what is missing.
        if row is None or not row[-1]:
            return True
        schema, table, is_made_so, made_by, _ = row
        if not is_made_so and server_major(connection) < 15:
            # A session that has sent rows of it, which may be gone, sends none of it as a partition.
            return True
        name = TableName(schema, table)
        try:
            with connection.transaction():
                lock_table(connection, oid, name)
                check_functions(connection, name, [oid])
                query = sql.SQL("SELECT xmin::text FROM ONLY {} LIMIT 1").format(sql.Identifier(*name))
                row = connection.execute(query).fetchone()
        except (SnapshotError, UnsafeTableError, psycopg.errors.InsufficientPrivilege):
            return True
        if row is not None and not (is_made_so and row[0] != made_by):
            return True
    return False
