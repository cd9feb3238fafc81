"""Rows of a result by pgwire's `Session`, beside a reader of DataRow that is written by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice
from struct import Struct

from bench.measure import Contender, Row, consume, rates
from logicalrep_protocol.pgwire import Session, v3_2

_ROWS = 20_000
_CHUNK = 8192
_VALUES = (b"184467", b"Anna Karenina", b"2026-11-29 16:22:50.123456+00", None, b"t", b"1299.95")
_HEAD, _COUNT, _LENGTH = Struct(">Bi"), Struct(">h"), Struct(">i")


def rows() -> list[Row]:
    """Return the rates for rows of four and of eight columns."""
    table = []
    for width in (4, 8):
        columns = tuple(v3_2.ColumnValue(value=value) for value in islice(cycle(_VALUES), width))
        sent = v3_2.DataRow(columns=columns).build() * _ROWS
        chunks = [sent[offset : offset + _CHUNK] for offset in range(0, len(sent), _CHUNK)]
        session, by_hand = f"Session, {width} columns", f"by hand, {width} columns"
        measured = rates(
            [
                Contender(session, _ROWS, partial(_consume, _received, chunks)),
                Contender(by_hand, _ROWS, partial(_consume, _read_by_hand, chunks)),
            ]
        )
        ratio = measured[session] / measured[by_hand]
        table.append(Row(session, measured[session], "messages/s", ratio, "faster than by hand", 0.8))
        table.append(Row(by_hand, measured[by_hand], "messages/s"))
    return table


def _consume(read: Callable[[list[bytes]], Iterator[object]], chunks: list[bytes]) -> None:
    consume(read(chunks))


def _received(chunks: list[bytes]) -> Iterator[object]:
    session = Session()
    session.facts["expected"] = "messages"
    for chunk in chunks:
        yield from session.receive(chunk, sender="server")


def _read_by_hand(chunks: list[bytes]) -> Iterator[object]:
    """Yield the tag and the values of each message."""
    data = b""
    for chunk in chunks:
        data, offset = data + chunk, 0
        while len(data) >= offset + 5:
            tag, length = _HEAD.unpack_from(data, offset)
            end = offset + 1 + length
            if end > len(data):
                break
            (count,) = _COUNT.unpack_from(data, offset + 5)
            at = offset + 7
            values: list[bytes | None] = []
            for _ in range(count):
                (size,) = _LENGTH.unpack_from(data, at)
                at += 4
                if size < 0:
                    values.append(None)
                else:
                    values.append(data[at : at + size])
                    at += size
            offset = end
            yield tag, values
        data = data[offset:]
