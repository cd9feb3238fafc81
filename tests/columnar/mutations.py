"""Messages of real servers with bytes changed: most are no messages any more, some are others.

Run as a program it decodes them one by one under numba's bounds checking: see test_columnar_mutations.py.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

import pyarrow as pa

from logicalrep.columnar import Session, decode_batch
from tests.codecs.captured import SELECTION, capture_files, read
from tests.columnar.expected import session_of

_PIECES = [b"\0", b"\xff", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\x7f\xff", b"n", b"u", b"t", b"b"]


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The message with one to three changes; sometimes none."""
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
        at = chance.randrange(len(data) + 1)
        what = chance.randrange(6)
        if what == 0:
            data = data[:at]
        elif what == 1:
            data = data[:at] + chance.choice(_PIECES) + data[at:]
        elif what == 2:
            data = data[:at] + data[at + chance.randrange(1, 5) :]
        elif what == 3:
            data = data[:at] + chance.choice(_PIECES) + data[at + 4 :]
        elif at < len(data):
            changed = data[at] ^ (1 << chance.randrange(8)) if what == 4 else chance.randrange(256)
            data = data[:at] + bytes((changed,)) + data[at + 1 :]
    return data


def mutated_batches(count: int, size: int, *, versions: str = "1234") -> Iterator[tuple[Session, list[bytes]]]:
    """So many messages in all, in batches of one session each; the same in every run."""
    chance = random.Random(1)
    captures = [read(path) for path in capture_files(SELECTION)]
    captures = [capture for capture in captures if str(capture.version) in versions and capture.messages]
    for _ in range(count // size):
        capture = chance.choice(captures)
        start = chance.randrange(len(capture.messages))
        messages = (capture.messages[start:] + capture.messages)[:size]
        messages += tuple(chance.choices(capture.messages, k=size - len(messages)))
        yield session_of(capture), [mutated(data, chance) for data in messages]


def decode_one_by_one(count: int) -> int:
    """Decode each in a buffer of its own, where a byte too far is outside; how many were refused."""
    refused = 0
    for session, messages in mutated_batches(count, 50):
        for data in messages:
            offsets = pa.array([0, len(data)], pa.int32()).buffers()[1]
            alone = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(bytes(data))])
            batch, session = decode_batch(alone, session, errors="column", backend="numba")
            refused += batch["tag"].null_count
    return refused


if __name__ == "__main__":
    import numba

    assert numba.config.BOUNDSCHECK, "set NUMBA_BOUNDSCHECK=1"
    print(decode_one_by_one(int(sys.argv[1])))
