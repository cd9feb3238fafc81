"""The data model of a version's columns. The generator writes it (plans.py); walks and Arrow arrays follow it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanColumn:
    """A column of a batch: the field `name` of every message that has it."""

    name: str
    kind: Literal["char", "bool", "int", "text", "bytes", "ints", "items", "cells"]
    """One character, a truth value, an integer, text, bytes; or a list: of integers, of items, of a row's values."""
    width: int = 0
    """The bytes of an integer or of a list's integers; 1 for a character and a truth value."""
    signed: bool = False
    arrow: Literal["", "timestamp[us, UTC]"] = ""
    epoch: int = 0
    """The number to add to the integer for Arrow's epoch, in the type's unit."""
    valued: bytes = b""
    texts: bytes = b""
    fields: tuple[PlanColumn, ...] = ()
    path: str = ""
    """For cells, the path of a value in errors; for a field of a list's items, its attribute in Python."""

    @property
    def is_fixed(self) -> bool:
        """Whether the values have a fixed width, so that rows without a value take memory too."""
        return self.kind in ("char", "bool", "int")

    @property
    def binary(self) -> bytes:
        return bytes(kind for kind in self.valued if kind not in self.texts)

    @property
    def has_spans(self) -> bool:
        """True for texts, bytes, and lists other than rows."""
        return not self.is_fixed and self.kind != "cells"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePlan:
    name: str
    tag: str
    since: int
    versions: tuple[int, ...]
    """The session versions where the message has these columns."""
    columns: Mapping[str, int]
    """The number of each column by the path of its attribute in Python; for cells, the object with kinds and values."""
    when: str = ""
    """The session fact without which versions before `since` refuse the message."""

    def layout_version(self, version: int, facts: Mapping[str, bool]) -> int:
        """Return the version of the message's layout: `version`, or `since` if the facts allow a later message."""
        is_later = self.since > version and (not self.when or facts[self.when])
        return self.since if is_later else version


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    version: int
    walk: str
    """The digest of the native walk: `logicalrep-native` has the walk if it lists this digest."""
    columns: tuple[PlanColumn, ...]
    sent: tuple[MessagePlan, ...]

    @cached_property
    def order(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(number for message in self.sent for number in message.columns.values()))

    @cached_property
    def messages(self) -> dict[int, MessagePlan]:
        return {ord(message.tag): message for message in self.sent}


def bit_of(facts: Iterable[str], fact: str) -> int:
    return 1 << tuple(facts).index(fact)
