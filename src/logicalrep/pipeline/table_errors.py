"""Distinguishes errors of one table, which stop it alone; an error is of one table unless known to concern all."""

from __future__ import annotations

import psycopg

from logicalrep.arrow.feed.texts import TextError
from logicalrep.pipeline.config.mask_key import MaskKeyError
from logicalrep.pipeline.engines.engine import EngineError
from logicalrep.pipeline.engines.outcomes import TableFailedError
from logicalrep.pipeline.errors import RefusedCommit
from logicalrep.pipeline.formats.stored_table import WriterError
from logicalrep.pipeline.schema.file_partitions import PartitionValueError
from logicalrep.pipeline.state.state import StateError
from logicalrep.pipeline.storage.storage import StorageError
from logicalrep.postgres.connection import ConnectError
from logicalrep.postgres.publications import is_of_dropped_table
from logicalrep.postgres.retries import Ended
from logicalrep.postgres.slots.errors import SlotError
from logicalrep.postgres.table_rows.conditions import ConditionError
from logicalrep.postgres.table_rows.reading import NotReadableError, UnsafeTableError
from logicalrep.transactions.logs import logger
from logicalrep.transactions.table_names import TableName
from logicalrep.values import ColumnValueError
from logicalrep_runtime.errors import LogicalRepError

_log = logger("logicalrep.replicate")

_TABLE_ERRORS = (ConditionError, NotReadableError, UnsafeTableError)
_SHARED_ERRORS = (
    ConnectError,
    Ended,
    MaskKeyError,
    StorageError,
    SlotError,
    StateError,
    EngineError,
    WriterError,
    OSError,
    MemoryError,
)
_SERVER_SQLSTATES = ("08", "28", "53", "57P")
"""The prefixes of SQLSTATEs of a server that is away, lacks resources, or rejects the role."""
_RETRIABLE_SQLSTATES = ("25P", "40", "42P01", "53400", "57014", "72")
"""The prefixes of SQLSTATEs of statements that may succeed later: a timeout, a conflict, a dropped table."""


CHANGE_ERRORS = (ColumnValueError, PartitionValueError, TextError)
"""The errors of values in a table's changes, which a retry does not fix: the commit can be skipped."""


def is_table_error(error: BaseException) -> bool:
    """Return whether an error of the work on a table concerns that table alone."""
    if isinstance(error, psycopg.Error) and not isinstance(error, ConnectError):
        if error.sqlstate is None:
            # A broken connection, or an error of libpq itself.
            return not isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
        return error.sqlstate == "53400" or not error.sqlstate.startswith(_SERVER_SQLSTATES)
    return isinstance(error, _TABLE_ERRORS) or (isinstance(error, Exception) and not isinstance(error, _SHARED_ERRORS))


def is_retriable(error: psycopg.Error) -> bool:
    return is_of_dropped_table(error) or (
        error.sqlstate is not None and error.sqlstate.startswith(_RETRIABLE_SQLSTATES)
    )


def reason_of(error: BaseException) -> str:
    if isinstance(error, (LogicalRepError, RefusedCommit)):
        return str(error)
    if isinstance(error, psycopg.Error):
        text = error.diag.message_primary or str(error).strip()
        return str(TableFailedError(f"the server cannot read it: {text} (SQLSTATE {error.sqlstate})"))
    return str(TableFailedError.of(error))


def log_unexpected(table: TableName, error: BaseException) -> None:
    if isinstance(error, TableFailedError) or not isinstance(error, (LogicalRepError, RefusedCommit, psycopg.Error)):
        _log.error("%s: the traceback of an unexpected error", table, exc_info=error)
