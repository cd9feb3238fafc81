"""The compiled loop that takes messages out of their frames."""

from __future__ import annotations

from typing import Any

from logicalrep.columnar.memory import compiled, copy, int32, int64


@compiled
def split_frames(source: Any, header: int, longest: int, lsns: Any, offsets: Any, tags: Any, target: Any) -> Any:
    """How many whole frames there are, and their bytes; their LSNs and tags, and the messages one after another."""
    offsets[0] = 0
    count = place = start = 0
    size = len(source)
    while size - start >= header:
        length = int32(source, start + header - 4)
        if length < 0 or length > longest or length > size - start - header:
            break
        lsns[count] = int64(source, start + header - 12)
        tags[count] = source[start + header] if length else 0
        copy(target, place, source, start + header, length, len(target))
        place += length
        start += header + length
        count += 1
        offsets[count] = place
    return count, start
