"""A slot's committed changes as a loop: `logicalrep.stream`."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, Literal, Self, TypeVar, overload

from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.plugin_options import PluginOptions, most_streaming
from logicalrep.postgres.preflight.checks import check, ensure_slot
from logicalrep.postgres.preflight.findings import Needs
from logicalrep.postgres.publications import query_published_relation, query_type_catalog
from logicalrep.postgres.retries import retry
from logicalrep.postgres.server import Connection, newest_protocol, query_wal_head
from logicalrep.postgres.sessions.replication import Replication
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.intake import Intake
from logicalrep.transactions.logs import warn
from logicalrep.transactions.resume_token import ResumeToken
from logicalrep.transactions.spill import DEFAULT_MEMORY_LIMIT
from logicalrep.transactions.table_names import table_name
from logicalrep.transactions.transaction import (
    Decision,
    Event,
    NonTransactionalMessage,
    PreparedTransaction,
    Transaction,
)
from logicalrep_runtime.scalars import Lsn

if TYPE_CHECKING:
    import pyarrow as pa

    from logicalrep.arrow.batch_intake import WholeTransactions

_Item = TypeVar("_Item")
_Event = TypeVar("_Event")


class Stream(Generic[_Item]):
    """An iterable of a slot's committed changes, and a context manager; see `stream`.

    Example:
        >>> with logicalrep.stream("dbname=shop", slot="changes", publication="shop") as stream:
        ...     for transaction in stream:
        ...         store(transaction.changes, stream.position)
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        needs: Needs,
        *,
        after: ResumeToken | None,
        follow: bool,
        memory_limit: int,
        directory: str | os.PathLike[str] | None,
        retry_timeout: float,
    ) -> None:
        # Nothing connects before the loop begins.
        self._settings = settings
        self._needs = needs
        self._after = after
        self._follow = follow
        self._memory_limit = memory_limit
        self._directory = directory
        self._retry_timeout = retry_timeout
        self._replication: Replication | None = None
        # Held while a thread uses the replication's connection, so that no other thread closes it.
        self._turn = threading.Lock()
        self._finished = Lsn(0)
        self.position = after or ResumeToken()
        """The position after the last item. Store it with the changes, and pass it as `after` to resume the stream."""

    def __iter__(self) -> Iterator[_Item]:
        """Yield the transactions with changes in commit order; a transaction is closed when the loop continues."""
        with self._assembler() as assembler:
            intake: Intake[WholeTransactions] = Intake(assembler)
            with self._start(intake, self._needs) as events:
                for event in events:
                    self.position = intake.position
                    if isinstance(event, Transaction):
                        with event:
                            self._finished = event.end_lsn
                            if len(event.changes):
                                yield event  # type: ignore[misc]
                    elif isinstance(event, NonTransactionalMessage):
                        yield event  # type: ignore[misc]

    def batches(self, table: str | None = None, *, rows: int = 10_000) -> Iterator[pa.RecordBatch]:
        """Yield the changes as Arrow record batches: the change feed, or one table with its columns and types.

        A batch may contain many transactions, and a large transaction may span many batches. Rows are ordered by
        `(commit_lsn, ordinal)`, or for one table by `(_commit_version, _ordinal)`. Needs `logicalrep[arrow]`.

        Args:
            table: the table's name as in SQL; None for the change feed of all published tables.
            rows: the largest number of rows in a batch.

        Raises:
            SchemaMismatchError: the table's columns have changed since the start of the stream.

        Example:
            >>> for batch in logicalrep.stream("dbname=shop", slot="lake", publication="shop").batches("public.orders"):
            ...     append(polars.from_arrow(batch))
        """
        from logicalrep.arrow.committing import Committing
        from logicalrep.arrow.row_form import feed_form
        from logicalrep.arrow.table.rows import table_form

        needs, form = self._needs, feed_form(rows_per_record_batch=rows, memory_limit=self._memory_limit)
        if table is not None:
            name = table_name(table)
            needs = replace(needs, tables=(name,))
            with self._connect(needs) as connection:
                relation = query_published_relation(connection, name, needs.publications)
                assert relation is not None
                form = table_form(relation, query_type_catalog(connection, name), form)
        with self._assembler() as assembler:
            committing = Committing(form, assembler)
            with self._start(committing.intake, needs) as events:
                for event in events:
                    committed = committing.committed(event)
                    yield from committed.batches
                    self.position = committing.intake.position
                    self._finished = max(self._finished, Lsn(int(committed.ends[-1]) % (1 << 64)))

    def acknowledge(self) -> None:
        """Acknowledge the current item; call it after storing the item if you then leave the loop."""
        if self._replication is not None:
            self._replication.acknowledge(self._finished)

    def close(self) -> None:
        """Close the connection. The server sends the unacknowledged item again to the next reader.

        Another thread or a signal handler may call it: a loop that waits for changes then ends.
        """
        replication, self._replication = self._replication, None
        if replication is not None and self._turn.acquire(blocking=False):
            try:
                replication.close()
            finally:
                self._turn.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _assembler(self) -> Assembler:
        return Assembler(after=self._after, memory_limit=self._memory_limit, directory=self._directory)

    def _connect(self, needs: Needs) -> Connection:
        warn(self._settings.warnings)

        def connect() -> Connection:
            connection = self._settings.connect()
            try:
                warn(check(connection, needs))
                return connection
            except BaseException:
                connection.close()
                raise

        return retry(connect, self._retry_timeout)

    @contextmanager
    def _start(self, intake: Intake[WholeTransactions], needs: Needs) -> Iterator[Iterator[Event | WholeTransactions]]:
        with self._connect(needs) as connection:
            ensure_slot(connection, needs)
            version = newest_protocol(connection)
            self._end = None if self._follow else query_wal_head(connection)
        options = PluginOptions(
            publication_names=needs.publications,
            proto_version=version,
            messages=needs.messages,
            origin=needs.origin,  # type: ignore[arg-type]
            streaming=most_streaming(version),
        )
        replication = Replication(self._settings, needs.slot, options, intake, waiting=self._retry_timeout)
        self._replication = replication
        events = self._receive_events(replication)
        try:
            yield self._take_turns(events)
        finally:
            self._replication = None
            with self._turn:
                events.close()
                replication.close()

    def _take_turns(self, events: Iterator[_Event]) -> Iterator[_Event]:
        while True:
            with self._turn:
                event = next(events, None)
            if event is None:
                return
            yield event

    def _receive_events(self, replication: Replication) -> Generator[Event | WholeTransactions, None, None]:
        # An event is safe, and acknowledged, when the loop continues.
        finished = Lsn(0)
        try:
            for events in replication.rounds(lambda: self._is_over(replication)):
                for event in events:
                    if isinstance(event, Decision) and event.error is not None:
                        raise event.error
                    if not isinstance(event, Decision | PreparedTransaction):
                        yield event
                        finished = self._finished
                replication.acknowledge(replication.position)
        finally:
            replication.acknowledge(finished)

    def _is_over(self, replication: Replication) -> bool:
        is_closed = self._replication is not replication
        return is_closed or (self._end is not None and replication.position >= self._end)


@overload
def stream(
    dsn: str = ...,
    *,
    slot: str,
    publication: str | Iterable[str],
    create_slot: bool = ...,
    follow: bool = ...,
    after: ResumeToken | None = ...,
    messages: Literal[False] = ...,
    origin: Literal["any", "none"] | None = ...,
    memory_limit: int = ...,
    directory: str | os.PathLike[str] | None = ...,
    retry_timeout: float = ...,
) -> Stream[Transaction]: ...


@overload
def stream(
    dsn: str = ...,
    *,
    slot: str,
    publication: str | Iterable[str],
    create_slot: bool = ...,
    follow: bool = ...,
    after: ResumeToken | None = ...,
    messages: bool,
    origin: Literal["any", "none"] | None = ...,
    memory_limit: int = ...,
    directory: str | os.PathLike[str] | None = ...,
    retry_timeout: float = ...,
) -> Stream[Transaction | NonTransactionalMessage]: ...


def stream(
    dsn: str = "",
    *,
    slot: str,
    publication: str | Iterable[str],
    create_slot: bool = False,
    follow: bool = True,
    after: ResumeToken | None = None,
    messages: bool = False,
    origin: Literal["any", "none"] | None = None,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    directory: str | os.PathLike[str] | None = None,
    retry_timeout: float = 60,
) -> Stream[Transaction] | Stream[Transaction | NonTransactionalMessage]:
    """Read the committed transactions of a replication slot, as they commit. Needs `logicalrep[postgres]`.

    The stream acknowledges a transaction to the server when the loop continues with the next transaction. If your
    program crashes or leaves the loop before that, the server sends the transaction again, unless you called
    `acknowledge()`. For exactly-once delivery, store the stream's `position` with the changes in one step, and pass it
    as `after` on a restart. After a broken connection the stream reconnects and repeats nothing.

    Args:
        dsn: libpq's connection string or URI; environment variables such as PGHOST and PGPASSWORD apply.
        slot: the replication slot's name; a slot has one reader at a time.
        publication: the name of a publication, or several names.
        create_slot: create the slot if it does not exist; the stream has every later commit.
        follow: wait for new changes; if false, the loop ends after the commits that existed when it began.
        after: the `position` of an earlier stream, to resume there.
        messages: also read logical messages (`pg_logical_emit_message`): a transactional message is among the changes
            of its transaction; between transactions, the stream yields a NonTransactionalMessage.
        origin: `none` omits changes that were replicated from another server; needs PostgreSQL 16.
        memory_limit: the bytes of memory for changes of open transactions; further changes are written to disk.
        directory: the folder for changes on disk; by default the system's temporary folder.
        retry_timeout: the longest wait for an unavailable server, in seconds.

    Raises:
        PreflightError: the server, the slot or the publication does not meet a requirement; the text has the remedy.
        LostPositionError: the server's WAL does not contain `after`, for example because it is another server.
        ConnectError: the server was unavailable for longer than `retry_timeout`.

    Example:
        >>> import logicalrep
        >>> for transaction in logicalrep.stream("dbname=shop", slot="changes", publication="shop"):
        ...     for change in transaction.changes:
        ...         print(change.op, change.relation, change.before, change.after)
    """
    needs = Needs(
        slot=slot,
        publications=(publication,) if isinstance(publication, str) else tuple(publication),
        mode="walsender",
        create_slot=create_slot,
        messages=messages,
        origin=origin,
    )
    return Stream(
        ConnectionSettings(dsn),
        needs,
        after=after,
        follow=follow,
        memory_limit=memory_limit,
        directory=directory,
        retry_timeout=retry_timeout,
    )
