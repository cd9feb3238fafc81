"""A table's existing rows, read by COPY, as Inserts like pgoutput's, so that changes and rows are read alike."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from logicalrep.arrow.loops.frames import insert_messages
from logicalrep.arrow.message_batch import MessageBatch
from logicalrep.arrow.table.columns import LoadedColumns, LocatedValues, PresentRows, RowReader, Rows
from logicalrep.transactions.errors import TooLargeError
from logicalrep.transactions.frames import gathered
from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.tags import INSERT
from logicalrep_protocol import v1
from logicalrep_protocol.v1 import NullValue, TupleData
from logicalrep_runtime.scalars import Lsn

_MEANINGS = {ord(letter): meaning for letter, meaning in zip("bfnrtv", b"\b\f\n\r\t\v", strict=True)}
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_NULL = rb"\N"
_NULL_KIND, _TEXT_KIND = ord("n"), ord("t")
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


def rows_without_loops(data: bytes, relation: TableDescription, reader: RowReader) -> Rows:
    """Read rows in COPY's text format value by value. Raises ValueError if they do not fit the relation."""
    width = len(relation.columns)
    if data and data[-1] != _NEWLINE:
        raise _unexpected(relation)
    lines = data.split(b"\n")[:-1]
    fields = [line.split(b"\t") if width else [] for line in lines]
    if any(len(values) != width for values in fields) or (not width and any(lines)):
        raise _unexpected(relation)
    sent = [value for values in fields for value in values]
    kinds = np.fromiter((_NULL_KIND if value == _NULL else _TEXT_KIND for value in sent), np.uint8, len(sent))
    texts = [_ESCAPED.sub(_meaning, value) if b"\\" in value else value for value in sent]
    lengths = np.fromiter(map(len, texts), np.uint32, len(texts))
    cells = LocatedValues(
        np.frombuffer(b"".join(texts), np.uint8), kinds, np.cumsum(lengths, dtype=np.int64) - lengths, lengths
    )
    count = len(lines)
    rows, first = np.arange(count), np.arange(count) * width
    leftover = {index: rows[kinds[index::width] == _TEXT_KIND] for index in range(width)}
    loaded = LoadedColumns(
        [pa.nulls(count, type_) for type_ in reader.types],
        lambda index: pa.py_buffer(kinds[index::width].tobytes()),
        {index: indices for index, indices in leftover.items() if len(indices)},
    )
    return reader.rows(PresentRows(cells, count, rows, first, rows, first), loaded)


def _meaning(escaped: re.Match[bytes]) -> bytes:
    (letter,) = escaped[1]
    return bytes([_MEANINGS.get(letter, letter)])


def _unexpected(relation: TableDescription) -> ValueError:
    return ValueError(f"the server did not send rows of the columns of {relation}")
