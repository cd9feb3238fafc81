"""What comes out: transactions with their changes, the decisions on prepared ones, and messages that belong to none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from logicalrep.transactions.changes import Change
from logicalrep.transactions.errors import TransactionError
from logicalrep.transactions.relations import SchemaChange
from logicalrep.transactions.spill import ChangeLog
from logicalrep_protocol.versions import Message
from logicalrep_runtime.scalars import Lsn, TimestampTz, TransactionId


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _WithChanges:
    """A transaction that holds its changes, maybe in a temporary file: close it, or use it as a context manager.

    The file is gone then, or once nothing refers to the transaction any more, and at the latest with the process.
    """

    xid: TransactionId
    """The id of the top-level transaction."""
    gid: str | None = None
    """The name that PREPARE TRANSACTION gave it; None where the server did not say that it was prepared."""
    origin: str | None = None
    """The replication origin that it was replayed from; None for one of the server's own."""
    origin_lsn: Lsn | None = None
    """Where it committed on the origin's server; 0 if that is not known, as for all that were streamed."""
    changes: ChangeLog
    """Its changes, numbered from 0: iterate as often as needed. Those of a large one are read from disk on the way."""
    schema_changes: tuple[SchemaChange, ...] = ()
    """The tables that are described anew in it, in the order of the changes that need it."""

    def events(self) -> Iterator[SchemaChange | Change]:
        """The changes, each preceded by the schema changes that it is the first to need."""
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transaction(_WithChanges):
    """A committed transaction. They come in the order in which they committed; some have no changes."""

    commit_lsn: Lsn
    """Where its commit record starts; of a prepared one, the record of COMMIT PREPARED."""
    end_lsn: Lsn
    """Where that record ends: the position to acknowledge once the transaction is safe."""
    commit_timestamp: TimestampTz
    """When it committed; at the origin, for one that was replayed from there."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedTransaction(_WithChanges):
    """A transaction that was prepared and is not decided yet; its Decision follows, maybe after a restart."""

    prepare_lsn: Lsn
    """Where its prepare record starts."""
    end_lsn: Lsn
    """Where that record ends: the position to acknowledge once the transaction is safe."""
    prepare_timestamp: TimestampTz
    """When it was prepared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """COMMIT PREPARED or ROLLBACK PREPARED of a transaction whose changes are not with it."""

    gid: str
    """The name that PREPARE TRANSACTION gave it."""
    xid: TransactionId
    """The id of the transaction."""
    committed: bool
    """Whether it was committed; else it was rolled back."""
    known: bool
    """Whether it was handed on as a PreparedTransaction, in this run or an earlier one.

    If not, its changes came before the reading began: acknowledged by another reader, or by a run whose Position was
    lost. A rollback of that kind changes nothing; a commit means that its changes are to be fetched in another way.
    """
    commit_lsn: Lsn | None
    """Where the record of COMMIT PREPARED starts; None for a rollback, of which the server tells the end only."""
    end_lsn: Lsn
    """Where the record of the decision ends: the position to acknowledge once it is safe."""
    timestamp: TimestampTz
    """When it was decided."""

    @property
    def error(self) -> TransactionError | None:
        """For who makes rows: rows are missing, as what was committed came before the reading began."""
        if not self.committed or self.known:
            return None
        reason = f"the changes of the prepared transaction {self.gid!r} came before the reading began"
        return TransactionError("Commit Prepared", self.end_lsn, self.xid, reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class NonTransactionalMessage:
    """A logical message that belongs to no transaction; it comes at once, ahead of transactions that began earlier."""

    lsn: Lsn
    """The position that came with it."""
    message: Message
    """The message as decoded."""


Event = Transaction | PreparedTransaction | Decision | NonTransactionalMessage
"""What an Assembler hands on."""
