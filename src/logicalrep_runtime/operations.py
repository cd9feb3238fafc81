"""Operations on bytes as data: all that a reader or writer of messages does, in the order of the documentation's rows.

The generator makes them of the rows of spec/. Each names its row, for the paths and the words of errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """The attributes that all operations have."""

    kind: ClassVar[str]

    name: str
    """The name of the row."""
    type: str = ""
    """The type as the documentation prints it, `Int32 (Oid)` for example."""
    since: int = 1
    """The protocol version that brought it."""
    until: int = 0
    """The last protocol version that has it; 0 for the newest."""
    doc: str = ""

    @property
    def is_attribute(self) -> bool:
        """Whether the row is an attribute in Python: constants and measures follow from the others."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Integer(Operation):
    """An integer of a fixed width."""

    width: int
    """Bytes."""
    order: Literal["big", "little"] = "big"
    """The order of the bytes."""
    signed: bool = False
    is_character: bool = False
    """Whether its byte stands for a character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Take(Integer):
    """Takes an integer."""

    kind: ClassVar[str] = "take"

    allowed: tuple[int, ...] = ()
    """The only values that are legal; () where any is."""
    refused: tuple[int, ...] = ()
    """The values that are illegal where all others are legal."""
    flags: Mapping[int, str] = field(default_factory=dict, hash=False)
    """The masks that have a name; other bits are legal."""
    wrapper: Callable[[int], Any] | None = None
    """The class of the value; None for a plain integer or a character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Integer):
    """Takes an integer that is always the same."""

    kind: ClassVar[str] = "constant"

    code: int
    is_length: bool = False
    """Whether it is the length of the message too."""

    @property
    def is_attribute(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure(Integer):
    """Takes the length in bytes or the number of items of a later operation, or of the message."""

    kind: ClassVar[str] = "measure"

    of: str = ""
    """The operation; empty for the message itself, from the measure on."""
    nullable: bool = False
    """Whether -1 says that the operation has no value."""
    preceding: int = 0
    """The bytes of a message before its measure, its tag, which the measure does not count."""

    @property
    def is_attribute(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Operation):
    """Takes text up to a zero byte."""

    kind: ClassVar[str] = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes(Operation):
    """Takes bytes: as many as a measure says, a fixed number, or all that are left."""

    kind: ClassVar[str] = "bytes"

    count: str = ""
    """The measure; empty for all that are left."""
    size: int = 0
    """The fixed number of bytes; 0 where they are as many as the measure says, or all that are left."""
    nullable: bool = False
    """Whether the measure -1 stands for no value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(Operation):
    """Goes through the operations of a part."""

    kind: ClassVar[str] = "group"

    part: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose(Operation):
    """Goes through the operations of that alternative of a part which begins with the next byte."""

    kind: ClassVar[str] = "choose"

    part: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat(Operation):
    """Repeats an operation as often as a measure says, or until a zero byte ends the items."""

    kind: ClassVar[str] = "repeat"

    count: str = ""
    """The measure; empty where a zero byte in place of an item ends them."""
    body: Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditional(Operation):
    """Goes on with some operations if a session fact holds, or if the next byte is one of some values."""

    kind: ClassVar[str] = "conditional"

    fact: str = ""
    ahead: tuple[int, ...] = ()
    """The values; () for a fact."""
    body: tuple[Operation, ...]


Operations = tuple[Operation, ...]


def flat(operations: Operations) -> Iterator[Operation]:
    """Yield the operations that stand for rows, in the order of the documentation's table."""
    for operation in operations:
        if isinstance(operation, Conditional):
            yield from flat(operation.body)
        else:
            yield operation
