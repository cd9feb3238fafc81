"""Committed transactions from messages, without I/O and in little memory: streamed, partly rolled back or prepared.

`Assembler` turns messages into transactions; `change_rows` turns messages into rows of the change feed. `named_rows`
returns the rows of one message by column name.
"""

from __future__ import annotations

from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.change_feed import change_rows
from logicalrep.transactions.changes import Change, NamedRows, named_rows
from logicalrep.transactions.errors import TransactionError
from logicalrep.transactions.resume_token import ResumeToken
from logicalrep.transactions.transaction import Decision, NonTransactionalMessage, PreparedTransaction, Transaction

__all__ = [
    "Assembler",
    "Change",
    "Decision",
    "NamedRows",
    "NonTransactionalMessage",
    "PreparedTransaction",
    "ResumeToken",
    "Transaction",
    "TransactionError",
    "change_rows",
    "named_rows",
]
