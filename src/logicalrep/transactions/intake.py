"""What becomes of the messages of a slot's sessions: each is decoded, and assembled to transactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from logicalrep import Decoder, Lsn
from logicalrep.scalars import lsn_of
from logicalrep_pipeline.assembler import Assembler
from logicalrep_pipeline.positions import Position
from logicalrep_pipeline.transactions import Event

if TYPE_CHECKING:
    from logicalrep_pipeline.block_intake import WholeTransactions


class Intake:
    """Message by message."""

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler
        self._decoder: Decoder | None = None

    @property
    def position(self) -> Position:
        """How far it came with what it has handed on."""
        return self._assembler.position

    def connect(self, decoder: Decoder) -> None:
        """A session begins, with a new decoder; the first or, after the connection broke, another one."""
        if self._decoder is not None:
            self._assembler.reconnect()
        self._decoder = decoder

    def take(self, messages: Sequence[tuple[int, bytes]]) -> Iterator[Event | WholeTransactions]:
        """What is finished with the next messages; all of it has to be taken before more is given.

        Raises DecodeError, TransactionError, and OSError where a temporary file could not be written.
        """
        for lsn, data in messages:
            yield from self._take_one(lsn, data)

    def keepalive(self, lsn: Lsn) -> None:
        """The server has sent all there is up to this position."""
        self._assembler.keepalive(lsn)

    def _take_one(self, lsn: int, data: bytes) -> tuple[Event, ...]:
        assert self._decoder is not None
        return self._assembler.feed(self._decoder.decode(data), lsn_of(lsn))
