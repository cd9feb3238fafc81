"""Errors that several modules raise: messages out of order, and data that is too large."""

from __future__ import annotations

from logicalrep_protocol.layouts import LOGICALREP
from logicalrep_protocol.versions import AnyMessage
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn, TransactionId

_NAMES = {layout.tag: layout.name for layout in LOGICALREP.messages}


class TransactionError(LogicalRepError, ValueError):
    """A message is out of order; the text names the message, its LSN, the transaction and the reason."""

    code = "MESSAGE_OUT_OF_PLACE"

    def __init__(self, message: str, lsn: Lsn | None, xid: TransactionId | None, reason: str) -> None:
        super().__init__(message, lsn, xid, reason)
        self.message = message
        """The message's name in the documentation."""
        self.lsn = lsn
        """The message's LSN; None without one."""
        self.xid = xid
        """The top-level transaction; None outside of transactions."""
        self.reason = reason
        """The reason as text."""

    @property
    def description(self) -> str:
        where = "" if self.lsn is None else f" at {self.lsn}"
        transaction = "" if self.xid is None else f" in transaction {self.xid}"
        return f"{self.message}{where}{transaction}: {self.reason}"


class TooLargeError(LogicalRepError, ValueError):
    """Messages or values are too large to be read as columns."""

    code = "TOO_LARGE"


def refused(message: AnyMessage, lsn: Lsn | None, xid: TransactionId | None, reason: str) -> TransactionError:
    return TransactionError(_NAMES[message.tag], lsn, xid, reason)


def width_reason(values: int, table: str, columns: int) -> str:
    reason = f"has {values} values where the Relation of {table} has {columns} columns"
    if values > columns:
        reason += "; PostgreSQL 15.0 and 15.1 do that for a published column list, 15.2 does not"
    return reason
