"""The data model of a version's columns. The generator writes it (plans.py); kernels and Arrow arrays follow it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanColumn:
    """A column of a batch: the field of that name in every message that has it."""

    name: str
    kind: Literal["char", "bool", "int", "text", "bytes", "ints", "items", "cells"]
    """One character, a truth value, an integer, text, bytes; or a list: of integers, of items, of a row's values."""
    width: int = 0
    """The bytes of an integer, or of each one in a list; 1 for a character and a truth value."""
    signed: bool = False
    """Whether an integer is signed."""
    arrow: Literal["", "timestamp[us, UTC]"] = ""
    """The type of an integer in Arrow, where it is not an integer."""
    epoch: int = 0
    """The number that Arrow counts as zero, in the type's unit; it is added to the integer."""
    valued: bytes = b""
    """The kinds of a row's values that have bytes."""
    texts: bytes = b""
    """Those of them whose bytes are text."""
    fields: tuple[PlanColumn, ...] = ()
    """The fields of each item of a list."""
    expand: str = ""
    """The kernel's function that reads the items of a list."""
    path: str = ""
    """The path of one of a row's values in a message, with {} for its number: `new.cells[{}].value`."""

    @property
    def is_fixed(self) -> bool:
        """Whether the column's values have a fixed width, so that rows without a value take room too."""
        return self.kind in ("char", "bool", "int")

    @property
    def binary(self) -> bytes:
        """The kinds of a row's values that have bytes which are no text."""
        return bytes(kind for kind in self.valued if kind not in self.texts)

    @property
    def has_spans(self) -> bool:
        """True for texts, bytes, and lists other than rows."""
        return not self.is_fixed and self.kind != "cells"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePlan:
    """A message, with the columns that it has in some versions."""

    name: str
    tag: str
    since: int
    """The version that brought the message."""
    versions: tuple[int, ...]
    """The versions of sessions in which it has these columns."""
    columns: tuple[int, ...]
    """The numbers of its columns."""
    when: str = ""
    """The session fact without which the message is refused in versions before the one that brought it."""

    def version_in(self, version: int, facts: Mapping[str, bool]) -> int:
        """The version whose layout it has in a session: that of the session, or a later one that its facts let in."""
        is_later = self.since > version and (not self.when or facts[self.when])
        return self.since if is_later else version


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """The columns of a version and the messages that fill them."""

    version: int
    kernel: str
    """The module with the compiled kernel."""
    columns: tuple[PlanColumn, ...]
    """The columns of all versions: a column has one number in all kernels, so that they share functions."""
    sent: tuple[MessagePlan, ...]
    """The messages of the version."""

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The numbers of the version's own columns, in the order of its batches: as its messages have them."""
        return tuple(dict.fromkeys(number for message in self.sent for number in message.columns))

    @cached_property
    def messages(self) -> dict[int, MessagePlan]:
        """The messages by the byte of their tag."""
        return {ord(message.tag): message for message in self.sent}


def bit_of(facts: Iterable[str], fact: str) -> int:
    """Return the bit that stands for one session fact in an integer of all facts."""
    return 1 << tuple(facts).index(fact)
