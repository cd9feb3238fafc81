"""The errors of one table, which the other tables do not wait for."""

from __future__ import annotations

import psycopg

from logicalrep.arrow.feed.texts import TextError
from logicalrep.postgres.table_rows.reading import NotReadableError, UnsafeTableError
from logicalrep.tables.delta.forms import BesideDamagedError, ReservedColumnError
from logicalrep.tables.table_settings import KeyNotSentError, OwnKeyError, ProtectedColumnError
from logicalrep.transactions.errors import TooLargeError
from logicalrep.values import ColumnValueError

OF_ONE_TABLE = (
    ColumnValueError,
    TextError,
    TooLargeError,
    ReservedColumnError,
    ProtectedColumnError,
    OwnKeyError,
    KeyNotSentError,
    BesideDamagedError,
    NotReadableError,
    UnsafeTableError,
    psycopg.errors.InsufficientPrivilege,
)
"""A value that its column's type cannot hold, rows that are too large, a column's name that is taken, one that
cannot be masked or left out, a key that is none, or is not sent whole, a history that is damaged, rows that the role
may not read, or whose reading would run code of others."""
