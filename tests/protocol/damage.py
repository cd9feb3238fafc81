"""Messages with a fault."""

from __future__ import annotations

import random


def damaged(data: bytes, chance: random.Random) -> bytes:
    """A message with a byte changed, taken out or put in, cut, or with another number in it."""
    copy = bytearray(data)
    place = chance.randrange(len(copy))
    match chance.randrange(5):
        case 0:
            copy[place] = chance.randrange(256)
        case 1:
            del copy[place:]
        case 2:
            copy.insert(place, chance.randrange(256))
        case 3:
            copy[place : place + 4] = bytes(chance.choice((0, 1, 127, 128, 255)) for _ in range(4))
        case _:
            del copy[place : place + chance.randrange(1, 5)]
    return bytes(copy)
