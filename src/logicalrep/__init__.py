"""PostgreSQL's logical replication protocol, and what follows from it: committed changes, Arrow, Spark, tables.

`v1` to `v4` have the messages of each protocol version and `parse`; `Decoder` keeps the state of a session. They are
generated, in the package `logicalrep_protocol`. This package is written by hand: README.md beside this file says where
what is. Everything here needs `construct` alone, but for `stream`, which needs
`logicalrep[postgres]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logicalrep_protocol import Decoder, v1, v2, v3, v4, walsender
from logicalrep_runtime.errors import DecodeError, EncodeError, LogicalRepError
from logicalrep_runtime.scalars import Lsn, Oid, TimestampTz, TransactionId

if TYPE_CHECKING:
    from logicalrep.postgres import stream

__all__ = [
    "DecodeError",
    "Decoder",
    "EncodeError",
    "LogicalRepError",
    "Lsn",
    "Oid",
    "TimestampTz",
    "TransactionId",
    "__version__",
    "stream",
    "v1",
    "v2",
    "v3",
    "v4",
    "walsender",
]


def __getattr__(name: str) -> Any:
    if name == "stream":
        # It needs psycopg, which the rest does not.
        from logicalrep.postgres import stream

        return stream
    if name == "__version__":
        # Reading it takes longer than importing all the rest.
        from importlib.metadata import version

        return version("logicalrep")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
