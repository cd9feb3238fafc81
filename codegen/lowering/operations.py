"""The operations that the rows of a layout come to: all that back ends know of them.

Each names its row, for the paths and the words of errors. spec/README.md says which row comes to which operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from codegen.spec.layouts import Part
from codegen.spec.places import Place


@dataclass(frozen=True, kw_only=True)
class Operation:
    """The row that it comes from, and how it is told to people."""

    kind: ClassVar[str]

    name: str
    printed: str
    """The type as the documentation prints it."""
    doc: str = ""
    remark: str = ""
    """The addition to the attribute's docstring: what the operation refuses, and what servers do."""
    column: str = ""
    """The name of its column in batches."""
    since: int = 1
    until: int = 0
    """The last version that has it; 0 for the newest."""
    place: Place = field(compare=False)


@dataclass(frozen=True, kw_only=True)
class Integer(Operation):
    """An integer of a fixed width."""

    width: int
    """Bytes."""
    order: Literal["big", "little"] = "big"
    """The order of the bytes."""
    signed: bool
    is_character: bool = False
    """True if its byte stands for a character."""

    @property
    def letter(self) -> str:
        """Its letter in Python's `struct` module."""
        signed = "bhiq"[self.width.bit_length() - 1]
        return signed if self.signed else signed.upper()

    @property
    def construct(self) -> str:
        """Its name in construct."""
        return f"Int{8 * self.width}{'s' if self.signed else 'u'}{self.order[0]}"


@dataclass(frozen=True, kw_only=True)
class Take(Integer):
    """Takes an integer."""

    kind: ClassVar[str] = "take"

    allowed: tuple[int, ...] = ()
    """The only values that are legal; () where any is."""
    refused: tuple[int, ...] = ()
    """The values that are illegal where all others are legal."""
    members: Mapping[int, str] = field(default_factory=dict)
    """The values with names, of which there is an enumeration; others may be legal too."""
    flags: Mapping[int, str] = field(default_factory=dict)
    """The masks with names; other bits are kept."""
    python: str = "int"
    """The type of the value in Python."""
    wrapper: str = ""
    """The class of the value, if it is one of its own."""
    maker: str = ""
    """The function that makes the value of an integer that was read; empty where it is the integer."""
    named: str = ""
    """The named type; empty for a plain integer."""
    scalar: str = ""
    """The class of the named type or of a truth value; empty for a plain integer."""

    @property
    def is_printed(self) -> bool:
        """True if the documentation itself prints what is legal; otherwise that is what servers do."""
        return self.is_character and not (self.members and self.allowed)

    @property
    def characters(self) -> str:
        """The characters that are legal."""
        return "".join(map(chr, self.allowed))


@dataclass(frozen=True, kw_only=True)
class Constant(Integer):
    """Takes an integer that is always the same."""

    kind: ClassVar[str] = "constant"

    code: int
    is_length: bool = False
    """True if it is the length of the message too."""


@dataclass(frozen=True, kw_only=True)
class Measure(Integer):
    """Takes the length in bytes or the number of items of a later operation."""

    kind: ClassVar[str] = "measure"

    of: str
    """The operation; empty for the message itself, from the measure on."""
    nullable: bool = False
    """True if -1 says that the operation has no value."""
    preceding: int = 0
    """The bytes before the measure of a message, its tag, which it does not count."""


@dataclass(frozen=True, kw_only=True)
class Text(Operation):
    """Takes text up to a zero byte."""

    kind: ClassVar[str] = "text"


@dataclass(frozen=True, kw_only=True)
class Bytes(Operation):
    """Takes bytes: as many as a measure says, a fixed number, or all that are left."""

    kind: ClassVar[str] = "bytes"

    count: str = ""
    """The measure; empty for all that are left."""
    size: int = 0
    """The fixed number of bytes; 0 where they are as many as the measure says, or all that are left."""
    nullable: bool = False
    """True if the measure -1 stands for no value."""
    is_text: bool = False
    """True if they are text in the session's encoding, which stays bytes in Python."""


@dataclass(frozen=True, kw_only=True)
class Group(Operation):
    """Goes through the operations of a part."""

    kind: ClassVar[str] = "group"

    part: Part


@dataclass(frozen=True, kw_only=True)
class Choose(Operation):
    """Chooses operations by the value of the first integer, which tells the cases of a part apart."""

    kind: ClassVar[str] = "choose"

    part: Part
    tag: Take
    cases: Mapping[int, tuple[Operation, ...]]
    """The operations after the tag, by its value."""

    @property
    def header(self) -> int:
        """The bytes before a value: the tag and the measure."""
        return self.tag.width + (self.measure.width if self.measure is not None else 4)

    @property
    def valued(self) -> str:
        """The tags of the cases that hold a value."""
        return "".join(chr(code) for code, body in self.cases.items() if body)

    @property
    def bare(self) -> str:
        """The tags of those that are nothing but a tag."""
        return "".join(chr(code) for code, body in self.cases.items() if not body)

    @property
    def texts(self) -> str:
        """The tags of those that hold text."""
        return "".join(
            chr(code)
            for code, body in self.cases.items()
            if any(isinstance(operation, Bytes) and operation.is_text for operation in body)
        )

    @property
    def value(self) -> str:
        """The name of the values; empty if there are none."""
        return next((body[-1].name for body in self.cases.values() if body), "")

    @property
    def measure(self) -> Measure | None:
        """The first measure of a value."""
        return next(
            (operation for body in self.cases.values() for operation in body if isinstance(operation, Measure)), None
        )

    @property
    def letter(self) -> str:
        """The letter of a value's measure in Python's `struct` module."""
        return self.measure.letter if self.measure is not None else "i"


@dataclass(frozen=True, kw_only=True)
class Repeat(Operation):
    """Repeats an operation as often as a measure says, or until a zero byte ends the items."""

    kind: ClassVar[str] = "repeat"

    count: str
    """The measure; empty where a zero byte in place of an item ends them."""
    body: Operation

    @property
    def repeats(self) -> str:
        """The kind of what is repeated."""
        return self.body.kind


@dataclass(frozen=True, kw_only=True)
class Conditional(Operation):
    """Goes on with some operations if a session fact holds, or if the next byte is one of some values."""

    kind: ClassVar[str] = "conditional"

    fact: str = ""
    ahead: tuple[int, ...] = ()
    body: tuple[Operation, ...]


Operations = tuple[Operation, ...]


def flat(operations: Operations) -> Iterator[Operation]:
    """Every operation that stands for a row of its own, in the order of the rows."""
    for operation in operations:
        if isinstance(operation, Conditional):
            yield from flat(operation.body)
        else:
            yield operation


def is_attribute(operation: Operation) -> bool:
    """Return whether a row is an attribute in Python: constants and measures follow from the others."""
    return not isinstance(operation, Constant | Measure)


def attributes(operations: Operations) -> Operations:
    """The operations whose rows are attributes in Python."""
    return tuple(filter(is_attribute, flat(operations)))


def measured(operations: Operations, operation: Operation) -> Operation:
    """The operation that a measure is of."""
    assert isinstance(operation, Measure)
    return next(other for other in flat(operations) if other.name == operation.of)


def renamed(operations: Operations, rename: Callable[[str], str]) -> Operations:
    """The same operations by other names, wherever one names another."""
    names = {operation.name: rename(operation.name) for operation in flat(operations)}
    return tuple(_renamed(operation, names) for operation in operations)


def _renamed(operation: Operation, names: Mapping[str, str]) -> Operation:
    name = names.get(operation.name, operation.name)
    if isinstance(operation, Conditional):
        return replace(operation, name=name, body=tuple(_renamed(other, names) for other in operation.body))
    if isinstance(operation, Measure):
        return replace(operation, name=name, of=names.get(operation.of, operation.of))
    if isinstance(operation, Bytes):
        return replace(operation, name=name, count=names.get(operation.count, operation.count))
    if isinstance(operation, Repeat):
        body = replace(operation.body, name=name)
        return replace(operation, name=name, count=names.get(operation.count, operation.count), body=body)
    return replace(operation, name=name)
