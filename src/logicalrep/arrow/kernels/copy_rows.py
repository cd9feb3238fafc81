"""The compiled loop that makes messages from rows of COPY in text format."""

from __future__ import annotations

from logicalrep.transactions.tags import NULL, TEXT
from logicalrep_runtime.columnar.located import Bytes, Ints
from logicalrep_runtime.columnar.memory import compiled, copy, uint8

_TAB, _NEWLINE, _BACKSLASH, _OF_NULL = map(ord, "\t\n\\N")
_HEADER = 5


@compiled
def insert_messages(
    source: Bytes, beginning: Bytes, columns: int, meanings: Bytes, offsets: Ints, target: Bytes
) -> int:
    """Make messages of rows: each begins with `beginning`, followed by the values of its row.

    The last byte of the source is a newline. `meanings` has for each byte its meaning after a backslash. `offsets`
    gets the start of each message and, last, the end of all; `target` has room for a message for each newline.
    Returns the number of messages; -1 if a row has another number of columns.
    """
    offsets[0] = 0
    count = offset = start = 0
    size = len(source)
    while start < size:
        copy(target, offset, beginning, 0, len(beginning), len(target))
        offset += len(beginning)
        for column in range(1, columns + 1):
            end = start
            escapes = 0
            byte = uint8(source, end)
            while byte not in (_TAB, _NEWLINE):
                escapes += byte == _BACKSLASH
                end += 1
                byte = uint8(source, end)
            if (byte == _NEWLINE) != (column == columns):
                return -1
            if escapes and end - start == 2 and uint8(source, start + 1) == _OF_NULL:
                target[offset] = NULL
                offset += 1
            else:
                value = offset + _HEADER
                if escapes:
                    length = _copy_unescaped(source, start, end, meanings, target, value)
                else:
                    length = end - start
                    copy(target, value, source, start, length, len(target))
                target[offset] = TEXT
                for index in range(4):
                    target[offset + 1 + index] = length >> 8 * (3 - index) & 0xFF
                offset = value + length
            start = end + 1
        count += 1
        offsets[count] = offset
    return count


@compiled
def _copy_unescaped(source: Bytes, start: int, end: int, meanings: Bytes, target: Bytes, offset: int) -> int:
    first = offset
    while start < end:
        byte = uint8(source, start)
        if byte == _BACKSLASH and start + 1 < end:
            start += 1
            byte = meanings[uint8(source, start)]
        target[offset] = byte
        offset += 1
        start += 1
    return offset - first
