"""PostgreSQL's logical replication protocol and its uses: committed changes, Arrow, Spark, tables.

`v1` to `v4` have the messages of each protocol version and `parse`; `Decoder` holds the state of a session. They are
generated, in the package `logicalrep_protocol`. This package is written by hand; its README.md is the guide to its
modules. Most names need only `construct`:

- `stream` needs `logicalrep[postgres]`;
- `replicate` needs `logicalrep[replicate]`;
- `read` and `at` need `logicalrep[local]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logicalrep_protocol import Decoder, v1, v2, v3, v4, walsender
from logicalrep_runtime.errors import DecodeError, EncodeError, LogicalRepError
from logicalrep_runtime.scalars import Lsn, Oid, TimestampTz, TransactionId

if TYPE_CHECKING:
    from logicalrep.pipeline.run.run import replicate
    from logicalrep.postgres import stream
    from logicalrep.reader import at, read

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
    "at",
    "read",
    "replicate",
    "stream",
    "v1",
    "v2",
    "v3",
    "v4",
    "walsender",
]


# The modules of names that need more than construct, the extras that install it, and some of its libraries.
_LATE = {
    "stream": ("logicalrep.postgres", "postgres", ["psycopg"]),
    "replicate": ("logicalrep.pipeline.run.run", "local", ["psycopg", "pyarrow"]),
    "at": ("logicalrep.reader", "local", ["pyarrow"]),
    "read": ("logicalrep.reader", "local", ["pyarrow"]),
}


def __dir__() -> list[str]:
    from logicalrep.options.extras import find_missing

    # Completion lists these names, and `help` reads each of them.
    missing = {name for name, (_, _, libraries) in _LATE.items() if find_missing(libraries) is not None}
    return sorted({*__all__} - missing)


def __getattr__(name: str) -> object:
    if name in _LATE:
        from importlib import import_module

        from logicalrep.options.extras import installing

        module, extra, _ = _LATE[name]
        try:
            return getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("logicalrep"):
                raise
            raise ModuleNotFoundError(f"{error.name} is not installed: {installing(extra)}", name=error.name) from None
    if name == "__version__":
        # Reading the version takes longer than all other imports together.
        from importlib.metadata import version

        return version("logicalrep")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
