"""The description of tables in the server's catalog; no query waits for a lock of another session."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from logicalrep.pipeline.catalog.changing_texts import ChangingText, query_changing_texts
from logicalrep.pipeline.catalog.old_rows import OldRowsError, query_incomplete_old_rows
from logicalrep.pipeline.catalog.partition_bounds import query_bounds
from logicalrep.pipeline.catalog.publication_entries import query_entries, query_partitions_of_published
from logicalrep.pipeline.catalog.unique_indexes import key_columns, query_unique_indexes
from logicalrep.pipeline.schema.file_partitions import PartitionRule
from logicalrep.pipeline.schema.table_facts import Evidence, TypePart
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.postgres.publications import FIRST_NAMED_TYPE, query_types
from logicalrep.postgres.server import Connection, query_scalar, server_major
from logicalrep.postgres.table_rows.keys import attached_condition
from logicalrep.postgres.unreadable_texts import query_unreadable_tables
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.table_names import TableName
from logicalrep.values import TypeCatalog
from logicalrep_protocol import v1
from logicalrep_protocol.v1 import ReplicaIdentity
from logicalrep_runtime.scalars import Oid

TEXT, VARCHAR = Oid(25), Oid(1043)
_TABLES = """
SELECT class.oid::bigint, nspname, relname, relreplident, relnatts
FROM pg_class AS class JOIN pg_namespace AS namespace ON namespace.oid = relnamespace
WHERE class.oid = ANY(%s) AND relkind IN ('r', 'p')
"""
# Generated columns exist since PostgreSQL 12.
_COLUMNS = """
SELECT attrelid::bigint, attnum, attname, atttypid::bigint, atttypmod, attisdropped, {}, xmin::text::bigint
FROM pg_attribute
WHERE attrelid = ANY(%s) AND attnum > 0 ORDER BY attrelid, attnum
"""
# A statement that writes a row increases its `xmin` and so the sums; deleting a row changes the counts.
_WRITTEN = """
SELECT relation::bigint,
    concat_ws(':', columns.count, columns.sum, columns.max, defaults.count, defaults.sum, defaults.max)
FROM unnest(%s::oid[]) AS relation
CROSS JOIN LATERAL (
    SELECT count(*), sum(xmin::text::bigint), max(xmin::text::bigint) FROM pg_attribute
    WHERE attrelid = relation AND attnum > 0
) AS columns
CROSS JOIN LATERAL (
    SELECT count(*), sum(xmin::text::bigint), max(xmin::text::bigint) FROM pg_attrdef WHERE adrelid = relation
) AS defaults
"""
# The value of old rows in a column that was added later. The table's file does not have this value. The catalog has it
# in an array, whose text depends on its type's delimiter.
_MISSING = """
SELECT attrelid::bigint, attname, array_to_string(attmissingval, '') FROM pg_attribute
WHERE attrelid = ANY(%s) AND attnum > 0 AND atthasmissing AND NOT attisdropped
"""
# The files of a partitioned table are the files of its partitions.
_PARTS = """
WITH RECURSIVE parts AS (
    SELECT oid, oid AS top, NULL::oid AS above, NULL::text AS link, relkind, relfilenode
    FROM pg_class WHERE oid = ANY(%s)
    UNION ALL
    SELECT class.oid, parts.top, inhparent, link.xmin::text, class.relkind, class.relfilenode
    FROM parts JOIN pg_inherits AS link ON parts.relkind = 'p' AND inhparent = parts.oid AND {}
    JOIN pg_class AS class ON class.oid = inhrelid
)
SELECT top::bigint, oid::bigint, above::bigint, link::bigint, relkind NOT IN ('p', 'f'), relfilenode::bigint
FROM parts ORDER BY 1, 2
"""
# While one of these rows is unchanged, no ALTER TABLE has made the table unlogged: PostgreSQL refuses that for a table
# that a publication names, and each rewrite by ALTER TABLE creates another TOAST table. VACUUM FULL, CLUSTER, TRUNCATE
# and SET TABLESPACE do not.
_LOGGED = """
SELECT prrelid::bigint, 'r' || oid || ':' || xmin::text FROM pg_publication_rel WHERE prrelid = ANY(%(oids)s)
UNION ALL SELECT oid::bigint, 't' || reltoastrelid FROM pg_class WHERE oid = ANY(%(oids)s) AND reltoastrelid <> 0
ORDER BY 1, 2
"""
_COMMENTS = """
SELECT objoid::bigint, objsubid, description FROM pg_description
WHERE classoid = 'pg_class'::regclass AND objoid = ANY(%s) ORDER BY 1, 2
"""
_PUBLICATIONS = "SELECT 'p' || oid || ':' || xmin::text, {} FROM pg_publication WHERE pubname = ANY(%s) ORDER BY 1"
# The types of the columns, and the types within domains, arrays, ranges and composite types.
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
SELECT top, type::bigint, enum.oid::bigint, enumlabel::text, enum.xmin::text::bigint
FROM used JOIN pg_enum AS enum ON enumtypid = type
UNION ALL
SELECT top, used.type::bigint, attnum, NULL, pg_attribute.xmin::text::bigint
FROM used JOIN pg_type AS type ON type.oid = used.type
JOIN pg_attribute ON attrelid = typrelid AND attnum > 0 AND NOT attisdropped
UNION ALL
SELECT top, used.type::bigint, 0, NULL, relnatts
FROM used JOIN pg_type AS type ON type.oid = used.type JOIN pg_class ON pg_class.oid = typrelid
ORDER BY 1, 2, 3
"""

_LABELLED = """
WITH RECURSIVE used AS (
    SELECT attrelid, attnum, atttypid AS type, 0 AS nesting FROM pg_attribute
    WHERE attrelid = ANY(%(oids)s) AND attnum > 0 AND NOT attisdropped AND atttypid >= %(first)s::oid
    UNION
    SELECT used.attrelid, used.attnum, part.type, greatest(used.nesting, part.nesting)
    FROM used JOIN pg_type AS type ON type.oid = used.type
    CROSS JOIN LATERAL (
        SELECT type.typbasetype AS type, 0 AS nesting
        UNION ALL SELECT type.typelem, 1
        UNION ALL SELECT rngsubtype, 1 FROM pg_range WHERE {}
        UNION ALL SELECT atttypid, 2 FROM pg_attribute
        WHERE attrelid = type.typrelid AND attnum > 0 AND NOT attisdropped
    ) AS part
    WHERE part.type >= %(first)s::oid
)
SELECT attrelid::bigint, attnum, type::bigint, max(nesting)
FROM used WHERE EXISTS (SELECT FROM pg_enum WHERE enumtypid = type) GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
# The labels that a type was created with, if their rows are unchanged.
_ORIGINAL_LABELS = """
SELECT enumtypid::bigint, enum.oid::bigint FROM pg_enum AS enum JOIN pg_type AS type ON type.oid = enumtypid
WHERE enumtypid = ANY(%s) AND enum.xmin = type.xmin AND enum.cmin = type.cmin
    AND enum.xmax = '0'::xid AND type.xmax = '0'::xid
"""


@dataclass(frozen=True)
class CatalogTable:
    table: TableSpec
    """The table under its settings: without left-out columns, and with hashed columns as text."""
    dropped: frozenset[int]
    missing: Mapping[str, frozenset[str | None]]
    """The texts of old rows in columns that were added later: for each column a text per partition; NULL if absent."""
    original_labels: frozenset[tuple[int, int]] = frozenset()
    """The labels that its types were created with, if they are unchanged: the OIDs of type and label."""
    has_unsent_key: bool = False
    """Whether PostgreSQL does not send a column of the replica identity: it is generated, or not in the column list."""
    is_partition: bool = False
    """Whether it is a partition of a published table, so that PostgreSQL sends its rows under that table's name."""
    changing_texts: tuple[ChangingText, ...] = ()
    old_rows: str | None = None
    """Why its old rows do not identify the changed row; None if they do."""

    def refuse_incomplete_old_rows(self) -> None:
        if self.old_rows is not None:
            raise OldRowsError(self.old_rows)


@contextmanager
def catalog_snapshot(connection: Connection) -> Iterator[None]:
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def query_catalog_tables(
    connection: Connection,
    oids: Collection[int],
    publications: tuple[str, ...],
    settings_of: Callable[[TableName], TableSettings],
    *,
    sends_generated: bool = False,
) -> dict[int, CatalogTable]:
    """Return tables by their OIDs, without dropped tables, in the session's snapshot if it has one."""
    major, names = server_major(connection), list(publications)

    def rows(query: str, *parameters: object) -> list[Any]:
        return connection.execute(query.encode(), parameters).fetchall()

    unreadable = query_unreadable_tables(connection, oids)
    tables = {oid: facts for oid, *facts in rows(_TABLES, [oid for oid in oids if oid not in unreadable])}
    oids = list(tables)
    published = rows(_PUBLICATIONS.format("pubgencols = 's'" if major >= 18 else "false"), names)
    under_others = query_partitions_of_published(connection, oids, names)
    entries, lists = query_entries(connection, oids, names)
    columns: dict[int, list[tuple[int, str, int, int]]] = {oid: [] for oid in oids}
    dropped: dict[int, set[int]] = {oid: set() for oid in oids}
    generated = "attgenerated" if major >= 12 else "''"
    columns_written: dict[int, list[tuple[int, int]]] = {oid: [] for oid in oids}
    for oid, number, name, type_id, modifier, is_dropped, kind, writer in rows(_COLUMNS.format(generated), oids):
        listed = lists.get(oid)
        is_stored = kind == "s" and (sends_generated or any(with_generated for _, with_generated in published))
        if is_dropped:
            dropped[oid].add(number)
        elif number in listed if listed is not None else not kind or is_stored:
            columns[oid].append((number, name, type_id, modifier))
            columns_written[oid].append((number, writer))
    unique = query_unique_indexes(connection, oids)
    files: dict[int, list[tuple[int, int]]] = {oid: [] for oid in oids}
    links: dict[int, list[tuple[int, int, int]]] = {oid: [] for oid in oids}
    for top, oid, above, link, has_file, file in rows(_PARTS.format(attached_condition(connection)), oids):
        if has_file:
            files[top].append((oid, file))
        if above is not None:
            links[top].append((oid, above, link))
    bounds = query_bounds(connection, links, {oid: {name: number for number, name, *_ in columns[oid]} for oid in oids})
    relations = [*oids, *(oid for catalog_tables in files.values() for oid, _ in catalog_tables if oid not in tables)]
    written = dict(rows(_WRITTEN, relations))
    logged: dict[int, list[str]] = {oid: [] for oid in oids}
    for oid, row in connection.execute(_LOGGED.encode(), {"oids": oids}).fetchall():
        logged[oid].append(row)
    missing = missing_columns(rows(_MISSING, relations) if major >= 11 else (), files)
    parts: dict[int, list[TypePart]] = {oid: [] for oid in oids}
    # Multiranges exist since PostgreSQL 14.
    of_ranges = "type.oid IN (rngtypid, rngmultitypid)" if major >= 14 else "type.oid = rngtypid"
    of_parts = {"oids": oids, "first": FIRST_NAMED_TYPE}
    for oid, *part in connection.execute(_TYPE_PARTS.format(of_ranges).encode(), of_parts).fetchall():
        parts[oid].append(TypePart(*part))
    changing = query_changing_texts(connection, oids, of_ranges)
    lc_monetary = query_scalar(connection, "SELECT current_setting('lc_monetary')")
    labelled: dict[int, list[tuple[int, int, int]]] = {oid: [] for oid in oids}
    original: list[tuple[int, int]] = []
    enums = {part.type_id for of_table in parts.values() for part in of_table if part.label is not None}
    if enums:
        for oid, *facts in connection.execute(_LABELLED.format(of_ranges).encode(), of_parts).fetchall():
            labelled[oid].append((facts[0], facts[1], facts[2]))
        original = rows(_ORIGINAL_LABELS, list(enums))
    comments: dict[int, dict[int, str]] = {oid: {} for oid in oids}
    for oid, number, text in rows(_COMMENTS, oids):
        comments[oid][number] = text
    types = query_types(
        connection,
        {type_id for of_table in columns.values() for *_, type_id, _ in of_table if type_id >= FIRST_NAMED_TYPE},
    )
    settings = {oid: settings_of(TableName(*tables[oid][:2])) for oid in oids}
    keys = {oid: key_columns(ReplicaIdentity(tables[oid][2]), unique[oid], settings[oid].key) for oid in oids}
    names_of_rows = {oid: keys[oid] or {name for _, name, *_ in columns[oid]} for oid in oids}
    old_rows = query_incomplete_old_rows(connection, files, publications, names_of_rows)
    catalog_tables = {}
    for oid, (schema, name, identity, numbers) in tables.items():
        key = keys[oid]
        is_published = bool(key) and set(key) <= {column for _, column, *_ in columns[oid]}
        evidence = Evidence(
            columns=tuple(columns[oid]),
            columns_written=tuple(columns_written[oid]),
            numbers=numbers,
            published=(*(row for row, _ in published), *sorted(row for _, row in entries[oid])),
            written=tuple((index, written[index]) for index in dict.fromkeys((oid, *(leaf for leaf, _ in files[oid])))),
            links=tuple(links[oid]),
            bounds=tuple(bounds[oid]),
            labelled=tuple(labelled[oid]),
            key_indexes=tuple((index.oid, index.written) for index in unique[oid] if index.has_just(key)),
            filled=(),
            logged=tuple(logged[oid]),
            lc_monetary=lc_monetary,
        )
        table = _spec_under_settings(
            settings[oid],
            TableDescription(
                relation_id=Oid(oid), schema=schema, name=name, replica_identity=ReplicaIdentity(identity),
                columns=(), types=(),
            ),
            types,
            key=key if is_published else None,
            files=tuple(files[oid]),
            published=sha256("\n".join(sorted(entry for entry, _ in entries[oid])).encode()).hexdigest()[:16],
            type_parts=tuple(parts[oid]),
            evidence=evidence,
            comments=tuple(
                (number, comments[oid][number])
                for number, column in ((0, ""), *((number, column) for number, column, *_ in columns[oid]))
                if number in comments[oid] and column not in settings[oid].left_out
            ),
        )  # fmt: skip
        of_types = {part.type_id for part in parts[oid]}
        labels = frozenset((type_id, label) for type_id, label in original if type_id in of_types)
        has_unsent_key = bool(key) and not is_published
        texts = tuple(text for text in changing[oid] if settings[oid].writes(text.column))
        catalog_tables[oid] = CatalogTable(
            table,
            frozenset(dropped[oid]),
            missing[oid],
            labels,
            has_unsent_key,
            oid in under_others,
            texts,
            old_rows.get(oid),
        )
    return catalog_tables


def missing_columns(
    rows: Collection[tuple[int, str, str]], files: Mapping[int, list[tuple[int, int]]]
) -> dict[int, dict[str, frozenset[str | None]]]:
    of_files: dict[int, dict[str, str]] = defaultdict(dict)
    for oid, name, text in rows:
        of_files[oid][name] = text
    texts_by_table: dict[int, dict[str, frozenset[str | None]]] = {}
    for top, of_top in files.items():
        names = {name for oid, _ in of_top for name in of_files.get(oid, ())}
        texts_by_table[top] = {name: frozenset(of_files.get(oid, {}).get(name) for oid, _ in of_top) for name in names}
    return texts_by_table


def _spec_under_settings(
    settings: TableSettings, relation: TableDescription, types: TypeCatalog, **facts: Any
) -> TableSpec:
    hashed = {name for name, mask in settings.masked.items() if mask == "hashed"}
    evidence: Evidence = facts["evidence"]
    columns, of_columns, attnums = [], [], []
    for number, name, type_id, modifier in evidence.columns:
        if name in settings.left_out:
            continue
        of_type = types.by_oid.get(type_id)
        if name in hashed:
            type_id, modifier, of_type = TEXT, -1, None
        columns.append(v1.Column(flags=0, name=name, type_id=Oid(type_id), type_modifier=modifier))
        of_columns.append(
            None if of_type is None else v1.Type(type_id=Oid(type_id), namespace=of_type.namespace, name=of_type.name)
        )
        attnums.append(number)
    numbers = {column.name: number for column, number in zip(columns, attnums, strict=True)}
    wanted = [rule for rule in settings.wanted_partitions if rule.column in numbers]
    return TableSpec(
        relation=TableDescription(
            relation_id=relation.relation_id,
            schema=relation.schema,
            name=relation.name,
            replica_identity=relation.replica_identity,
            columns=tuple(columns),
            types=tuple(of_columns),
        ),
        catalog=TypeCatalog({partition: types.by_oid[partition] for partition in dict.fromkeys(
            type_id for *_, type_id, _ in evidence.columns) if partition in types.by_oid}),
        attnums=tuple(attnums),
        settings=settings,
        protected=tuple((number, name) for number, name, *_ in evidence.columns if name in settings.protected),
        partitions=tuple(PartitionRule(rule.transform, numbers[rule.column], rule.buckets) for rule in wanted),
        **facts,
    )  # fmt: skip


_OID = """
SELECT class.oid::bigint FROM pg_class AS class JOIN pg_namespace AS namespace ON namespace.oid = relnamespace
WHERE nspname = %s AND relname = %s
"""


def query_description(
    connection: Connection,
    table: TableName,
    publications: tuple[str, ...],
    settings: TableSettings,
    *,
    sends_generated: bool = False,
) -> TableSpec | None:
    """Return a table by its name; None if it does not exist."""
    with catalog_snapshot(connection):
        oid = query_scalar(connection, _OID, *table)
        oids = [] if oid is None else [oid]
        catalog_tables = query_catalog_tables(
            connection, oids, publications, lambda name: settings, sends_generated=sends_generated
        )
    return catalog_tables[oid].table if oid in catalog_tables else None
