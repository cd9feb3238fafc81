"""The consumer of a slot's messages, which decodes them and assembles transactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.frames import messages_of
from logicalrep.transactions.resume_token import ResumeToken
from logicalrep.transactions.transaction import Event
from logicalrep_protocol.decoder import Decoder
from logicalrep_runtime.scalars import Lsn, lsn_of

_Whole = TypeVar("_Whole", covariant=True)


class Intake(Generic[_Whole]):
    """A consumer of single messages; a subclass may return whole transactions in another form."""

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler
        self._decoder: Decoder | None = None

    @property
    def position(self) -> ResumeToken:
        return self._assembler.position

    def connect(self, decoder: Decoder) -> None:
        if self._decoder is not None:
            self._assembler.reconnect()
        self._decoder = decoder

    def take(self, messages: Sequence[tuple[int, bytes]]) -> Iterator[Event | _Whole]:
        """Exhaust the iterator before the next call. Raises DecodeError, TransactionError, OSError (disk full)."""
        for lsn, data in messages:
            yield from self._take_one(lsn, data)

    def take_envelopes(self, envelopes: Sequence[bytes]) -> Iterator[Event | _Whole]:
        yield from self.take(messages_of(envelopes))

    def take_keepalive(self, lsn: Lsn) -> None:
        self._assembler.take_keepalive(lsn)

    def _take_one(self, lsn: int, data: bytes) -> tuple[Event, ...]:
        assert self._decoder is not None
        return self._assembler.feed(self._decoder.decode(data), lsn_of(lsn))
