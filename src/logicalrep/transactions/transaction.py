"""The assembler's events: transactions with their changes, decisions on prepared ones, and separate messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from logicalrep.transactions.changes import Change
from logicalrep.transactions.errors import TransactionError
from logicalrep.transactions.relations import SchemaChange, TableDescription
from logicalrep.transactions.spill import ChangeLog
from logicalrep_protocol.versions import Message
from logicalrep_runtime.scalars import UNIX_EPOCH, Lsn, Oid, TimestampTz, TransactionId


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _WithChanges:
    """A transaction and its changes, perhaps in a temporary file: close it, or use it as a context manager.

    Closing it removes the file, as does the garbage collector, or at the latest the end of the process.
    """

    xid: TransactionId
    """The id of the top-level transaction."""
    gid: str | None = None
    """The name from PREPARE TRANSACTION; None if the server did not report a prepared transaction."""
    origin: str | None = None
    """The replication origin of a replayed transaction; None for a transaction of the server itself."""
    origin_lsn: Lsn | None = None
    """The LSN of its commit on the origin's server; 0 if unknown, as for all streamed transactions."""
    changes: ChangeLog
    """Its changes, numbered from 0: iterate as often as needed. A large transaction's changes are read from disk."""
    schema_changes: tuple[SchemaChange, ...] = ()
    """The new table descriptions in it, in the order of the first changes that use them."""

    def events(self) -> Iterator[SchemaChange | Change]:
        """Yield the changes, each preceded by the schema changes that it is the first to use."""
        pending = iter(self.schema_changes)
        schema_change = next(pending, None)
        for change in self.changes:
            while schema_change is not None and schema_change.ordinal == change.ordinal:
                yield schema_change
                schema_change = next(pending, None)
            yield change

    def close(self) -> None:
        """Drop the changes and their temporary file."""
        self.changes.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transaction(_WithChanges):
    """A committed transaction, which may have no changes. Transactions come in commit order.

    Example:
        >>> with transaction:
        ...     for change in transaction.changes:
        ...         print(transaction.commit_lsn, change.op)
    """

    commit_lsn: Lsn
    """The start of its commit record, or of the record of COMMIT PREPARED."""
    end_lsn: Lsn
    """The end of the commit record: the position to acknowledge once the transaction is safe."""
    commit_timestamp: TimestampTz
    """The time of its commit; for a replayed transaction, of the commit at its origin."""
    partitions: Mapping[Oid, Sequence[TableDescription]] = field(default_factory=dict)
    """The partitions that were described for rows of their tables, by the tables' OIDs.

    The server describes the table and then the partition, before the partition's first row of a session, if rows are
    sent as a partitioned table's.
    """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedTransaction(_WithChanges):
    """A prepared transaction that is undecided; its Decision follows, perhaps after a restart.

    Example:
        >>> with prepared:
        ...     for change in prepared.changes:
        ...         print(prepared.gid, change.op)
    """

    prepare_lsn: Lsn
    """The start of its prepare record."""
    end_lsn: Lsn
    """The end of the prepare record: the position to acknowledge once the transaction is safe."""
    prepare_timestamp: TimestampTz
    """The time of its PREPARE TRANSACTION."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """COMMIT PREPARED or ROLLBACK PREPARED, without the transaction's changes."""

    gid: str
    """The name from PREPARE TRANSACTION."""
    xid: TransactionId
    """The id of the transaction."""
    committed: bool
    """Whether it was committed; else it was rolled back."""
    known: bool
    """Whether it was delivered as a PreparedTransaction, in this run or an earlier one.

    If not, its changes were sent before the reader started: to another reader, or to a run whose resume token was
    lost. Such a rollback changes nothing; after such a commit the changes must be fetched in another way.
    """
    commit_lsn: Lsn | None
    """The start of the record of COMMIT PREPARED; None for a rollback, for which the server sends only the end."""
    end_lsn: Lsn
    """The end of the decision's record: the position to acknowledge once the decision is safe."""
    timestamp: TimestampTz
    """The time of the decision."""

    @property
    def error(self) -> TransactionError | None:
        """The error for missing rows, if the committed changes were sent before the reader started; else None."""
        if not self.committed or self.known:
            return None
        reason = f"the changes of the prepared transaction {self.gid!r} were sent before the reader started"
        return TransactionError("Commit Prepared", self.end_lsn, self.xid, reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class NonTransactionalMessage:
    """A logical message outside of transactions, which the server sends at once, before open transactions."""

    lsn: Lsn
    """The LSN that was sent with it."""
    message: Message
    """The decoded message."""


Event = Transaction | PreparedTransaction | Decision | NonTransactionalMessage
"""The output of an Assembler."""


class CommitColumns(NamedTuple):
    """Committed transactions with changes, in commit order."""

    lsns: Sequence[int] = ()
    xids: Sequence[int] = ()
    timestamps: Sequence[int] = ()
    """Microseconds since 1970."""


def columns_of(events: Iterable[object]) -> CommitColumns:
    commits = [event for event in events if isinstance(event, Transaction) and len(event.changes)]
    return CommitColumns(
        [commit.commit_lsn for commit in commits],
        [commit.xid for commit in commits],
        [commit.commit_timestamp + UNIX_EPOCH for commit in commits],
    )
