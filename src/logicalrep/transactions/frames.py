"""Messages out of the frames that capture files and COPY put them in, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from struct import Struct

LONGEST_MESSAGE = 1 << 30
"""In bytes; the server has none longer, so a length above it is none."""

LARGE_BATCH = 4 << 20
"""In bytes: what is put together of messages ends soon after so many, however few messages they are.

Smaller ones keep those who make them and those who take them at work at the same time; larger ones take fewer calls.
"""

# So many rows are put together at most, as in a record batch of Spark, so that most need not be put together again;
# their bytes are looked at after each step of so many.
_ROWS, _STEP = 10_000, 16

_POSITION = Struct(">Qi")


def split_frames(data: bytes | bytearray | memoryview, header: int) -> tuple[int, list[tuple[int, bytes]]]:
    """The bytes of the whole frames that data begin with, and their LSNs and messages.

    A frame is a header of so many bytes, which ends with the LSN (8 bytes) and the length (4) of the message, and the
    message. It goes up to a frame that is not all there, or whose length is negative or above LONGEST_MESSAGE.
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
    """Rows together: so many as fit a record batch, fewer where they are large."""
    while True:
        # One by one into one buffer: to keep them for a join takes twice as long, as each keeps memory of its own.
        data = bytearray()
        for _ in range(0, _ROWS, _STEP):
            for row in islice(rows, _STEP):
                data += row
            if len(data) >= LARGE_BATCH:
                break
        if not data:
            return
        yield data
