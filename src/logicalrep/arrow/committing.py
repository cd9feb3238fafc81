"""The record batches of committed transactions, with each transaction's facts for admission control."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.batch_intake import BatchIntake, WholeTransactions
from logicalrep.arrow.batching import Batching
from logicalrep.arrow.positioned_rows import PositionedRows, RowMaker, in_parts
from logicalrep.arrow.row_form import RowForm
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.transaction import Event
from logicalrep_protocol.columnar import Session
from logicalrep_protocol.decoder import Decoder
from logicalrep_runtime.scalars import Lsn


@dataclass(frozen=True, slots=True)
class Committed:
    """Consecutive transactions, and logical messages outside of them; arrays have an item for each."""

    positions: NDArray[np.int64]
    """The position of each item's rows, its commit, in ascending order."""
    ends: NDArray[np.int64]
    """The end of a batch that ends with this item."""
    sizes: NDArray[np.int64]
    """The bytes of each item's messages. Valid once all rows are taken."""
    rows: Iterator[PositionedRows]

    @property
    def batches(self) -> Iterator[pa.RecordBatch]:
        return (rows.batch for rows in self.rows)

    def numbers(self, rows: PositionedRows) -> NDArray[np.intp]:
        numbers: NDArray[np.intp] = np.searchsorted(self.positions, rows.positions)
        return numbers


class Committing:
    def __init__(self, form: RowForm, assembler: Assembler, maker: RowMaker | None = None) -> None:
        self._form = form
        self._maker = maker
        self.intake = BatchIntake(assembler, form.memory_limit)

    def committed(self, event: Event | WholeTransactions) -> Committed:
        assert isinstance(event, WholeTransactions)
        return Committed(event.positions, event.end_lsns, event.sizes, self._rows(event))

    def _rows(self, transactions: WholeTransactions) -> Iterator[PositionedRows]:
        if self._maker is None:
            self._maker = row_maker(Decoder(1), self._form)
        most = self._form.rows_per_record_batch
        for chunk in Batching(iter(transactions.batches), most, None):
            yield from in_parts(self._maker.rows(chunk, transactions.gids), most)


def row_maker(decoder: Decoder, form: RowForm, start: Lsn | None = None, end: Lsn | None = None) -> RowMaker:
    """Return a maker of rows for a session in UTF-8. `start` and `end` are as in `committed_batches`."""
    # Loaded late, since compiled code takes memory and a moment to load.
    from logicalrep.arrow.feed.columnar import ColumnarFeed
    from logicalrep.arrow.table.columnar import ColumnarTyped

    session = Session(version=decoder.version, encoding=decoder.encoding, **decoder.facts)
    make = ColumnarFeed if form.table is None else ColumnarTyped
    return make(form, session, start=start, end=end)
