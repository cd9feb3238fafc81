"""Where the next batch of a slot ends, found by a query that sends no changes."""

from __future__ import annotations

from struct import Struct

from psycopg import sql

from logicalrep import Lsn
from logicalrep_pipeline.peek import peek_call
from logicalrep_pipeline.plugin_options import PluginOptions
from logicalrep_pipeline.slots import Connection, when_free
from logicalrep_pipeline.spark.admission import Limits

# Of each transaction the Commit, and what all up to it have: messages, changes, bytes. A Truncate counts for each of
# its tables.
_TRANSACTIONS = sql.SQL("""
SELECT messages, changes, bytes, data FROM (
  SELECT data,
    count(*) OVER earlier AS messages,
    sum(length(data)) OVER earlier AS bytes,
    sum(CASE chr(get_byte(data, 0)) WHEN 'I' THEN 1 WHEN 'U' THEN 1 WHEN 'D' THEN 1 WHEN 'M' THEN 1
        WHEN 'T' THEN get_byte(data, 3) * 256 + get_byte(data, 4) ELSE 0 END) OVER earlier AS changes
  FROM {} WINDOW earlier AS (ROWS UNBOUNDED PRECEDING)
) AS message WHERE get_byte(data, 0) = ascii('C')
""")

_COMMIT = Struct(">xBQQ")


class Planner:
    """Finds the ends of batches, always at the end of a transaction."""

    def __init__(self, slot: str, options: PluginOptions) -> None:
        self._slot = slot
        self._options = options
        # The limit counts changes, the server messages: of small transactions there are three to a change.
        self._messages_per_change = 2.0

    def end(self, connection: Connection, start: Lsn | None, head: Lsn, limits: Limits) -> Lsn | None:
        """The end of the batch that begins at `start`, not after `head`; None if there is nothing."""
        if not limits:
            call = peek_call(self._slot, self._options, head, 1)
            found = self._rows(connection, sql.SQL("SELECT 1 FROM {} LIMIT 1").format(call))
            return head if found else None
        wanted = 100_000 if limits.changes is None else round(limits.changes * self._messages_per_change) + 1
        while True:
            call = peek_call(self._slot, self._options, head, wanted)
            rows = self._rows(connection, _TRANSACTIONS.format(call))
            complete = not rows or rows[-1][0] < wanted
            end = self._last_within(rows, start or Lsn(0), limits)
            if end is not None:
                messages, changes = rows[-1][0], rows[-1][1]
                if changes:
                    self._messages_per_change = min(max(messages / changes, 1.0), 4.0)
                if complete and end == _ends(rows[-1][3])[1]:
                    return head
                return end
            if complete:
                # Messages outside of transactions are all there can be.
                call = peek_call(self._slot, self._options, head, 1)
                found = self._rows(connection, sql.SQL("SELECT 1 FROM {} LIMIT 1").format(call))
                return head if found else None
            wanted *= 2

    def _rows(self, connection: Connection, query: sql.Composed) -> list[tuple[int, int, int, bytes]]:
        return when_free(
            lambda: connection.execute(query).fetchall(),
            connection,
            self._slot,
            patience=30,
        )

    def _last_within(self, rows: list[tuple[int, int, int, bytes]], start: Lsn, limits: Limits) -> Lsn | None:
        """The end of the last transaction that the limits allow, at least of the first from `start` on."""
        changes_before = bytes_before = 0
        last: Lsn | None = None
        for _, changes, size, data in rows:
            commit_lsn, end_lsn = _ends(data)
            if commit_lsn < start:
                changes_before, bytes_before = changes, size
                continue
            too_many = limits.changes is not None and changes - changes_before > limits.changes
            too_large = limits.bytes is not None and size - bytes_before > limits.bytes
            if last is not None and (too_many or too_large):
                return last
            last = end_lsn
        return last


def _ends(commit: bytes) -> tuple[Lsn, Lsn]:
    _, commit_lsn, end_lsn = _COMMIT.unpack_from(commit)
    return Lsn(commit_lsn), Lsn(end_lsn)
