"""What becomes of the messages of a slot's sessions: each is decoded, and assembled to transactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.resume_token import ResumeToken
from logicalrep.transactions.transaction import Event
from logicalrep_protocol.decoder import Decoder
from logicalrep_runtime.scalars import Lsn, lsn_of

_Whole = TypeVar("_Whole", covariant=True)


class Intake(Generic[_Whole]):
    """Message by message; a subclass may give whole transactions in a form of its own."""

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler
        self._decoder: Decoder | None = None

    @property
    def position(self) -> ResumeToken:
        """How far it came with what it has handed on."""
        return self._assembler.position

    def connect(self, decoder: Decoder) -> None:
        """A session begins, with a new decoder; the first or, after the connection broke, another one."""
        if self._decoder is not None:
            self._assembler.reconnect()
        self._decoder = decoder

    def take(self, messages: Sequence[tuple[int, bytes]]) -> Iterator[Event | _Whole]:
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
