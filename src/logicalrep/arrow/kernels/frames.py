"""The compiled loops that take messages out of their frames, and bytes out of messages."""

from __future__ import annotations

from typing import Any

from logicalrep_runtime.columnar.located import Bytes, Ints
from logicalrep_runtime.columnar.memory import compiled, copy, int32, int64


@compiled
def split_compiled(
    source: Bytes, header: int, longest: int, lsns: Ints, offsets: Ints, tags: Bytes, target: Bytes
) -> Any:
    """Copy the messages of whole frames together, with LSNs and tags. Return the number and bytes of frames."""
    offsets[0] = 0
    count = offset = start = 0
    size = len(source)
    while size - start >= header:
        length = int32(source, start + header - 4)
        if length < 0 or length > longest or length > size - start - header:
            break
        lsns[count] = int64(source, start + header - 12)
        tags[count] = source[start + header] if length else 0
        copy(target, offset, source, start + header, length, len(target))
        offset += length
        start += header + length
        count += 1
        offsets[count] = offset
    return count, start


@compiled
def cut_out(source: Bytes, begins: Ints, start: int, length: int, offsets: Ints, target: Bytes) -> None:
    """Copy messages together, each without the `length` bytes at `start` within it."""
    offsets[0] = 0
    to = 0
    for index in range(len(begins) - 1):
        begin = begins[index]
        rest = begins[index + 1] - begin - start - length
        copy(target, to, source, begin, start, len(target))
        copy(target, to + start, source, begin + start + length, rest, len(target))
        to += start + rest
        offsets[index + 1] = to
