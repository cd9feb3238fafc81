"""The description of a table after its columns or its key changed, and the values of its old rows in them.

Columns are told apart by their numbers, which renaming does not change; the stream has names only, and the catalog is
of now. A description in between is made of both, as long as a name means one column.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from logicalrep.postgres.slots import Connection, server_major
from logicalrep.tables.delta.replicated_table import ReplicatedTable, WrittenColumn
from logicalrep.tables.schema.shapes import Shape
from logicalrep.values import TypeCatalog
from logicalrep_protocol.v1 import Column, Type

# The value that rows have in a column which was added after them. The table's file does not have it.
_MISSING = """
SELECT DISTINCT (attmissingval::text::text[])[1] FROM pg_attribute
WHERE attrelid = ANY(%s) AND attname = %s AND NOT attisdropped
"""


# The transactions that wrote the labels and the attributes of types last.
_WRITERS_OF_PARTS = """
SELECT xmin::text::bigint FROM pg_enum WHERE enumtypid = ANY(%(types)s)
UNION
SELECT attribute.xmin::text::bigint FROM pg_type AS type JOIN pg_attribute AS attribute ON attrelid = typrelid
WHERE type.oid = ANY(%(types)s) AND attnum > 0
"""


@dataclass(frozen=True)
class Evolution:
    """A table's later description, and how its rows are those of the earlier one."""

    table: ReplicatedTable
    """The later description."""
    sources: Mapping[str, str]
    """The earlier name of each column that was there, by its name in the Delta table, both of them."""
    defaults: Mapping[int, str]
    """The text of the value that old rows have in a new column, by the column's number; NULL in others."""


def evolution(
    connection: Connection, copied: ReplicatedTable, now: ReplicatedTable, shape: Shape | None, since: int | None
) -> Evolution | None:
    """Return how a table changed; None if that cannot be told, or the server wrote its rows anew.

    Args:
        connection: a connection to the server.
        copied: the table as it was, or one beside it.
        now: the table as it is on the server.
        shape: the shape of the rows that follow; None if they are like `now`.
        since: the id of the transaction of the first of them.
    """
    later = dict(now.files)
    if any(later.get(oid) != file for oid, file in copied.files):
        return None
    table = _between(copied, now, shape)
    if table is None:
        return None
    known = {part.type_id for part in copied.type_parts}
    new_parts = tuple(part for part in now.type_parts if part.type_id not in known)
    if since is not None and _are_later(connection, {part.type_id for part in new_parts}, since):
        return None
    sources: dict[str, str] = {}
    defaults: dict[int, str] = {}
    for (attnum, has_texts), column in table.by_number.items():
        source = copied.by_number.get((attnum, has_texts))
        if source is not None:
            sources[column.name] = source.name
            is_same = column.type == source.type or _is_wider(source, column.type)
            if not is_same or column.refuses > source.refuses:
                # NULL stands for values that must not be NULL any more.
                return None
        elif not has_texts:
            values = _missing(connection, [oid for oid, _ in copied.files], table.relation.names[column.place])
            if len(values) != 1:
                # The partitions' old rows have different values.
                return None
            if values[0] is not None:
                defaults[attnum] = values[0]
    left = {*copied.left, *copied.names} - set(table.names)
    table = replace(table, left=tuple(sorted(left)), type_parts=(*copied.type_parts, *new_parts))
    return Evolution(table, sources, defaults)


def _are_later(connection: Connection, types: Collection[int], since: int) -> bool:
    """Return whether labels or attributes of types are of later transactions: earlier rows may have other texts."""
    writers = connection.execute(_WRITERS_OF_PARTS.encode(), {"types": list(types)}).fetchall() if types else ()
    return any(0 < (writer - since) % (1 << 32) < 1 << 31 for (writer,) in writers)


def _between(copied: ReplicatedTable, now: ReplicatedTable, shape: Shape | None) -> ReplicatedTable | None:
    """Return the description that has a shape's columns, as they are now or, if they are gone, as they were."""
    names = frozenset(now.relation.names) if shape is None or shape.names is None else shape.names
    by_name: dict[str, tuple[int, Column, Type | None]] = {}
    for table in (copied, now):
        for attnum, column, type_ in zip(table.attnums, table.relation.columns, table.relation.types, strict=True):
            if shape is not None and column.name in names and by_name.get(column.name, (attnum,))[0] != attnum:
                # The name means two columns.
                return None
            by_name[column.name] = attnum, column, type_
    if not names <= by_name.keys():
        return None
    found = sorted((by_name[name] for name in names), key=lambda each: each[0])
    attnums = tuple(attnum for attnum, *_ in found)
    if len(set(attnums)) < len(attnums):
        return None
    renamed = dict(zip(attnums, (column.name for _, column, _ in found), strict=True))
    for identified in (copied, now):
        of_names = dict(zip(identified.relation.names, identified.attnums, strict=True))
        key = None if identified.key is None else tuple(renamed.get(of_names[name], "") for name in identified.key)
        if key is not None and "" in key:
            continue
        table = replace(
            copied,
            relation=replace(
                copied.relation,
                replica_identity=identified.relation.replica_identity,
                columns=tuple(column for _, column, _ in found),
                types=tuple(type_ for *_, type_ in found),
            ),
            catalog=TypeCatalog({**copied.catalog.by_oid, **now.catalog.by_oid}),
            key=key,
            attnums=attnums,
        )
        if identified is now if shape is None else shape.fits(table):
            return table
    return None


def _is_wider(before: WrittenColumn, after: pa.DataType) -> bool:
    """Return whether values keep their text in another type."""
    if not pa.types.is_decimal(before.type):
        return False
    if pa.types.is_string(after):
        # In a column that does not refuse it, NULL may stand for NaN.
        return before.refuses
    return bool(
        pa.types.is_decimal(after) and before.type.scale == after.scale and before.type.precision <= after.precision
    )


def _missing(connection: Connection, files: Sequence[int], column: str) -> list[str | None]:
    if server_major(connection) < 11:
        # Each default writes the table anew.
        return [None]
    return [text for (text,) in connection.execute(_MISSING.encode(), (list(files), column)).fetchall()]
