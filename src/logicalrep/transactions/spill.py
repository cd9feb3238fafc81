"""The changes of an open transaction: in memory, and on disk once all open transactions exceed the memory limit.

A transaction may be larger than memory, and only its end decides whether it commits. So its changes go to a log,
which is appended to, cut back when a subtransaction is rolled back, and read after the commit. A change is stored as
an object, or many rows together as raw bytes.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from io import FileIO
from itertools import islice
from struct import Struct
from typing import Protocol, Self, cast

from logicalrep.transactions.changes import Change, ChangeMessage
from logicalrep.transactions.relations import TableDescription
from logicalrep_protocol import v1, v2
from logicalrep_protocol.v1 import TupleData
from logicalrep_protocol.versions import Delete, Insert, Message, Truncate, Update
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn, Oid

DEFAULT_MEMORY_LIMIT = 64 << 20
"""The default memory for the changes of all open transactions, in bytes."""

_RECORD = Struct(">IBQI")
"""The length of the message that follows, its form, its LSN, and the number of its Relation plus 1 (0 for none)."""

XID = slice(1, 5)
"""The bytes of the xid, after the tag; only messages of streamed transactions have one."""

BLOCK = 1 << 20
"""The size of a write or read, in bytes; a longer message makes a longer block."""

_VERSION_1, _NOT_STREAMED, _STREAMED = range(3)

_VERSION_1_MESSAGES = (v1.Insert, v1.Update, v1.Delete, v1.Truncate, v1.Message)


class ClosedError(LogicalRepError, ValueError):
    code = "TRANSACTION_CLOSED"


class RawRows(Protocol):
    """Consecutive row changes of a transaction, stored as raw bytes."""

    @property
    def relations(self) -> Mapping[Oid, TableDescription]:
        """The tables' descriptions when the rows arrived."""

    @property
    def memory(self) -> int:
        """The memory of the rows, in bytes."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[tuple[Lsn, bytes, TableDescription]]: ...

    def __getitem__(self, part: slice) -> Self: ...

    def tables(self) -> list[tuple[int, Oid]]:
        """Return the tables, each with the number of its first row, ordered by that number."""

    def chunks(self, size: int) -> Iterator[Self]:
        """Yield the rows in parts of about `size` bytes."""

    def dump(self) -> memoryview:
        """Return the rows without the Relations, as a buffer."""

    @classmethod
    def load(cls, data: bytes, relations: Mapping[Oid, TableDescription]) -> Self:
        """Return the rows of a dump, with their Relations."""


_Record = tuple[Lsn, int, bytes, TableDescription | None]
"""A change on disk: its LSN, the form of its message, the message, and its Relation."""


class ChangeLog:
    """The changes of one transaction in order, which may be iterated any number of times until it is closed.

    The file has no name if the system permits that, so it does not outlive the process. Reads take a block's memory.
    """

    def __init__(self) -> None:
        self.memory = 0
        """The estimated memory of its changes, in bytes."""
        self.closed = False
        self._length = 0
        self._tail: list[Change | RawRows] = []
        self._on_disk = 0
        self.file: FileIO | None = None
        self._end = 0
        self._block_firsts = array("Q")
        self._block_offsets = array("Q")
        # The function that reads packed rows from a dump; set with the first packed rows.
        self._load: Callable[[bytes, Mapping[Oid, TableDescription]], RawRows] | None = None
        # The Relations of each block of packed rows; None for a block of records.
        self._block_relations: list[Mapping[Oid, TableDescription] | None] = []
        self._relations: list[TableDescription] = []
        self._relation_numbers: dict[int, int] = {}
        self._close: weakref.finalize[[], ChangeLog] | None = None

    def __len__(self) -> int:
        return self._length

    @property
    def spilled(self) -> int:
        return self._end

    def append(self, part: Change | RawRows) -> int:
        """Add a change, whose ordinal is the log's length, or many; return the growth of `memory` in bytes."""
        if not isinstance(part, Change):
            self._load = type(part).load
        self._tail.append(part)
        self._length += _count(part)
        cost = _cost(part)
        self.memory += cost
        return cost

    def truncate(self, length: int) -> int:
        """Drop all changes but the first `length`; return the decrease of `memory` in bytes."""
        previous_memory = self.memory
        while self._tail and self._length > length:
            part = self._tail.pop()
            self.memory -= _cost(part)
            self._length -= _count(part)
            if self._length < length and not isinstance(part, Change):
                self.append(part[: length - self._length])
        if length < self._on_disk:
            self._truncate_file(length)
        return previous_memory - self.memory

    def spill(self, directory: str | os.PathLike[str] | None = None) -> None:
        """Write the changes in memory to disk; unwritten changes stay in memory if that raises OSError."""
        if self.file is None:
            self.file = tempfile.TemporaryFile(buffering=0, prefix="logicalrep-", dir=directory)  # noqa: SIM115
            self._close = weakref.finalize(self, self.file.close)
        self._tail = [chunk for part in self._tail for chunk in _chunks(part)]
        while self._tail:
            block, relations, count = self._next_block()
            _write(self.file, self._end, block)
            self._block_firsts.append(self._on_disk)
            self._block_offsets.append(self._end)
            self._block_relations.append(relations)
            self._end += len(block)
            self._on_disk += sum(map(_count, self._tail[:count]))
            self.memory -= sum(map(_cost, self._tail[:count]))
            del self._tail[:count]

    def close(self) -> None:
        self.closed = True
        self.memory = 0
        self._tail = []
        if self._close is not None:
            self._close()

    def __iter__(self) -> Iterator[Change]:
        ordinal = 0
        for part in self._parts():
            if isinstance(part, Change):
                yield part
            elif isinstance(part, tuple):
                lsn, form, data, relation = part
                message = v1.parse(data) if form == _VERSION_1 else v2.parse(data, streaming=form == _STREAMED)
                yield Change(ordinal, lsn, cast(ChangeMessage, message), relation)
            else:
                for number, (lsn, data, relation) in enumerate(part, ordinal):
                    yield Change(number, lsn, cast(ChangeMessage, v1.parse(data)), relation)
            ordinal += _count(part)

    def messages(self) -> Iterator[tuple[Lsn, bytes, TableDescription | None] | RawRows]:
        """Yield version 1 messages, each with its LSN and Relation, or packed rows. Raises ClosedError."""
        for part in self._parts():
            if isinstance(part, Change):
                yield part.lsn, _in_version_1(_form(part.message), part.message.build()), part.relation
            elif isinstance(part, tuple):
                lsn, form, data, relation = part
                yield lsn, _in_version_1(form, data), relation
            else:
                yield part

    def _parts(self) -> Iterator[Change | _Record | RawRows]:
        for index, relations in enumerate(self._block_relations):
            if relations is None:
                yield from self._records(index)
            else:
                yield self._read_rows(index, relations)
        if self.closed:
            raise ClosedError("the transaction was closed, which dropped its changes: read them before you close it")
        yield from self._tail

    def _next_block(self) -> tuple[bytearray | memoryview, Mapping[Oid, TableDescription] | None, int]:
        """Return the next block to write: its bytes, the Relations of packed rows, and its number of parts."""
        first = self._tail[0]
        if not isinstance(first, Change):
            return first.dump(), first.relations, 1
        block, count = bytearray(), 0
        for part in self._tail:
            if not isinstance(part, Change) or len(block) >= BLOCK:
                break
            data = part.message.build()
            block += _RECORD.pack(len(data), _form(part.message), part.lsn, self._add_relation(part.relation)) + data
            count += 1
        return block, None, count

    def _add_relation(self, relation: TableDescription | None) -> int:
        if relation is None:
            return 0
        number = self._relation_numbers.get(id(relation))
        if number is None:
            self._relations.append(relation)
            number = self._relation_numbers[id(relation)] = len(self._relations)
        return number

    def _read_rows(self, index: int, relations: Mapping[Oid, TableDescription]) -> RawRows:
        assert self._load is not None
        return self._load(self._bytes(index), relations)

    def _bytes(self, index: int) -> bytes:
        if self.closed or self.file is None:
            raise ClosedError("the transaction was closed, which dropped its changes: read them before you close it")
        start = self._block_offsets[index]
        end = self._block_offsets[index + 1] if index + 1 < len(self._block_offsets) else self._end
        return _read(self.file, start, end - start)

    def _records(self, index: int) -> Iterator[_Record]:
        block = self._bytes(index)
        offset = 0
        while offset < len(block):
            length, form, lsn, number = _RECORD.unpack_from(block, offset)
            offset += _RECORD.size
            relation = self._relations[number - 1] if number else None
            yield Lsn(lsn), form, block[offset : offset + length], relation
            offset += length

    def _truncate_file(self, length: int) -> None:
        index = bisect_right(self._block_firsts, length) - 1
        count, offset = length - self._block_firsts[index], self._block_offsets[index]
        relations = self._block_relations[index]
        assert self.file is not None
        if count and relations is not None:
            block = self._read_rows(index, relations)[:count].dump()
            _write(self.file, offset, block)
            offset += len(block)
        elif count:
            for _, _, data, _ in islice(self._records(index), count):
                offset += _RECORD.size + len(data)
        first_dropped = index + 1 if count else index
        del self._block_firsts[first_dropped:]
        del self._block_offsets[first_dropped:]
        del self._block_relations[first_dropped:]
        self._on_disk = self._length = length
        self._end = offset
        self.file.truncate(offset)


class SpillArea:
    """A memory limit for all open transactions' changes: beyond it, the largest transactions' changes go to disk."""

    def __init__(self, memory_limit: int, directory: str | os.PathLike[str] | None) -> None:
        self._limit = memory_limit
        self._directory = directory
        self._logs: set[ChangeLog] = set()
        self.memory = 0
        """The estimated memory of all changes, in bytes."""

    def open(self) -> ChangeLog:
        log = ChangeLog()
        self._logs.add(log)
        return log

    def append(self, log: ChangeLog, part: Change | RawRows) -> None:
        """Add a change, or many, to a log; raise OSError if writing to disk fails."""
        self.memory += log.append(part)
        while self.memory > self._limit:
            largest = max(self._logs, key=lambda candidate: candidate.memory)
            if not largest.memory:
                break
            previous_memory = largest.memory
            try:
                largest.spill(self._directory)
            finally:
                self.memory -= previous_memory - largest.memory

    def truncate(self, log: ChangeLog, length: int) -> None:
        self.memory -= log.truncate(length)

    def release(self, log: ChangeLog) -> ChangeLog:
        self._logs.remove(log)
        self.memory -= log.memory
        return log

    def discard(self, log: ChangeLog) -> None:
        self.release(log).close()

    def close(self) -> None:
        for log in list(self._logs):
            self.discard(log)


def _form(message: ChangeMessage) -> int:
    if isinstance(message, _VERSION_1_MESSAGES):
        return _VERSION_1
    return _NOT_STREAMED if message.xid is None else _STREAMED


def _in_version_1(form: int, data: bytes) -> bytes:
    return data[: XID.start] + data[XID.stop :] if form == _STREAMED else data


def _write(file: FileIO, offset: int, data: bytearray | memoryview) -> None:
    file.seek(offset)
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _read(file: FileIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    parts = []
    while size:
        part = file.read(size)
        if not part:
            raise OSError("a temporary file of a transaction is shorter than the data written to it")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _count(part: Change | _Record | RawRows) -> int:
    return 1 if isinstance(part, Change | tuple) else len(part)


def _chunks(part: Change | RawRows) -> Iterator[Change | RawRows]:
    if isinstance(part, Change):
        yield part
    else:
        yield from part.chunks(BLOCK)


def _cost(part: Change | RawRows) -> int:
    if not isinstance(part, Change):
        return part.memory
    message = part.message
    if isinstance(message, Insert):
        return 400 + _row_cost(message.new)
    if isinstance(message, Update):
        return 400 + _row_cost(message.new) + (_row_cost(message.old) if message.old is not None else 0)
    if isinstance(message, Delete):
        return 400 + _row_cost(message.old)
    if isinstance(message, Message):
        return 400 + len(message.content)
    assert isinstance(message, Truncate)
    return 400


def _row_cost(row: TupleData) -> int:
    return 50 * len(row.values) + sum(map(len, filter(None, row.values)))
