"""One error of every class of ours."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import logicalrep
import logicalrep_protocol
import logicalrep_runtime
from logicalrep import DecodeError, EncodeError, LogicalRepError, Lsn, TransactionId
from logicalrep.pipeline.requirements.requirements import UnmetError
from logicalrep.postgres.preflight.findings import Finding, PreflightError
from logicalrep.transactions.errors import TransactionError
from logicalrep.values import ColumnValueError
from logicalrep_runtime.columnar.batches import RowDecodeError

_OF_PARTS = {
    DecodeError: lambda: DecodeError("Insert", "new.cells[0]", 9, "2 bytes", "1 byte"),
    RowDecodeError: lambda: RowDecodeError("Insert", "new.cells[0]", 9, "2 bytes", "1 byte", 7),
    EncodeError: lambda: EncodeError("Insert", "relation_id", "a number", "'x'"),
    TransactionError: lambda: TransactionError("Commit", Lsn(7), TransactionId(8), "comes too early"),
    ColumnValueError: lambda: ColumnValueError("not a number", type_name="numeric", text="x", table="t", column="c"),
    PreflightError: lambda: PreflightError([Finding("WAL_LEVEL", "wal_level is low."), Finding("SLOT_LOST", "Lost.")]),
    UnmetError: lambda: UnmetError((Finding("WAL_LEVEL", "wal_level is low."),), "ALTER SYSTEM …;"),
}


def every_error() -> Iterator[LogicalRepError]:
    """One of each class, with its own code; and one of a code of its own."""
    for package in (logicalrep, logicalrep_runtime, logicalrep_protocol):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    for cls in _subclasses(LogicalRepError):
        yield _OF_PARTS[cls]() if cls in _OF_PARTS else cls(f"a {cls.__name__}")  # type: ignore[no-untyped-call]
    yield LogicalRepError("lost", code="SLOT_LOST")


def _subclasses(cls: type[LogicalRepError]) -> Iterator[type[LogicalRepError]]:
    for subclass in cls.__subclasses__():
        if not subclass.__module__.startswith("tests."):
            yield subclass
        yield from _subclasses(subclass)
