"""What a version's columns are: data that the generator writes (plans.py), and that kernels and Arrow are driven by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a batch: the field of that name in every message that has it."""

    name: str
    kind: Literal["char", "bool", "int", "text", "bytes", "ints", "items", "cells"]
    """One character, a truth value, an integer, text, bytes; a list of integers, of items, of a row's values."""
    width: int = 0
    """The bytes of an integer, of each in a list of them; 1 for a character and a truth value."""
    signed: bool = False
    """Whether an integer is signed."""
    scalar: str = ""
    """The named type of an integer: Lsn, TimestampTz, TransactionId, Oid."""
    valued: bytes = b""
    """The kinds of a row's values that have bytes."""
    fields: tuple[Column, ...] = ()
    """What each item of a list has."""
    part: str = ""
    """The part that each item of a list is."""
    place: int = 0
    """Of a field of items, where the kernel puts it in a block: behind fields of so many bytes for each item."""

    @property
    def is_fixed(self) -> bool:
        """Whether a value of it has a fixed width, so that rows without one take room too."""
        return self.kind in ("char", "bool", "int")


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePlan:
    """A message of a version."""

    name: str
    version: int
    """The version whose layout it has: the session's, or a later one's where `when` lets it in."""
    columns: Mapping[str, int]
    """For each field that is a column, the column's number."""
    when: str = ""
    """The session fact without which it is refused."""
    sets: str = ""
    """The session fact that is true from here on."""
    clears: str = ""
    """The session fact that is false from here on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """The columns of a version and the messages that fill them."""

    version: int
    kernel: str
    """The module with the compiled kernel."""
    columns: tuple[Column, ...]
    messages: Mapping[int, MessagePlan]
    """By the byte of the tag."""


def bit_of(facts: Iterable[str], fact: str) -> int:
    """The bit that stands for one of all session facts where they are one integer."""
    return 1 << tuple(facts).index(fact)
