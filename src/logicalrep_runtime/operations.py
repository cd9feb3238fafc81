"""Operations on bytes as data: the work of a reader or writer of messages, in the order of the documentation's rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    kind: ClassVar[str]

    name: str
    type: str = ""
    """The type in the documentation, such as `Int32 (Oid)`."""
    since: int = 1
    until: int = 0
    """The last protocol version with the row; 0 for the newest."""
    doc: str = ""

    @property
    def is_attribute(self) -> bool:
        """Whether the row is an attribute in Python. Constants and measures are not: they follow from other rows."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Integer(Operation):
    width: int
    order: Literal["big", "little"] = "big"
    signed: bool = False
    is_character: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Take(Integer):
    kind: ClassVar[str] = "take"

    allowed: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()
    flags: Mapping[int, str] = field(default_factory=dict, hash=False)
    """The masks with a name; other bits are legal too."""
    wrapper: Callable[[int], Any] | None = None
    """The value's class; None for a plain integer or a character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Integer):
    kind: ClassVar[str] = "constant"

    code: int
    is_length: bool = False

    @property
    def is_attribute(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure(Integer):
    """Takes the length in bytes or the number of items of a later operation, or of the message."""

    kind: ClassVar[str] = "measure"

    of: str = ""
    nullable: bool = False
    preceding: int = 0
    """The number of bytes before the message's measure (its tag), which the measure does not count."""

    @property
    def is_attribute(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Operation):
    kind: ClassVar[str] = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes(Operation):
    """Takes bytes: a measured number, a fixed number, or the rest of the message."""

    kind: ClassVar[str] = "bytes"

    count: str = ""
    size: int = 0
    """The fixed number of bytes; 0 if measured, or for the rest of the message."""
    nullable: bool = False
    """Whether the measure -1 means no value."""
    constant: bytes = b""
    """The only legal bytes; empty for any."""

    @property
    def is_attribute(self) -> bool:
        return not self.constant


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(Operation):
    kind: ClassVar[str] = "group"

    part: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose(Operation):
    kind: ClassVar[str] = "choose"

    part: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat(Operation):
    """Repeats an operation a measured number of times, until a zero byte, or until a constant comes next."""

    kind: ClassVar[str] = "repeat"

    count: str = ""
    """The measure's name; empty if a zero byte in place of an item ends the list."""
    end: bytes = b""
    """The constant after the list; empty for a measured list, and for a list until a zero byte."""
    body: Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditional(Operation):
    """Runs operations if a session fact holds, or if the next byte has one of the given values."""

    kind: ClassVar[str] = "conditional"

    fact: str = ""
    ahead: tuple[int, ...] = ()
    """The next byte's values; () for a fact."""
    body: tuple[Operation, ...]


Operations = tuple[Operation, ...]


def flat(operations: Operations) -> Iterator[Operation]:
    for operation in operations:
        if isinstance(operation, Conditional):
            yield from flat(operation.body)
        else:
            yield operation
