"""The search on the server for rows of new partitions, which a TRUNCATE may have removed without a trace.

PostgreSQL sends the rows of a partition under its root's name, but does not send a TRUNCATE of the partition. TRUNCATE
of an older partition shows in the catalog, as it creates another file. In the transaction that created the partition,
TRUNCATE empties the first file and leaves no trace. So replicate searches the server for the rows of that transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from psycopg import sql

from logicalrep.arrow.changes.change_batch import NEW, OLD, ChangeBatch
from logicalrep.arrow.changes.sent_relation import SentRelation
from logicalrep.pipeline.catalog.matching import key_numbers
from logicalrep.pipeline.catalog.partitions import query_readable
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.postgres.publications import query_row_filter
from logicalrep.postgres.server import Connection
from logicalrep.postgres.snapshots import SnapshotError
from logicalrep.postgres.table_rows.keys import KeyCondition, is_partitioned, query_key_columns
from logicalrep.postgres.table_rows.reading import NotReadableError, UnsafeTableError, locked_for_query
from logicalrep.postgres.visibility import xid_distance
from logicalrep.transactions.tags import DELETE, INSERT, TRUNCATE, UPDATE

Run = tuple[TableSpec, Sequence[ChangeBatch]]
_Key = tuple[str | None, ...]

# The rows of system columns never change: their xmin is the transaction, or subtransaction, that created the table.
_MADE_BY = """
SELECT attrelid::bigint, xmin::text::bigint FROM pg_attribute WHERE attrelid = ANY(%s) AND attnum = -1
"""
# A file begins with the rows of the transaction that created it, so LIMIT ends the scan early.
_COUNT = sql.SQL("SELECT count(*) FROM (SELECT FROM ONLY {} WHERE xmin::text::bigint = ANY(%s) LIMIT %s) AS found")
EMPTIED = "a partition may have been truncated in the transaction that created it"


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Rows that transactions wrote to the partitions that they created."""

    spec: TableSpec
    publication: str
    first_messages: Mapping[int, SentRelation]
    """By the partition's OID."""
    changes: Sequence[Run]
    """The table's changes from the transactions of these messages on."""
    most_keys: int
    """The most keys in one statement, and the most keys in memory that the server lacks."""

    def query_lost(self, connection: Connection) -> bool:
        """Return whether an unsent TRUNCATE may have removed rows.

        Raises one of LOCKED while another session alters a table.
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
                self._has_all_rows_by_count(connection, lsn, writers) or self._has_all_keys(connection, lsn)
                for lsn, writers in suspects.items()
            )
        except (SnapshotError, UnsafeTableError, NotReadableError):
            return True

    def _has_all_rows_by_count(self, connection: Connection, lsn: int, writers: Mapping[int, Sequence[int]]) -> bool:
        if query_row_filter(connection, self.spec.relation.table, (self.publication,)) is not None:
            # The count would include rows that PostgreSQL does not send.
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

    def _has_all_keys(self, connection: Connection, lsn: int) -> bool:
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
        return not absent or not self._do_keys_remain(absent, numbers, lsn)

    def _do_keys_remain(self, keys: set[_Key], numbers: Sequence[int], lsn: int) -> bool:
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
        """Yield commit LSN, removed and added key of each change.

        Both keys are None for a TRUNCATE; a key is empty if no row was removed.
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
