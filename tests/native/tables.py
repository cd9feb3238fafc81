"""Tables with something else in one place."""

from __future__ import annotations

import array
import collections
import datetime
import enum
import functools
import random
import re
import signal
from typing import Any


class _Dict(dict[Any, Any]):
    """A class in Python whose base has a part in C."""


class _Number(int):
    """A class of integers."""


class _Failing(_Number):
    """A class of integers that cannot be made."""

    def __new__(cls, *arguments: Any) -> _Failing:
        raise ValueError("it cannot be made")


CLASSES: tuple[Any, ...] = (
    bool, int, object, str, bytes, list, type, complex, type(None), enum.IntEnum, enum.IntFlag, signal.Signals, _Dict, _Number,
    _Failing, functools.partial, re.Pattern, array.array, collections.deque, ExceptionGroup, datetime.datetime,
    *(type("_Subclass", (base,), {}) for base in (set, Exception, collections.deque, bytes, tuple, type, array.array)),
)  # fmt: skip
"""Classes that a table may have for a message or an integer."""
_OTHERS: tuple[Any, ...] = (
    None, -1, 0, 3, 7, 255, 256, 1 << 70, "", "text", b"", b"tu", (), (1,), ((1, 2),), True, 1.5, *CLASSES,
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
