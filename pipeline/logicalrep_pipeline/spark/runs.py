"""Which transaction each message of a chunk belongs to, in columns, where transactions come whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from logicalrep import Lsn, TimestampTz, TransactionId, v1
from logicalrep.columnar import Session, decode_batch
from logicalrep_pipeline.blocks import Block
from logicalrep_pipeline.errors import TransactionError
from logicalrep_pipeline.relations import Relation

B, C, I, U, D, T, M, R, Y, O = b"BCIUDTMRYO"  # noqa: E741


def of_tags(tags: bytes) -> Any:
    """A table by tag of whether it is one of these: to look up is faster than np.isin."""
    table = np.zeros(256, dtype=bool)
    table[list(tags)] = True
    return table


KNOWN = of_tags(b"BCIUDTMRYO")
"""By its tag, whether a message can be read in columns; those of streamed and prepared transactions cannot."""
ROW_CHANGE = of_tags(b"IUD")
_COUNTED = of_tags(b"IUDM")
_WITHIN = of_tags(b"BIUDTRYO")
_EVERYTHING = (1 << 64) - 1


class UnsupportedError(Exception):
    """From this message of a chunk on, which is outside of transactions, the session has to be read row by row."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.index = index


@dataclass(frozen=True, slots=True)
class Run:
    """The transactions of a chunk: number 0 is the one it begins in, the others are counted by their Begin."""

    transaction_of: Any
    """For each message its transaction's number."""
    ordinals: Any
    """For each message the number of changes that its transaction had before."""
    in_range: Any
    """For each message whether its transaction is wanted."""
    final_lsn: Any
    """For each transaction its 64 bits, signed."""
    commit_timestamp: Any
    """For each transaction, in microseconds since 1970."""
    xid: Any
    origins: dict[int, str]
    """By the number of the transaction, where there is one."""


class Runs:
    """Follows the transactions of a session from chunk to chunk."""

    def __init__(self, start: int | None, end: int | None) -> None:
        """What commits at or after `start` and before `end` is wanted."""
        self.start = 0 if start is None else int(start)
        self.end = _EVERYTHING if end is None else int(end)
        self._session = Session(version=1)
        # The transaction that the next chunk begins in: its columns, its origin, its changes so far.
        self._open: tuple[tuple[int, int, int], str | None, int] | None = None

    def supported(self, tags: Any) -> int:
        """How many messages can be read in columns, up to one that cannot; that one must be outside."""
        unknown = np.flatnonzero(~KNOWN[tags])
        return int(unknown[0]) if len(unknown) else len(tags)

    def refuse(self, index: int, tag: int) -> None:
        """Raise UnsupportedError for a message of the chunk; TransactionError within a transaction."""
        if self._open is not None:
            raise TransactionError(chr(tag), None, TransactionId(self._open[0][2]), "comes within a transaction")
        raise UnsupportedError(index)

    def next(self, block: Block) -> Run:
        """The transactions of the next chunk."""
        tags = block.tags
        begins, commits = np.flatnonzero(tags == B), np.flatnonzero(tags == C)
        self._check(tags)
        opened, opened_origin, carried = self._open or ((-1, 0, 0), None, 0)
        transaction_of = np.cumsum(tags == B)
        origins = {} if opened_origin is None else {0: opened_origin}
        for at in np.flatnonzero(tags == O).tolist():
            origin = v1.parse(block.data(at))
            assert isinstance(origin, v1.Origin)
            origins[int(transaction_of[at])] = origin.name
        counts = _COUNTED[tags].astype(np.int64)
        for at in np.flatnonzero(tags == T).tolist():
            truncate = v1.parse(block.data(at))
            assert isinstance(truncate, v1.Truncate)
            counts[at] = len(truncate.relation_ids)
        before = np.cumsum(counts) - counts
        columns = self._columns(block.messages.take(pa.array(begins)), opened)
        final = columns[0][transaction_of].view(np.uint64)
        run = Run(
            transaction_of,
            before - np.concatenate(([-carried], before[begins]))[transaction_of],
            (final >= np.uint64(self.start)) & (final < np.uint64(self.end)),
            columns[0],
            columns[1],
            columns[2],
            origins,
        )
        last_begin = int(begins[-1]) if len(begins) else -1
        if (commits[-1] if len(commits) else -1) > last_begin or (last_begin < 0 and self._open is None):
            self._open = None
        else:
            number = int(transaction_of[-1])
            total = int(before[-1] + counts[-1])
            changes = total - int(before[last_begin]) if last_begin >= 0 else carried + total
            first, second, third = (int(column[number]) for column in columns)
            self._open = (first, second, third), origins.get(number), changes
        return run

    def _columns(self, begins: Any, opened: tuple[int, int, int]) -> list[Any]:
        decoded, _ = decode_batch(begins, self._session, for_spark=True)
        columns = []
        for name, first in zip(("final_lsn", "commit_timestamp", "xid"), opened, strict=True):
            array = decoded.column(decoded.schema.get_field_index(name)).cast(pa.int64())
            values = array.to_numpy(zero_copy_only=False).astype(np.int64)
            columns.append(np.concatenate((np.asarray([first], dtype=np.int64), values)))
        return columns

    def _check(self, tags: Any) -> None:
        """Begins and Commits must take turns, and all but messages must lie between."""
        depth = np.cumsum((tags == B).astype(np.int8), dtype=np.int64) - np.cumsum(tags == C)
        depth += self._open is not None
        inside = _WITHIN[tags]
        if (depth[inside] != 1).any() or (depth[tags == C] != 0).any():
            raise TransactionError("message", None, None, "transactions do not begin and end in turn")


def preamble(relations: Iterable[Relation]) -> Iterator[tuple[Lsn, bytes]]:
    """An empty transaction that describes tables, for who reads a session on from its middle."""
    yield Lsn(1), v1.Begin(final_lsn=Lsn(1), commit_timestamp=TimestampTz(0), xid=TransactionId(0)).build()
    for relation in relations:
        for type_ in relation.types:
            if type_ is not None:
                named = v1.Type(type_id=type_.type_id, namespace=type_.namespace, name=type_.name)
                yield Lsn(1), named.build()
        described = v1.Relation(
            relation_id=relation.relation_id,
            namespace=relation.schema,
            name=relation.name,
            replica_identity=relation.replica_identity,
            columns=relation.columns,
        )
        yield Lsn(1), described.build()
    yield Lsn(1), v1.Commit(commit_lsn=Lsn(1), end_lsn=Lsn(1), commit_timestamp=TimestampTz(0)).build()
