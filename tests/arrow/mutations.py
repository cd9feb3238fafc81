"""Messages of real servers with bytes changed: most become invalid, some become other messages."""

from __future__ import annotations

import random
from collections.abc import Iterator

from logicalrep_protocol.columnar import Session
from tests.arrow.expected import session_of
from tests.protocol.captured import read, selected

_PIECES = [b"\0", b"\xff", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\x7f\xff", b"n", b"u", b"t", b"b"]


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return the message with one to three changes; sometimes with none."""
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


def mutated_batches(count: int, size: int) -> Iterator[tuple[Session, list[bytes]]]:
    """Yield `count` messages in all, in batches of one session each; the same in every run."""
    chance = random.Random(1)
    captures = [read(path) for path in selected()]
    captures = [capture for capture in captures if capture.messages]
    for _ in range(count // size):
        capture = chance.choice(captures)
        start = chance.randrange(len(capture.messages))
        messages = (capture.messages[start:] + capture.messages)[:size]
        messages += tuple(chance.choices(capture.messages, k=size - len(messages)))
        yield session_of(capture), [mutated(data, chance) for data in messages]
