"""Where the next batch of a slot ends, found by a query that sends no changes."""

from __future__ import annotations

from struct import Struct
from typing import Any

from psycopg import sql

from logicalrep import Lsn
from logicalrep_pipeline.peek import peek_call
from logicalrep_pipeline.plugin_options import PluginOptions
from logicalrep_pipeline.publication_watch import publications_there
from logicalrep_pipeline.slots import Connection, when_free
from logicalrep_pipeline.spark.admission import Limits

# Of each transaction the Commit, of each message outside of them the first bytes, and what all up to there have:
# messages, changes, bytes. A Truncate counts for each of its tables. And each Stream Abort, which PostgreSQL 18 sends
# for nothing: where there is nothing else, they are all that says how much the server was asked for.
_ENDS = sql.SQL("""
SELECT messages, changes, bytes, substring(data FOR {}) FROM (
  SELECT data,
    count(*) OVER earlier AS messages,
    sum(length(data)) OVER earlier AS bytes,
    sum(CASE chr(get_byte(data, 0)) WHEN 'I' THEN 1 WHEN 'U' THEN 1 WHEN 'D' THEN 1 WHEN 'M' THEN 1
        WHEN 'T' THEN get_byte(data, 3) * 256 + get_byte(data, 4) ELSE 0 END) OVER earlier AS changes
  FROM {} WINDOW earlier AS (ROWS UNBOUNDED PRECEDING)
) AS message
WHERE get_byte(data, 0) IN (ascii('C'), ascii('A')) OR get_byte(data, 0) = ascii('M') AND get_byte(data, 1) & 1 = 0
""")

_STREAM_ABORT = ord("A")
_COMMIT = Struct(">xBQQ")
_MESSAGE = Struct(">xBQ")


class Planner:
    """Finds the ends of batches, always at the end of a transaction, or of a message outside of them."""

    def __init__(self, slot: str, options: PluginOptions) -> None:
        self._slot = slot
        self._options = options
        # The limit counts changes, the server messages: of small transactions there are three to a change.
        self._messages_per_change = 2.0

    def end(self, connection: Connection, start: Lsn | None, head: Lsn, limits: Limits) -> Lsn | None:
        """The end of the batch that begins at `start`, not after `head`; None if there is nothing."""
        if not limits:
            return head if self._has_any(connection, head) else None
        wanted = 100_000 if limits.changes is None else round(limits.changes * self._messages_per_change) + 1
        while True:
            call = peek_call(self._slot, self._options, head, wanted)
            rows = self._rows(connection, _ENDS.format(_COMMIT.size, call))
            is_all = not rows or rows[-1][0] < wanted
            rows = [row for row in rows if row[3][:1] != b"A"]
            end = self._last_within(rows, start or Lsn(0), limits)
            if end is not None:
                messages, changes = rows[-1][0], rows[-1][1]
                if changes:
                    self._messages_per_change = min(max(messages / changes, 1.0), 4.0)
                return head if is_all and end == _end(rows[-1][3]) else end
            if is_all:
                return None
            wanted *= 2

    def _has_any(self, connection: Connection, head: Lsn) -> bool:
        """Whether there is anything but Stream Aborts."""
        wanted = 1
        while True:
            call = peek_call(self._slot, self._options, head, wanted)
            tags = self._rows(connection, sql.SQL("SELECT get_byte(data, 0) FROM {} LIMIT {}").format(call, wanted))
            if any(tag != _STREAM_ABORT for (tag,) in tags):
                return True
            if len(tags) < wanted:
                return False
            wanted *= 2

    def _rows(self, connection: Connection, query: sql.Composed) -> list[Any]:
        with publications_there(connection):
            return when_free(lambda: connection.execute(query).fetchall(), connection, self._slot, patience=30)

    def _last_within(self, rows: list[tuple[int, int, int, bytes]], start: Lsn, limits: Limits) -> Lsn | None:
        """The last end that the limits allow, at least the first one after `start`."""
        changes_before = bytes_before = 0
        last: Lsn | None = None
        for _, changes, size, data in rows:
            if _is_before(data, start):
                changes_before, bytes_before = changes, size
                continue
            too_many = limits.changes is not None and changes - changes_before > limits.changes
            too_large = limits.bytes is not None and size - bytes_before > limits.bytes
            if last is not None and (too_many or too_large):
                return last
            last = _end(data)
        return last


def _end(data: bytes) -> Lsn:
    """Where a Commit, or a message outside of transactions, ends."""
    return Lsn((_COMMIT if data[:1] == b"C" else _MESSAGE).unpack_from(data)[-1])


def _is_before(data: bytes, start: Lsn) -> bool:
    """Whether it was in an earlier batch: a transaction whose commit begins before, a message that ends before."""
    if data[:1] == b"C":
        return bool(_COMMIT.unpack_from(data)[1] < start)
    return _end(data) <= start
