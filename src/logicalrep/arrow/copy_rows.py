"""A table's existing rows, read by COPY, as Inserts like pgoutput's, so that one reader reads changes and rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from logicalrep.arrow.loops.frames import insert_messages
from logicalrep.arrow.message_batch import MessageBatch
from logicalrep.transactions.errors import TooLargeError
from logicalrep.transactions.frames import gathered
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.tags import INSERT
from logicalrep_protocol import v1
from logicalrep_protocol.v1 import NullValue, TupleData
from logicalrep_runtime.scalars import Lsn

_MEANINGS = {ord(letter): meaning for letter, meaning in zip("bfnrtv", b"\b\f\n\r\t\v", strict=True)}
_NEWLINE = ord("\n")


def inserts(copied: Iterator[memoryview | bytes], relation: TableDescription, lsn: Lsn) -> Iterator[MessageBatch]:
    for data in gathered(copied):
        yield _inserts(data, relation, lsn)


def _inserts(data: bytearray, relation: TableDescription, lsn: Lsn) -> MessageBatch:
    columns = len(relation.columns)
    # A message of NULLs only, of one byte each, cut before the NULLs.
    nulls = v1.Insert(relation_id=relation.relation_id, new=TupleData.of(*[NullValue()] * columns)).build()
    beginning = np.frombuffer(nulls[: len(nulls) - columns], np.uint8)
    meanings = np.arange(256, dtype=np.uint8)
    meanings[list(_MEANINGS)] = list(_MEANINGS.values())
    source = np.frombuffer(data, np.uint8)
    if data and data[-1] != _NEWLINE:
        raise _unexpected(relation)
    rows = int(np.count_nonzero(source == _NEWLINE))
    offsets = np.empty(rows + 1, np.int64)
    # A value's kind and length take the place of the separator behind it.
    target = pa.allocate_buffer(len(source) + rows * (len(beginning) + 4 * columns))
    count = insert_messages(source, beginning, columns, meanings, offsets, np.frombuffer(target, np.uint8))
    if count != rows:
        raise _unexpected(relation)
    if offsets[rows] >= 1 << 31:
        raise TooLargeError("rows of 2 GiB and more cannot be read in columns")
    messages = pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets.astype(np.int32)), target], 0)
    return MessageBatch(np.full(rows, lsn, np.uint64).view(np.int64), messages, np.full(rows, INSERT, np.uint8))


def _unexpected(relation: TableDescription) -> ValueError:
    return ValueError(f"the server did not send rows of the columns of {relation}")
