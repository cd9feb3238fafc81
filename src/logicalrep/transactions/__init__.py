"""Committed transactions from a slot's messages, without a connection: whole, streamed in segments, or prepared.

`Assembler` turns messages into transactions, and stores large ones in temporary files. `change_rows` turns the changes
of a transaction into rows of the change feed. `named_rows` returns the rows of one change by column name.
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
