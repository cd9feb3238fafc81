"""Messages to committed transactions, sans-IO: streamed, rolled back by savepoint or prepared, in little memory.

`Assembler` makes transactions of messages; `change_rows` makes rows of the change feed of them.
"""

from __future__ import annotations

from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.change_feed import change_rows
from logicalrep.transactions.changes import Change
from logicalrep.transactions.errors import TransactionError
from logicalrep.transactions.resume_token import ResumeToken
from logicalrep.transactions.transaction import (
    Decision,
    NonTransactionalMessage,
    PreparedTransaction,
    Transaction,
)

__all__ = [
    "Assembler",
    "Change",
    "Decision",
    "NonTransactionalMessage",
    "PreparedTransaction",
    "ResumeToken",
    "Transaction",
    "TransactionError",
    "change_rows",
]
