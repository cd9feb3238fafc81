"""The expected rows of a batch by `parse`: each row as its columns that are not null."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

import pyarrow as pa

from logicalrep import DecodeError, TimestampTz
from logicalrep_protocol.columnar import Session, decode_batch
from logicalrep_protocol.layouts import LOGICALREP
from logicalrep_protocol.versions import PARSE
from tests.protocol.captured import Capture

_UNIX_EPOCH = 946_684_800_000_000
_SINCE = {layout.tag: layout for layout in LOGICALREP.messages}


def session_of(capture: Capture) -> Session:
    """Return the session of a capture, at its start."""
    return Session(
        version=capture.version, parallel=capture.parallel, two_phase=capture.two_phase, encoding=capture.encoding
    )


@dataclass(frozen=True)
class Refused:
    """The mark in place of a row that `parse` refuses."""

    error: str
    data: bytes


def parsed(messages: Iterable[bytes], session: Session) -> Iterator[Any]:
    """Yield each message as `parse` reads it, or a Refused; the session's state is kept here."""
    streaming = session.streaming
    for data in messages:
        layout = _SINCE.get(data[:1].decode("latin-1"))
        version = session.version
        if layout is not None and layout.is_sent_in(
            version, {fact: getattr(session, fact) for fact in session.layouts.session}
        ):
            version = max(version, layout.since)
        try:
            message = PARSE[version](data, streaming=streaming, parallel=session.parallel, encoding=session.encoding)
        except DecodeError as error:
            yield Refused(str(error), data)
            continue
        yield message
        if message.tag in "SE" and session.version > 1:
            streaming = message.tag == "S"


def row_of(message: Any) -> dict[str, Any]:
    """Return a message as a row of a batch."""
    if isinstance(message, Refused):
        return {"error": message.error, "data": message.data}
    row = {"tag": message.tag}
    for field in fields(message):
        value = _value(getattr(message, field.name))
        if value is not None:
            row[field.name] = value
    return row


def _value(value: Any) -> Any:
    if hasattr(value, "kinds"):
        return [{"kind": kind, "value": cell} for kind, cell in zip(value.kinds, value.values, strict=True)]
    if is_dataclass(value):
        return {field.name: _value(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    if isinstance(value, TimestampTz):
        # Arrow's count, wrapped to its 64 bits.
        return (int(value) + _UNIX_EPOCH + (1 << 63)) % (1 << 64) - (1 << 63)
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool):
        return value
    return int(value) if isinstance(value, int) else value


def rows_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return a batch's rows, each as its columns that are not null, with times as their integers."""
    batch.validate(full=True)
    columns: dict[str, list[Any]] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_timestamp(column.type):
            column = column.view(pa.int64())
        if column.null_count < len(column):
            columns[name] = column.to_pylist()
    return [
        {name: values[row] for name, values in columns.items() if values[row] is not None}
        for row in range(batch.num_rows)
    ]


def decode_in_batches(
    messages: Sequence[bytes], session: Session, size: int, **arguments: Any
) -> tuple[pa.Table, Session]:
    """Decode `size` messages at a time; each batch continues where the previous one ended."""
    array = pa.array(messages, pa.binary())
    batches = []
    for start in range(0, len(messages), size):
        batch, session = decode_batch(array[start : start + size], session, **arguments)
        batches.append(batch)
    return pa.Table.from_batches(batches), session


def check(messages: Sequence[bytes], session: Session, **arguments: Any) -> None:
    """Compare a batch of these messages, refused ones marked, with `parse`."""
    batch, after = decode_batch(pa.array(messages, pa.binary()), session, errors="column", **arguments)
    expected = list(parsed(messages, session))
    assert rows_of(batch) == [row_of(message) for message in expected]
    streaming = session.streaming
    for message in expected:
        if not isinstance(message, Refused) and message.tag in "SE":
            streaming = message.tag == "S"
    assert after.streaming == streaming
