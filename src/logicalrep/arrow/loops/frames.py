"""Messages out of frames, bytes out of messages, and messages of rows of COPY in text format."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from logicalrep.arrow.loops.choosing import native_if_installed
from logicalrep.arrow.loops.joining import write_joined
from logicalrep.transactions.frames import split_frames
from logicalrep.transactions.tags import NULL, TEXT
from logicalrep_runtime.columnar.located import Bytes, Int64s

_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_NULL = rb"\N"


@native_if_installed
def copy_frames(
    source: Bytes, header: int, lsns: Int64s, offsets: NDArray[np.int32], tags: Bytes, target: Bytes
) -> tuple[int, int]:
    """Copy the messages of whole frames together, with LSNs and tags. Return the number and bytes of frames."""
    size, messages = split_frames(source.data, header)
    count = len(messages)
    lsns[:count] = np.array([lsn for lsn, _ in messages], np.uint64).view(np.int64)
    tags[:count] = [data[0] if data else 0 for _, data in messages]
    write_joined([data for _, data in messages], offsets, target)
    return count, size


@native_if_installed
def cut_out(
    source: Bytes, begins: NDArray[np.int32], start: int, length: int, offsets: NDArray[np.int32], target: Bytes
) -> None:
    """Copy messages together, each without the `length` bytes at `start` within it."""
    data, rest = source.tobytes(), start + length
    parts = [data[begin : begin + start] + data[begin + rest : end] for begin, end in pairwise(begins.tolist())]
    write_joined(parts, offsets, target)


@native_if_installed
def insert_messages(
    source: Bytes, beginning: Bytes, columns: int, meanings: Bytes, offsets: Int64s, target: Bytes
) -> int:
    """Make messages of rows: each begins with `beginning`, followed by the values of its row.

    The last byte of the source is a newline. `meanings` has for each byte its meaning after a backslash. `offsets`
    gets the start of each message and, last, the end of all; `target` has room for a message for each newline.
    Returns the number of messages; -1 if a row has another number of columns.
    """

    def meaning(escaped: re.Match[bytes]) -> bytes:
        return bytes([meanings[ord(escaped[1])]])

    messages = []
    for line in source.tobytes().split(b"\n")[:-1]:
        fields = line.split(b"\t") if columns or line else []
        if len(fields) != columns:
            return -1
        message = beginning.tobytes()
        for field in fields:
            if field == _NULL:
                message += bytes([NULL])
            else:
                value = _ESCAPED.sub(meaning, field)
                message += bytes([TEXT]) + len(value).to_bytes(4, "big") + value
        messages.append(message)
    write_joined(messages, offsets, target)
    return len(messages)
