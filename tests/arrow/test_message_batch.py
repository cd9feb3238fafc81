"""Message batches equal the messages one by one, in every format and in damaged files."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np
import pytest

from logicalrep import Lsn, TimestampTz
from logicalrep.arrow.message_batch import (
    copied,
    joined,
    message_batch_in,
    message_batch_of,
    message_batches_of,
    split,
)
from logicalrep.captures.capture import Capture, CaptureError
from logicalrep.transactions.frames import last_lsn, messages_of, split_frames
from logicalrep_protocol import walsender
from tests.protocol.captured import selected

CAPTURES = selected()
FRAME = Struct(">QI")


def framed(messages: list[tuple[int, bytes]]) -> bytes:
    return b"".join(FRAME.pack(lsn, len(data)) + data for lsn, data in messages)


def found(path: Path, *, as_batches: bool) -> tuple[list[tuple[int, bytes]], str | None]:
    """Return the messages before an error, and the error."""
    messages: list[tuple[int, bytes]] = []
    try:
        with Capture.open(path) as capture:
            for item in capture.batches() if as_batches else ([message] for message in capture):
                messages += item
    except CaptureError as error:
        return messages, str(error)
    return messages, None


@pytest.mark.slow
def test_a_capture_in_batches_is_the_capture(tmp_path: Path) -> None:
    for path in CAPTURES:
        expected, error = found(path, as_batches=False)
        assert error is None
        assert found(path, as_batches=True) == (expected, None)
        for name, data in (("a.bin", framed(expected)), ("a.bin.gz", gzip.compress(framed(expected)))):
            (tmp_path / name).write_bytes(data)
            for as_batches in (False, True):
                assert found(tmp_path / name, as_batches=as_batches) == (expected, None)


def test_messages_longer_than_a_piece(tmp_path: Path) -> None:
    messages = [(1, b"I" * 10), (2, b"U" * (5 << 20)), (1 << 63, b""), ((1 << 64) - 1, b"D" * (3 << 20)), (5, b"C")]
    for name, data in (("a.bin", framed(messages)), ("a.bin.gz", gzip.compress(framed(messages), 1))):
        (tmp_path / name).write_bytes(data)
        for as_batches in (False, True):
            assert found(tmp_path / name, as_batches=as_batches) == (messages, None)


@pytest.mark.parametrize("seed", range(30))
def test_damage_gives_one_error_either_way(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(framed([(number, chance.randbytes(chance.randrange(200))) for number in range(500)]))
    if seed % 3:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    del data[chance.randrange(len(data)) :]
    path = tmp_path / "a.bin"
    packed = bytearray(gzip.compress(data, mtime=0)[: -(seed % 2) * 9 or None])
    if seed % 5 == 0:
        packed[chance.randrange(10, len(packed))] ^= 0xFF
    path.write_bytes(packed)
    one_by_one = found(path, as_batches=False)
    assert found(path, as_batches=True) == one_by_one


@pytest.mark.parametrize("length", [0x40000000, 0x40000001, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_a_length_is_not_believed(length: int) -> None:
    """Nothing of that size is allocated, and an incomplete frame is left."""
    data = FRAME.pack(7, 1) + b"B" + FRAME.pack(8, length)
    size, batch = split(data, FRAME.size)
    assert (size, list(batch)) == split_frames(data, FRAME.size) == (FRAME.size + 1, [(7, b"B")])


@pytest.mark.parametrize("seed", range(30))
def test_frames_are_split_alike_by_the_loop(seed: int) -> None:
    """The frames come from a capture and from COPY, whose header is longer; they are cut off anywhere, and damaged."""
    chance = random.Random(seed)
    prefix_size = (0, 6)[seed % 2]
    messages = [
        (chance.getrandbits(64), chance.randbytes(chance.choice((0, 1, 15, 16, 17, 33, 200)))) for _ in range(200)
    ]
    data = bytearray(b"".join(chance.randbytes(prefix_size) + framed([message]) for message in messages))
    header = prefix_size + FRAME.size
    for _ in range(20):
        size, batch = split(data, header)
        assert (size, list(batch)) == split_frames(data, header)
        assert batch.tags.tolist() == [message[0] if message else 0 for _, message in batch]
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        del data[chance.randrange(len(data) // 2, len(data)) :]


@pytest.mark.parametrize("without", [slice(0, 0), slice(1, 5), slice(0, 1), slice(3, 10)])
def test_messages_without_the_bytes_at_a_place(without: slice) -> None:
    chance = random.Random(1)
    messages = [(number, chance.randbytes(10 + chance.choice((0, 1, 15, 16, 17, 33, 200)))) for number in range(100)]
    for part in (slice(0, 100), slice(7, 50), slice(3, 3)):
        batch = message_batch_of(messages)[part]
        shortened = copied(batch, without=without)
        assert list(shortened) == [(lsn, data[: without.start] + data[without.stop :]) for lsn, data in messages[part]]
        assert shortened.tags.tolist() == batch.tags.tolist()


def test_parts_of_batches() -> None:
    messages: list[tuple[Any, bytes]] = [(number, bytes([number]) * (number % 3)) for number in range(50)]
    (batch,) = message_batches_of(messages)
    parts = [batch[:7], batch[7:7], batch[7:20][3:], batch[20:]]
    expected = messages[:7] + messages[10:]
    rejoined = joined(parts)
    assert list(rejoined) == expected
    assert rejoined.tags.tolist() == [number if number % 3 else 0 for number, _ in expected]
    assert batch[20:].ends.tolist() == np.cumsum([len(data) for _, data in messages[20:]]).tolist()
    assert batch[20:].size == sum(len(data) for _, data in messages[20:])
    assert batch[5:].data(2) == messages[7][1]


def test_messages_in_envelopes() -> None:
    high = (1 << 64) - 2
    messages = [(7, b"B"), (3, b""), (high, b"C" * 300)]
    envelopes = [
        walsender.XLogData(start_lsn=Lsn(lsn), end_lsn=Lsn(lsn), send_timestamp=TimestampTz(0), payload=data).build()
        for lsn, data in messages
    ]
    batch, expected = message_batch_in(envelopes), message_batch_of(messages)
    assert messages_of(envelopes) == messages
    assert batch.array.equals(expected.array)
    assert (batch.lsns.tolist(), batch.tags.tolist()) == (expected.lsns.tolist(), expected.tags.tolist())
    assert (last_lsn(envelopes), last_lsn([])) == (high, 0)
    assert len(message_batch_in([])) == 0
