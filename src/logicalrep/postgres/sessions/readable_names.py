"""Names in messages of a SQL_ASCII server, which sends the stored bytes. Needs no psycopg."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from logicalrep.transactions.frames import HEADER_SIZE
from logicalrep.transactions.tags import RELATION, STREAM_START, STREAM_STOP, TYPE
from logicalrep_protocol.versions import PARSE, Relation, Type

_BYTES = "latin-1"
"""The codec that maps each byte to a character and back."""


class ReadableNames:
    """Replaces the bytes of names that are not UTF-8 by escapes, in the messages of one session."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._is_streaming = False

    def replace_in(self, envelopes: Sequence[bytes]) -> list[bytes]:
        return [self._replaced(envelope) for envelope in envelopes]

    def _replaced(self, envelope: bytes) -> bytes:
        tag = envelope[HEADER_SIZE] if len(envelope) > HEADER_SIZE else 0
        if tag in (STREAM_START, STREAM_STOP):
            self._is_streaming = tag == STREAM_START
        if tag not in (RELATION, TYPE):
            return envelope
        facts = {"streaming": self._is_streaming} if self._version > 1 else {}
        message = PARSE[self._version](envelope[HEADER_SIZE:], encoding=_BYTES, **facts)
        assert isinstance(message, Relation | Type)
        message = replace(message, namespace=_readable(message.namespace), name=_readable(message.name))
        if isinstance(message, Relation):
            columns = (replace(column, name=_readable(column.name)) for column in message.columns)
            message = replace(message, columns=tuple(columns))
        return envelope[:HEADER_SIZE] + message.build()


def _readable(name: str) -> str:
    return name.encode(_BYTES).decode("utf-8", "backslashreplace")
