"""The frames of messages: in capture files, in COPY, and in a walsender's XLogData."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from operator import itemgetter
from struct import Struct

from logicalrep_protocol import walsender
from logicalrep_protocol.layouts import WALSENDER
from logicalrep_runtime.operations import Integer

LONGEST_MESSAGE = 1 << 30
"""The longest message of a server, in bytes: a greater length is not valid."""

LARGE_BATCH = 4 << 20
"""The size in bytes at which a message batch ends, even with few messages.

Small batches let the producer and the consumer work at the same time; large batches need fewer calls.
"""
ROUND_SECONDS = 0.05
"""The least seconds between two batches of few received messages: decoding a batch costs milliseconds."""
GATHERING_SECONDS = 1.0
"""The most seconds that received messages wait for further messages, while no consumer wants their changes."""

# A message batch has at most as many rows as a record batch of Spark, so that most need no regrouping. Its size in
# bytes is checked after each step of rows.
_ROWS, _STEP = 10_000, 16

_POSITION = Struct(">Qi")

X_LOG_DATA = ord(walsender.XLogData.tag)
_FIELDS = [
    operation
    for layout in WALSENDER.messages
    for operation in layout.operations
    if layout.name == "XLogData" and isinstance(operation, Integer)
]
_HEADER = Struct(">" + "".join({1: "B", 8: "Q"}[field.width] for field in _FIELDS))
HEADER_SIZE = _HEADER.size
_START_LSN = [field.name for field in _FIELDS].index("start_lsn")
_LSN_AT = sum(field.width for field in _FIELDS[:_START_LSN])
LSN_BYTES = slice(_LSN_AT, _LSN_AT + 8)
"""The bytes of the start LSN, big-endian. In logical replication the start and the end LSN are the same."""


def split_frames(data: bytes | bytearray | memoryview, header: int) -> tuple[int, list[tuple[int, bytes]]]:
    """Return the size in bytes of the complete frames at the start of the data, and their LSNs and messages.

    A frame is a header of `header` bytes, which ends with the LSN (8 bytes) and the length (4) of the message, and the
    message. Reading stops at an incomplete frame, or at a length that is negative or above LONGEST_MESSAGE.
    """
    messages = []
    start, size = 0, len(data)
    while size - start >= header:
        lsn, length = _POSITION.unpack_from(data, start + header - _POSITION.size)
        end = start + header + length
        if not 0 <= length <= LONGEST_MESSAGE or end > size:
            break
        messages.append((lsn, bytes(data[end - length : end])))
        start = end
    return start, messages


def gathered(rows: Iterator[memoryview | bytes]) -> Iterator[bytearray]:
    """Yield rows joined to buffers: as many rows as a record batch has, fewer if they are large."""
    while True:
        # Appending each row to one buffer takes half the time of a join, for which each row keeps its own memory.
        data = bytearray()
        for _ in range(0, _ROWS, _STEP):
            for row in islice(rows, _STEP):
                data += row
            if len(data) >= LARGE_BATCH:
                break
        if not data:
            return
        yield data


def messages_of(envelopes: Sequence[bytes]) -> list[tuple[int, bytes]]:
    """Return the messages in envelopes, each with its LSN."""
    read = _HEADER.unpack_from
    return [(read(envelope)[_START_LSN], envelope[HEADER_SIZE:]) for envelope in envelopes]


def last_lsn(envelopes: Sequence[bytes]) -> int:
    return int.from_bytes(max(map(itemgetter(LSN_BYTES), envelopes), default=b""), "big")
