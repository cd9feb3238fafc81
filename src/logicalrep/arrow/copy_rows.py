"""Rows that a table has, by COPY, as the Inserts that pgoutput would have sent of them: they come like what follows."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from logicalrep import Lsn, v1
from logicalrep.columnar import default_backend
from logicalrep.v1 import NullValue, Text, TupleData
from logicalrep_pipeline.blocks import Block, block_of
from logicalrep_pipeline.copy_out import gathered
from logicalrep_pipeline.errors import TooLargeError
from logicalrep_pipeline.relations import Relation

_MEANINGS = {ord(letter): meaning for letter, meaning in zip("bfnrtv", b"\b\f\n\r\t\v", strict=True)}
"""What letters stand for behind a backslash; all else for itself."""
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_NULL = rb"\N"
_NEWLINE = ord("\n")
_INSERT = ord(v1.Insert.tag)


def inserts(copied: Iterator[memoryview | bytes], relation: Relation, lsn: Lsn) -> Iterator[Block]:
    """The Inserts of rows that the server copies in text format, with all columns of the relation in order."""
    make = _compiled if default_backend() == "numba" else _one_by_one
    for data in gathered(copied):
        yield make(data, relation, lsn)


def _compiled(data: bytearray, relation: Relation, lsn: Lsn) -> Block:
    from logicalrep_pipeline.copy_kernel import insert_messages

    columns = len(relation.columns)
    # A message of nothing but NULLs, each of which is one byte, without them.
    nulls = v1.Insert(relation_id=relation.relation_id, new=TupleData.of(*[NullValue()] * columns)).build()
    beginning = np.frombuffer(nulls[: len(nulls) - columns], np.uint8)
    meanings = np.arange(256, dtype=np.uint8)
    meanings[list(_MEANINGS)] = list(_MEANINGS.values())
    source = np.frombuffer(data, np.uint8)
    if data and data[-1] != _NEWLINE:
        raise _unexpected(relation)
    rows = int(np.count_nonzero(source == _NEWLINE))
    offsets = np.empty(rows + 1, np.int64)
    # A value has a kind and a length in place of the character behind it.
    target = pa.allocate_buffer(len(source) + rows * (len(beginning) + 4 * columns))
    count = insert_messages(source, beginning, columns, meanings, offsets, np.frombuffer(target, np.uint8))
    if count != rows:
        raise _unexpected(relation)
    if offsets[rows] >= 1 << 31:
        raise TooLargeError("rows of 2 GiB and more cannot be read in columns")
    messages = pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets.astype(np.int32)), target], 0)
    return Block(np.full(rows, lsn, np.uint64).view(np.int64), messages, np.full(rows, _INSERT, np.uint8))


def _one_by_one(data: bytearray, relation: Relation, lsn: Lsn) -> Block:
    messages = []
    *rows, end = bytes(data).split(b"\n")
    if end:
        raise _unexpected(relation)
    for row in rows:
        values = row.split(b"\t")
        if len(values) != len(relation.columns):
            raise _unexpected(relation)
        new = TupleData.of(*(NullValue() if value == _NULL else Text(_unescaped(value)) for value in values))
        messages.append((lsn, v1.Insert(relation_id=relation.relation_id, new=new).build()))
    return block_of(messages)


def _unescaped(value: bytes) -> bytes:
    return _ESCAPED.sub(lambda found: bytes([_MEANINGS.get(found[1][0], found[1][0])]), value)


def _unexpected(relation: Relation) -> ValueError:
    return ValueError(f"the server did not send rows of the columns of {relation}")
