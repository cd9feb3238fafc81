"""A look on the server for rows of new partitions, which a TRUNCATE may have removed without a trace.

The server sends no TRUNCATE of a partition whose rows are sent as those of its table. A partition that was there before
the transaction gets another file; one that the same transaction made is emptied in its first file, and the catalog is
then as without it. So what such a transaction wrote is looked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from psycopg import sql

from logicalrep.arrow.changes.change_batch import NEW, OLD, ChangeBatch
from logicalrep.arrow.changes.sent_relation import SentRelation
from logicalrep.pipeline.catalog.partitions import query_readable
from logicalrep.pipeline.catalog.proof import key_numbers
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.postgres.publications import query_row_filter
from logicalrep.postgres.server import Connection
from logicalrep.postgres.snapshots import SnapshotError
from logicalrep.postgres.table_rows.keys import KeyCondition, is_partitioned, query_key_columns
from logicalrep.postgres.table_rows.reading import NotReadableError, UnsafeTableError, locked_for_query
from logicalrep.postgres.visibility import xid_distance
from logicalrep.transactions.tags import DELETE, INSERT, TRUNCATE, UPDATE

Run = tuple[TableSpec, Sequence[ChangeBatch]]
"""Changes of one description, as `runs` returns them."""
_Key = tuple[str | None, ...]

# Nothing writes the rows of system columns again: they have the transaction, or subtransaction, that made the table.
_MADE_BY = """
SELECT attrelid::bigint, xmin::text::bigint FROM pg_attribute WHERE attrelid = ANY(%s) AND attnum = -1
"""
# The first rows of a file are those of the transaction that made it, so that the bound ends the reading.
_COUNT = sql.SQL("SELECT count(*) FROM (SELECT FROM ONLY {} WHERE xmin::text::bigint = ANY(%s) LIMIT %s) AS found")
EMPTIED = "a partition may have been truncated in the transaction that made it"
"""The reason to load a table whose rows are not where they were written."""


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Rows that were written to new partitions of a table, and that are looked for on the server."""

    spec: TableSpec
    """The table's present description."""
    publication: str
    """The publication that has the table."""
    first_messages: Mapping[int, SentRelation]
    """The first message of each new partition, by the partitions' OIDs."""
    changes: Sequence[Run]
    """The table's changes: those of the transactions of these messages, and later ones."""
    most_keys: int
    """The most keys of one statement, and those that are kept as the server lacks them."""

    def query_lost(self, connection: Connection) -> bool:
        """Return whether some may be gone without a change that tells it.

        `connection` is a session that sees the transactions. Raises one of LOCKED while another one alters the table.
        """
        made_by: dict[int, int] = dict(connection.execute(_MADE_BY, (list(self.first_messages),)).fetchall())
        suspects: dict[int, dict[int, list[int]]] = {}
        for oid, relation in self.first_messages.items():
            maker = made_by.get(oid, relation.xid)
            # Subtransactions have greater ids than their transaction.
            if xid_distance(maker, relation.xid) >= 0:
                suspects.setdefault(relation.commit_lsn, {})[oid] = [relation.xid, maker]
        try:
            return not all(
                self._are_counted(connection, lsn, writers) or self._are_keys_there(connection, lsn)
                for lsn, writers in suspects.items()
            )
        except (SnapshotError, UnsafeTableError, NotReadableError):
            return True

    def _are_counted(self, connection: Connection, lsn: int, writers: Mapping[int, Sequence[int]]) -> bool:
        """Return whether partitions have as many rows of their writers as a transaction inserted into the table.

        `writers` has the ids of the transaction, and of the subtransaction that made it, by the partitions' OIDs.
        """
        if query_row_filter(connection, self.spec.relation.table, (self.publication,)) is not None:
            # Rows that are not sent would count too.
            return False
        inserted = counted = 0
        for batch in (batch for _, batches in self.changes for batch in batches):
            ops = batch.ops[batch.lsns == lsn].tolist()
            last = max((at for at, op in enumerate(ops) if op == TRUNCATE), default=-1)
            inserted = ops[last + 1 :].count(INSERT) + (inserted if last < 0 else 0)
        for oid, name in query_readable(connection, writers):
            with locked_for_query(connection, oid, name):
                query = _COUNT.format(sql.Identifier(*name))
                counted += connection.execute(query, (writers[oid], inserted)).fetchall()[0][0]
        return counted >= inserted

    def _are_keys_there(self, connection: Connection, lsn: int) -> bool:
        """Return whether the server has a row of each key that a transaction left."""
        spec, numbers = self.spec, key_numbers(self.spec)
        name, oid = spec.relation.table, spec.relation.relation_id
        are_known = all({*table.attnums} >= {*(numbers or ())} for table, _ in self.changes)
        if spec.key is None or numbers is None or spec.protected or not are_known:
            return False
        columns = query_key_columns(connection, oid, spec.key)
        if any(column.sent_type is None for column in columns):
            return False
        condition = KeyCondition(None, name, is_partitioned(connection, oid), columns, None)
        written, absent = (new for at, _, new in self._keys(numbers, lsn) if new is not None and at == lsn), set[_Key]()
        while keys := [*islice(written, self.most_keys)]:
            with locked_for_query(connection, oid, name, with_partitions=True):
                texts = dict(zip(spec.key, zip(*keys, strict=True), strict=True))
                absent.update(keys[number] for number in condition.query_absent(connection, texts))
            if len(absent) > self.most_keys:
                return False
        return not absent or not self._are_left(absent, numbers, lsn)

    def _are_left(self, keys: set[_Key], numbers: Sequence[int], lsn: int) -> bool:
        """Return whether a transaction wrote some of these keys, and no later change took them away."""
        written_keys: set[_Key] = set()
        for at, old, new in self._keys(numbers, lsn):
            if old is None:
                written_keys.clear()
            else:
                written_keys.discard(old)
            if new in keys and at == lsn:
                written_keys.add(new)
        return bool(written_keys)

    def _keys(self, numbers: Sequence[int], lsn: int) -> Iterator[tuple[int, _Key | None, _Key | None]]:
        """Yield the keys of the changes from an LSN on: the position, the key that goes, and the one that comes.

        Both are None for TRUNCATE. A change without a key that goes has an empty one.
        """
        for table, batches in self.changes:
            columns = dict(zip(table.attnums, table.relation.names, strict=True))
            names = [prefix + columns[number] for prefix in (OLD, NEW) for number in numbers]
            for batch in batches:
                rows = batch.chosen(batch.lsns >= lsn).rows
                values = (rows.column(name).to_pylist() for name in ("commit_lsn", "op", "old_kind", *names))
                for at, op, old_kind, *keys in zip(*values, strict=True):
                    old, new = tuple(keys[: len(numbers)]), tuple(keys[len(numbers) :])
                    if op == TRUNCATE:
                        yield at, None, None
                    elif op == DELETE:
                        yield at, old, None
                    elif op == INSERT or (op == UPDATE and old_kind):
                        yield at, old if old_kind else (), new
