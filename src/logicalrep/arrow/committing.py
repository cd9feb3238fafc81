"""Record batches of an intake's events, with the facts on each transaction that admission control needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logicalrep.arrow.batch_intake import BatchIntake, WholeTransactions
from logicalrep.arrow.builders import builder_for, columnar, of_whole, reads_in_columns
from logicalrep.arrow.feed.rows import batches, signed
from logicalrep.arrow.row_form import RowForm
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.intake import Intake
from logicalrep.transactions.transaction import Event, NonTransactionalMessage, Transaction
from logicalrep_protocol.decoder import Decoder
from logicalrep_runtime.scalars import Lsn


@dataclass(frozen=True, slots=True)
class Committed:
    """Transactions one after another, or one non-transactional message; arrays have an item for each."""

    positions: NDArray[np.int64]
    """The position of each one's rows, its commit, in ascending order."""
    ends: NDArray[np.int64]
    """The end of a batch whose last item is this one."""
    sizes: NDArray[np.int64]
    """The bytes of each one's messages, or of its rows if made one by one. Valid once all batches are taken."""
    batches: Iterator[Any]
    """The record batches, which can be taken once."""

    def numbers(self, batch: Any) -> NDArray[np.intp]:
        """Return the index of the transaction that each row of a batch belongs to."""
        if len(self.positions) == 1:
            return np.zeros(batch.num_rows, np.intp)
        names = batch.schema.names
        commits = batch.column(names.index("_commit_version" if "_commit_version" in names else "commit_lsn"))
        numbers: NDArray[np.intp] = np.searchsorted(self.positions, commits.to_numpy())
        return numbers


class Committing:
    """Makes record batches in columns where possible, else row by row."""

    def __init__(self, form: RowForm, assembler: Assembler) -> None:
        self._form = form
        self._builder = builder_for(form)
        self._columnar: Any = None
        self.intake: Intake[WholeTransactions] = Intake(assembler)
        """The consumer of received messages."""
        if reads_in_columns(form, "utf-8"):
            self.intake = BatchIntake(assembler, form.memory_limit)

    def committed(self, event: Event | WholeTransactions) -> Committed:
        """Return the rows of an intake's event. Taking the batches raises the errors of reading their values."""
        if isinstance(event, WholeTransactions):
            return Committed(event.commit_lsns, event.end_lsns, event.sizes, self._in_columns(event))
        if isinstance(event, Transaction):
            position, end = event.commit_lsn, event.end_lsn
        elif isinstance(event, NonTransactionalMessage):
            # The message's LSN is the end of its record, where another commit record may begin.
            position, end = Lsn(event.message.message_lsn - 1), event.message.message_lsn
        else:
            position, end = Lsn(0), event.end_lsn
        sizes = np.zeros(1, np.int64)
        return Committed(np.array([signed(position)]), np.array([signed(end)]), sizes, self._row_by_row(event, sizes))

    def _in_columns(self, transactions: WholeTransactions) -> Iterator[Any]:
        if self._columnar is None:
            # Loaded late, since compiled code takes memory and a moment to load.
            self._columnar = columnar(Decoder(1), self._form, None, None)
        yield from of_whole(transactions, self._columnar, self._form.rows_per_record_batch)

    def _row_by_row(self, event: Event, sizes: NDArray[np.int64]) -> Iterator[Any]:
        for batch in batches((event,), self._builder, rows=self._form.rows_per_record_batch):
            sizes[0] += batch.nbytes
            yield batch
