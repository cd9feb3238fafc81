"""The bounds of partitions: comparisons of one column that all rows of the partition satisfy.

Only bounds that replicate evaluates exactly as PostgreSQL does count. So the column has a type of `_EXACT_TYPES`, and
the partitioned table compares it by the type's own operators and, if it is text, for equality alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from logicalrep.pipeline.schema.table_facts import PartitionBound
from logicalrep.postgres.server import Connection
from logicalrep.postgres.server_faults import has_stale_sessions

_EXACT_TYPES = (16, 20, 21, 23, 25, 1043, 1082, 1114, 1184)
"""The OIDs of boolean, bigint, smallint, integer, text, varchar, date, timestamp and timestamptz."""
# With a relation's OID, pg_get_expr would wait for the lock of a session that alters the partition.
_BOUNDS = """
SELECT class.oid::bigint, attname, pg_get_expr(relpartbound, 0)
FROM pg_class AS class JOIN pg_inherits ON inhrelid = class.oid
JOIN pg_partitioned_table AS parent ON partrelid = inhparent
JOIN pg_attribute AS attribute ON attrelid = partrelid AND attnum = partattrs[0]
JOIN pg_opclass AS class_of_type ON class_of_type.oid = partclass[0] AND opcdefault AND class_of_type.oid < 16384
LEFT JOIN pg_collation AS sorting ON sorting.oid = partcollation[0]
WHERE class.oid = ANY(%s) AND relispartition AND atttypid = ANY(%s) AND (
    (partstrat = 'r' AND attcollation = 0)
    OR (partstrat = 'l' AND partcollation[0] = attcollation AND collisdeterministic IS NOT false)
)
"""
_TOKEN = re.compile(r"'(?:[^']|'')*'|[(),]|[^\s'(),]+")
_UNBOUNDED = ("MINVALUE", "MAXVALUE")


def query_bounds(
    connection: Connection,
    links: Mapping[int, Sequence[tuple[int, int, int]]],
    numbers: Mapping[int, Mapping[str, int]],
) -> dict[int, list[PartitionBound]]:
    """Return the usable bounds of the partitions in `links`, by the OID of the partitioned table.

    `numbers` are the numbers of each table's columns, by name. No bound is usable if the server may send rows of a
    detached partition: they need not satisfy it.
    """
    bounds: dict[int, list[PartitionBound]] = {oid: [] for oid in links}
    partitions = [partition for of_table in links.values() for partition, *_ in of_table]
    if not partitions or has_stale_sessions(connection):
        return bounds
    rows = connection.execute(_BOUNDS, (partitions, list(_EXACT_TYPES))).fetchall()
    texts = {partition: (column, text) for partition, column, text in rows}
    for oid, of_table in links.items():
        for partition, *_ in of_table:
            column, text = texts.get(partition, ("", ""))
            number, comparisons = numbers[oid].get(column), comparisons_of(text)
            if number is not None and comparisons:
                bounds[oid].append(PartitionBound(partition, number, comparisons))
    return bounds


def comparisons_of(text: str) -> tuple[tuple[str, str], ...]:
    """Return the comparisons of the first partitioning column in a bound's SQL; empty for another kind of bound.

    Example:
        >>> comparisons_of("FOR VALUES FROM ('2026-11-01') TO ('2026-12-01')")
        (('>=', '2026-11-01'), ('<', '2026-12-01'))
        >>> comparisons_of("FOR VALUES FROM (1, 5) TO (2, 7)")
        (('>=', '1'), ('<=', '2'))
        >>> comparisons_of("FOR VALUES IN ('a', 'it''s')")
        (('=', 'a'), ('=', "it's"))
    """
    tokens = _TOKEN.findall(text)
    if tokens[:3] == ["FOR", "VALUES", "IN"]:
        values = tokens[4:-1:2]
        return () if "NULL" in values else tuple(("=", _unquoted(value)) for value in values)
    if tokens[:3] != ["FOR", "VALUES", "FROM"]:
        return ()
    least, (greatest, *later_columns) = tokens[4], tokens[tokens.index("TO") + 2 : -1 : 2]
    # A row with the greatest value itself belongs to the partition if its other columns are below theirs.
    operator = "<" if all(value == "MINVALUE" for value in later_columns) else "<="
    ends = ((">=", least), (operator, greatest))
    return tuple((end, _unquoted(value)) for end, value in ends if value not in _UNBOUNDED)


def _unquoted(token: str) -> str:
    return token[1:-1].replace("''", "'") if token.startswith("'") else token
