"""Record batches of committed changes, each row with the position of its commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.message_batch import MessageBatch
from logicalrep.transactions.relations import TableDescription


class PositionedRows(NamedTuple):
    """Rows of one or many transactions."""

    batch: pa.RecordBatch
    positions: NDArray[np.int64]
    """Each row's position, its transaction's commit LSN with the same 64 bits.

    A non-transactional message's position is the last byte of its record: another commit record may begin at its
    end.
    """


class RowMaker(Protocol):
    """A maker of the rows of a session, or of transactions rewritten as a session."""

    @property
    def relations(self) -> Iterable[TableDescription]:
        """The last description of each table."""

    def rows(self, messages: MessageBatch, gids: Mapping[int, str] | None = None) -> Iterator[PositionedRows]:
        """Yield the rows of the next messages of version 1, which may end anywhere.

        `gids` has the names of prepared transactions by their commit LSN, as an int64 with the same bits. Raises
        UnsupportedError after the rows before the first message that no session with whole transactions has.
        """


def in_parts(rows: Iterable[PositionedRows], most: int) -> Iterator[PositionedRows]:
    for batch, positions in rows:
        for start in range(0, batch.num_rows, most):
            yield PositionedRows(batch.slice(start, most), positions[start : start + most])
