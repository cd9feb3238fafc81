"""The planner of batches, which finds the end of the next batch by a query that sends no changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from struct import Struct
from typing import TypeVar

from psycopg import sql

from logicalrep.postgres.peek import peek_call
from logicalrep.postgres.plugin_options import PluginOptions
from logicalrep.postgres.publications import publication_errors
from logicalrep.postgres.server import Connection
from logicalrep.postgres.slots.usage import retry_until_free
from logicalrep.spark.peek.admission import ReadLimits
from logicalrep.spark.peek.slot_range import page_after, page_at
from logicalrep.transactions.tags import BEGIN, COMMIT, DELETE, INSERT, MESSAGE, TRUNCATE, UPDATE
from logicalrep_runtime.scalars import Lsn

_Result = TypeVar("_Result")

# The Commit of each transaction and the first bytes of each message outside of them, with the counts of messages,
# changes and bytes up to there. A Truncate counts once for each of its tables. Also the last message, whatever it is,
# which has the count of all messages.
_ENDS = sql.SQL("""
SELECT messages, changes, bytes, CASE WHEN is_end THEN substring(data FOR {size}) END FROM (
  SELECT data, get_byte(data, 0) = {commit} OR get_byte(data, 0) = {message} AND get_byte(data, 1) & 1 = 0 AS is_end,
    lead(true) OVER earlier IS NULL AS is_last,
    count(*) OVER earlier AS messages,
    sum(length(data)) OVER earlier AS bytes,
    sum(CASE WHEN get_byte(data, 0) IN ({insert}, {update}, {delete}, {message}) THEN 1
        WHEN get_byte(data, 0) = {truncate} THEN get_byte(data, 3) * 256 + get_byte(data, 4) ELSE 0 END) OVER earlier
      AS changes
  FROM {call} WINDOW earlier AS (ROWS UNBOUNDED PRECEDING)
) AS message
WHERE is_end OR is_last
""")
_TAGS = {
    "commit": COMMIT, "message": MESSAGE, "insert": INSERT, "update": UPDATE, "delete": DELETE, "truncate": TRUNCATE
}  # fmt: skip

_BEGIN = Struct(">xQ")
_COMMIT = Struct(">xBQQ")
_MESSAGE = Struct(">xBQ")

_MARGIN = 1.25
"""The ratio of a peek to the expected size of a batch: a second peek would decode everything again."""
_MOST_MESSAGES = (1 << 31) - 1
"""The largest number that the server accepts."""


@dataclass(slots=True)
class _BatchEnd:
    end: Lsn | None = None
    """The last end within the limits, or else the first end after the start."""
    is_last: bool = False
    """Whether the limits allow no later end."""
    counted: tuple[int, int, int] = 0, 0, 0
    """The messages, changes and bytes up to the last message of the peek."""
    is_at_end: bool = False


class Planner:
    """Plans batches' ends; with limits on changes or bytes a batch ends after a transaction or a message.

    With a limit on the WAL alone a batch may end anywhere: the next batch has the transactions that commit later.
    """

    def __init__(self, slot: str, options: PluginOptions) -> None:
        self._slot = slot
        self._options = options
        # Limits count changes or bytes, the server counts messages: small transactions have three for each change.
        self._messages_per_change, self._messages_per_byte = 2.0, 0.01

    def end(self, connection: Connection, start: Lsn, head: Lsn, limits: ReadLimits) -> Lsn | None:
        """Return the end of the batch from `start`, at most `head`; None if there are no changes."""
        bound = head
        if limits.wal is not None and head - start > limits.wal:
            bound = page_at(start + limits.wal)
        if limits.changes is None and limits.bytes is None:
            first = self._query_first(connection, head)
            # The first transaction may exceed the limit, and is then a batch of its own.
            return None if first is None else min(max(bound, page_after(first)), head)
        end = self._end(connection, start, bound, limits)
        if end is None and bound < head:
            end = self._end(connection, start, head, ReadLimits(changes=1))
        return end

    def _end(self, connection: Connection, start: Lsn, head: Lsn, limits: ReadLimits) -> Lsn | None:
        wanted = self._expected(limits)
        while True:
            batch_end = self._peek(connection, start, peek_call(self._slot, self._options, head, wanted), limits)
            self._learn(*batch_end.counted)
            is_all = not batch_end.is_last and batch_end.counted[0] < wanted
            if batch_end.is_last or is_all:
                return head if is_all and batch_end.is_at_end else batch_end.end
            wanted = min(max(2 * wanted, self._expected(limits)), _MOST_MESSAGES)

    def _expected(self, limits: ReadLimits) -> int:
        expected = [_MOST_MESSAGES / _MARGIN]
        if limits.changes is not None:
            expected.append(limits.changes * self._messages_per_change)
        if limits.bytes is not None:
            expected.append(limits.bytes * self._messages_per_byte)
        return min(int(min(expected) * _MARGIN) + 1, _MOST_MESSAGES)

    def _learn(self, messages: int, changes: int, size: int) -> None:
        if changes:
            self._messages_per_change = min(max(messages / changes, 1.0), 4.0)
        if size:
            self._messages_per_byte = messages / size

    def _query_first(self, connection: Connection, head: Lsn) -> Lsn | None:
        """Return the LSN of the first commit, or the end of the first message outside of transactions."""
        wanted = 1
        while True:
            call = peek_call(self._slot, self._options, head, wanted)
            query = sql.SQL("SELECT substring(data FOR {}) FROM {} LIMIT {}").format(_COMMIT.size, call, wanted)
            rows = self._retry_until_free(connection, partial(connection.execute, query)).fetchall()
            for (data,) in rows:
                if data[0] in (BEGIN, MESSAGE):
                    return Lsn((_BEGIN if data[0] == BEGIN else _MESSAGE).unpack_from(data)[-1])
            if len(rows) < wanted:
                return None
            wanted *= 2

    def _peek(self, connection: Connection, start: Lsn, call: sql.Composed, limits: ReadLimits) -> _BatchEnd:
        def action() -> _BatchEnd:
            with connection.cursor() as cursor:
                # The rows are streamed, as there may be millions.
                return _last_within(cursor.stream(_ENDS.format(size=_COMMIT.size, call=call, **_TAGS)), start, limits)

        return self._retry_until_free(connection, action)

    def _retry_until_free(self, connection: Connection, action: Callable[[], _Result]) -> _Result:
        with publication_errors(connection):
            return retry_until_free(action, connection, self._slot, patience=30)


def _last_within(rows: Iterable[tuple[int, int, int, bytes | None]], start: Lsn, limits: ReadLimits) -> _BatchEnd:
    batch_end = _BatchEnd()
    changes_before = bytes_before = 0
    for messages, changes, size, data in rows:
        batch_end.counted = messages, changes, int(size)
        if data is None:
            continue
        if _is_before(data, start):
            changes_before, bytes_before = changes, size
            continue
        over = [
            count - limit
            for count, limit in ((changes - changes_before, limits.changes), (size - bytes_before, limits.bytes))
            if limit is not None
        ]
        batch_end.is_last = max(over) >= 0
        batch_end.is_at_end = batch_end.end is None or max(over) <= 0
        if batch_end.is_at_end:
            batch_end.end = _end(data)
        if batch_end.is_last:
            break
    return batch_end


def _end(data: bytes) -> Lsn:
    return Lsn((_COMMIT if data[0] == COMMIT else _MESSAGE).unpack_from(data)[-1])


def _is_before(data: bytes, start: Lsn) -> bool:
    """Return whether an earlier batch has a commit that begins, or a message that ends, before `start`."""
    if data[0] == COMMIT:
        return bool(_COMMIT.unpack_from(data)[1] < start)
    return _end(data) <= start
