"""Damaged messages: attributes that do not fit their rows, and mutated bytes."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping
from typing import Any

_UNFITTING: list[tuple[type, list[Any]]] = [
    (bool, [2, -1, None, "x"]),
    (int, [-1, 0, 255, 256, 1 << 15, 1 << 31, 1 << 32, 1 << 63, 1 << 64, None, "1", 1.5]),
    (str, ["", "\0", "a\0b", "Q", "QQ", "é", "Ā", "\ud800", None, 5, b"x"]),
    (bytes, [b"", b"?", b"xx", None, "x", 5]),
    (tuple, [(), None, 5, (None,), ("a\0",), (b"",), (1 << 70,)]),
]
"""Values in place of a value of a type."""


def alter_attribute(value: Any, layouts: dict[str, Any], facts: Mapping[str, Any], draw: random.Random) -> Any:
    """Return a message or part with another value of one attribute; None if no attribute can be altered.

    Whether an attribute is present decides its session fact, so an absent one stays absent, and the reverse.
    """
    conditions = {next(iter(row)): row.get("when") for row in layouts[type(value).__name__]["fields"]}
    values = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    names = [name for name in values if values[name] is not None or conditions.get(name) not in facts]
    if not names:
        return None
    name = draw.choice(names)
    old = values[name]
    if dataclasses.is_dataclass(old) and draw.random() < 0.7:
        if (new := alter_attribute(old, layouts, {}, draw)) is None:
            return None
    else:
        odd = next((odd for kind, odd in _UNFITTING if isinstance(old, kind)), [None, 5, "x", b"x"])
        new = draw.choice([other for other in odd if other is not None or conditions.get(name) not in facts])
    return type(value)(**values | {name: new})


def mutate_bytes(data: bytes, draw: random.Random) -> bytes:
    """Return a message's bytes cut, extended, or with other bytes at one place."""
    kind, at = draw.randrange(5), draw.randrange(len(data))
    changed = draw.choice([0, 1, 2, 127, 128, 255, *b"ABCKLNOP", draw.randrange(256)])
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data + draw.randbytes(draw.randint(1, 3))
    if kind == 2:
        return data[:at] + data[at + 1 :]
    if kind == 3 and at:
        return data[: at - 1] + (b"\xff" * 8)[: len(data) - at + 1] + data[at + 7 :]
    return data[:at] + bytes((changed,)) + data[at + 1 :]
