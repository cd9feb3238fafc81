"""Message batches: messages as arrays, without a Python object per message, to be read in columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logicalrep.arrow.loops.frames import copy_frames, cut_out
from logicalrep.transactions.errors import TooLargeError
from logicalrep.transactions.frames import HEADER_SIZE, LARGE_BATCH, LSN_BYTES
from logicalrep.transactions.tags import DELETE, INSERT, UPDATE, WHOLE

_MESSAGES = 10_000


def tag_mask(tags: bytes) -> NDArray[np.bool_]:
    """Return for each byte whether it is one of the tags; a lookup is faster than np.isin."""
    table = np.zeros(256, dtype=bool)
    table[list(tags)] = True
    return table


SENT_WHOLE = tag_mask(WHOLE)
"""Whether a message with this tag belongs to transactions that are sent whole, not streamed and not prepared."""
ROW_CHANGE = tag_mask(bytes([INSERT, UPDATE, DELETE]))


@dataclass(frozen=True, slots=True)
class MessageBatch:
    lsns: NDArray[np.int64]
    """The messages' LSNs; an LSN from 2^63 is negative, with the same bits."""
    array: pa.Array
    tags: NDArray[np.uint8]
    """The first byte of each message; 0 for an empty message."""

    @classmethod
    def of(cls, lsns: NDArray[np.int64], messages: pa.Array) -> MessageBatch:
        data = messages.buffers()[2]
        offsets = _offsets(messages)
        if data is None or not data.size:
            return cls(lsns, messages, np.zeros(len(messages), np.uint8))
        tags = np.frombuffer(data, np.uint8).take(offsets[:-1], mode="clip")
        tags[offsets[:-1] == offsets[1:]] = 0
        return cls(lsns, messages, tags)

    def __len__(self) -> int:
        return len(self.lsns)

    def __getitem__(self, part: slice) -> MessageBatch:
        return MessageBatch(self.lsns[part], self.array[part], self.tags[part])

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        return zip(self.lsns.view(np.uint64).tolist(), self.array.to_pylist(), strict=True)

    def data(self, index: int) -> bytes:
        return self.array[index].as_py()  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        offsets = _offsets(self.array)
        return int(offsets[-1]) - int(offsets[0]) if len(self) else 0

    @property
    def ends(self) -> NDArray[np.int64]:
        offsets = _offsets(self.array)
        ends: NDArray[np.int64] = offsets[1:].astype(np.int64) - offsets[0]
        return ends


def _offsets(messages: pa.Array) -> NDArray[np.int32]:
    return np.frombuffer(messages.buffers()[1], np.int32)[messages.offset : messages.offset + len(messages) + 1]


def joined(batches: list[MessageBatch]) -> MessageBatch:
    if len(batches) == 1:
        return batches[0]
    return MessageBatch(
        np.concatenate([batch.lsns for batch in batches]),
        pa.concat_arrays([batch.array for batch in batches]),
        np.concatenate([batch.tags for batch in batches]),
    )


def message_batches_of(messages: Iterable[tuple[int, bytes] | MessageBatch]) -> Iterator[MessageBatch]:
    """Yield batches of single messages, smaller batches if messages are large. Batches pass unchanged."""
    part: list[tuple[int, bytes]] = []
    size = 0
    for message in messages:
        if isinstance(message, MessageBatch):
            if part:
                yield message_batch_of(part)
                part, size = [], 0
            yield message
            continue
        part.append(message)
        size += len(message[1])
        if len(part) >= _MESSAGES or size >= LARGE_BATCH:
            yield message_batch_of(part)
            part, size = [], 0
    if part:
        yield message_batch_of(part)


def message_batch_of(messages: Sequence[tuple[int, bytes]]) -> MessageBatch:
    lsns = np.array([lsn for lsn, _ in messages], np.uint64).view(np.int64)
    return MessageBatch.of(lsns, pa.array([data for _, data in messages], pa.binary()))


def message_batch_in(envelopes: Sequence[bytes]) -> MessageBatch:
    source = np.frombuffer(b"".join(envelopes), np.uint8)
    offsets = np.append(0, np.cumsum(np.fromiter(map(len, envelopes), np.int64, len(envelopes))))
    if offsets[-1] >= 1 << 31:
        raise TooLargeError("messages of 2 GiB and more cannot be read in columns")
    whole = pa.Array.from_buffers(
        pa.binary(), len(envelopes), [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(source)], 0
    )
    lsns = source[offsets[:-1, None] + np.arange(LSN_BYTES.start, LSN_BYTES.stop)].view(">u8").ravel().astype(np.uint64)
    nothing = np.zeros(len(envelopes), np.uint8)
    messages = copied(MessageBatch(lsns.view(np.int64), whole, nothing), without=slice(0, HEADER_SIZE))
    return MessageBatch.of(messages.lsns, messages.array)


def split(data: bytes | bytearray | memoryview, header: int) -> tuple[int, MessageBatch]:
    source = np.frombuffer(data, np.uint8)
    if len(source) >= 1 << 31:
        raise TooLargeError("a message of 2 GiB and more cannot be read in columns")
    most = len(source) // header
    lsns, offsets, tags = np.empty(most, np.int64), np.empty(most + 1, np.int32), np.empty(most, np.uint8)
    target = pa.allocate_buffer(len(source))
    count, size = copy_frames(source, header, lsns, offsets, tags, np.frombuffer(target, np.uint8))
    array = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), target], null_count=0)
    return size, MessageBatch(lsns[:count], array, tags[:count])


def copied(batch: MessageBatch, *, without: slice = slice(0, 0)) -> MessageBatch:
    start, length = without.start, without.stop - without.start
    source = np.frombuffer(batch.array.buffers()[2], np.uint8)
    target, offsets = pa.allocate_buffer(batch.size - length * len(batch)), np.empty(len(batch) + 1, np.int32)
    cut_out(source, _offsets(batch.array), start, length, offsets, np.frombuffer(target, np.uint8))
    array = pa.Array.from_buffers(pa.binary(), len(batch), [None, pa.py_buffer(offsets), target], null_count=0)
    return MessageBatch(batch.lsns.copy(), array, batch.tags.copy())
