"""Tables with something else in one place."""

from __future__ import annotations

import random
from typing import Any

_OTHERS: tuple[Any, ...] = (
    None, -1, 0, 3, 7, 255, 256, 1 << 70, "", "text", b"", b"tu", (), (1,), ((1, 2),), True, 1.5, int, object, str, list,
)  # fmt: skip


def altered(table: Any, chance: random.Random) -> Any:
    """Return the table with one item replaced, taken out or there twice, at any depth."""
    if not isinstance(table, tuple) or not table or chance.random() < 0.15:
        return chance.choice(_OTHERS)
    index = chance.randrange(len(table))
    match chance.randrange(8):
        case 0:
            return table[:index] + table[index + 1 :]
        case 1:
            return table[: index + 1] + table[index:]
        case _:
            return (*table[:index], altered(table[index], chance), *table[index + 1 :])
