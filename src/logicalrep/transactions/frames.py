"""The frames of messages in capture files and in COPY."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from struct import Struct

LONGEST_MESSAGE = 1 << 30
"""The longest message of a server, in bytes: a greater length is not valid."""

LARGE_BATCH = 4 << 20
"""The size in bytes at which a message batch ends, even with few messages.

Small batches let the producer and the consumer work at the same time; large ones need fewer calls.
"""

# A message batch has at most as many rows as a record batch of Spark, so that most need no regrouping. Its size in
# bytes is checked after each step of rows.
_ROWS, _STEP = 10_000, 16

_POSITION = Struct(">Qi")


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
