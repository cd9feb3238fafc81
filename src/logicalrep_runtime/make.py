"""Setters of the generated classes' attributes, for constructors and decoders, which have nothing to check.

A frozen dataclass sets each attribute by name through `object.__setattr__`; setting the slots themselves takes less
than half the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields


def setters(cls: type) -> tuple[Callable[[object, object], None], ...]:
    """Return the setters of the attributes of a slots dataclass, in their order."""
    return tuple(getattr(cls, field.name).__set__ for field in fields(cls))


def flags_of(name: str, flags: int | None, bits: Mapping[str, tuple[int, bool | None]]) -> int:
    """Return a field of flags, as it is given or made of its bits; ValueError where the two contradict each other.

    `bits` has each bit's number and value by its name; None where it is not given.
    """
    number = sum(bit for bit, value in bits.values() if value) if flags is None else flags
    for bit_name, (bit, value) in bits.items():
        if value is not None and bool(number & bit) is not bool(value):
            raise ValueError(f"{name}={flags} and {bit_name}={value} contradict each other")
    return number
