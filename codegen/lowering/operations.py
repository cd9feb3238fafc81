"""Operations on bytes: the generator's intermediate representation of a layout's rows.

Each operation has its row's name, for paths in errors. spec/README.md maps rows to operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from codegen.model.layouts import Part
from codegen.model.places import Place


@dataclass(frozen=True, kw_only=True)
class Operation:
    """The attributes common to all operations."""

    kind: ClassVar[str]

    name: str
    printed: str
    """The type in the documentation."""
    doc: str = ""
    remark: str = ""
    """The addition to the attribute's docstring: refused values, and the behaviour of servers."""
    column: str = ""
    """The name of the row's column in batches."""
    since: int = 1
    until: int = 0
    """The last version with the row; 0 for the newest."""
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
    """True if the byte is a character."""

    @property
    def letter(self) -> str:
        """The integer's letter in Python's `struct` module."""
        signed = "bhiq"[self.width.bit_length() - 1]
        return signed if self.signed else signed.upper()

    @property
    def construct(self) -> str:
        """The integer's name in construct."""
        return f"Int{8 * self.width}{'s' if self.signed else 'u'}{self.order[0]}"


@dataclass(frozen=True, kw_only=True)
class Take(Integer):
    """Takes an integer."""

    kind: ClassVar[str] = "take"

    allowed: tuple[int, ...] = ()
    """The legal values; () for any."""
    refused: tuple[int, ...] = ()
    """The illegal values, if all other values are legal."""
    members: Mapping[int, str] = field(default_factory=dict)
    """The enumeration's values by code; other values may be legal too."""
    flags: Mapping[int, str] = field(default_factory=dict)
    """The masks with names; other bits are legal too."""
    python: str = "int"
    """The value's type in Python."""
    wrapper: str = ""
    """The value's class, if any."""
    maker: str = ""
    """The function that converts the integer to the value; empty for none."""
    named: str = ""
    """The named type; empty for a plain integer."""
    scalar: str = ""
    """The class of the named type or of a truth value; empty for a plain integer."""

    @property
    def is_printed(self) -> bool:
        """True if the documentation prints the legal values; otherwise they are the behaviour of servers."""
        return self.is_character and not (self.members and self.allowed)

    @property
    def characters(self) -> str:
        """The legal characters."""
        return "".join(map(chr, self.allowed))


@dataclass(frozen=True, kw_only=True)
class Constant(Integer):
    """Takes an integer that is constant."""

    kind: ClassVar[str] = "constant"

    code: int
    is_length: bool = False
    """True if the constant is also the message's length."""

    @property
    def data(self) -> bytes:
        """The constant's bytes in a message."""
        return self.code.to_bytes(self.width, self.order, signed=self.signed)


@dataclass(frozen=True, kw_only=True)
class Measure(Integer):
    """Takes the length in bytes or the number of items of a later operation."""

    kind: ClassVar[str] = "measure"

    of: str
    """The measured operation; empty for the message, from the measure on."""
    nullable: bool = False
    """True if -1 means that the operation has no value."""
    preceding: int = 0
    """The number of bytes before a message's measure (its tag), which the measure does not count."""


@dataclass(frozen=True, kw_only=True)
class Text(Operation):
    """Takes text up to a zero byte."""

    kind: ClassVar[str] = "text"


@dataclass(frozen=True, kw_only=True)
class Bytes(Operation):
    """Takes bytes: a measured number, a fixed number, or the rest of the message."""

    kind: ClassVar[str] = "bytes"

    count: str = ""
    """The measure; empty for the rest of the message."""
    size: int = 0
    """The fixed number of bytes; 0 if measured, or for the rest of the message."""
    nullable: bool = False
    """True if the measure -1 means no value."""
    is_text: bool = False
    """True if the bytes are text in the session's encoding; Python has them as bytes."""
    constant: bytes = b""
    """The only legal bytes; empty for any."""


@dataclass(frozen=True, kw_only=True)
class Group(Operation):
    """Runs the operations of a part."""

    kind: ClassVar[str] = "group"

    part: Part


@dataclass(frozen=True, kw_only=True)
class Choose(Operation):
    """Runs the operations of the part's case that begins with the next integer."""

    kind: ClassVar[str] = "choose"

    part: Part
    tag: Take
    cases: Mapping[int, tuple[Operation, ...]]
    """The operations after the tag, by the tag's value."""

    @property
    def header(self) -> int:
        """The number of bytes before a value: the tag and the measure."""
        return self.tag.width + (self.measure.width if self.measure is not None else 4)

    @property
    def valued(self) -> str:
        """The tags of cases with a value."""
        return "".join(chr(code) for code, body in self.cases.items() if body)

    @property
    def bare(self) -> str:
        """The tags of cases without a value."""
        return "".join(chr(code) for code, body in self.cases.items() if not body)

    @property
    def texts(self) -> str:
        """The tags of cases with text."""
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
    """Repeats an operation a measured number of times, until a zero byte, or until a constant comes next."""

    kind: ClassVar[str] = "repeat"

    count: str
    """The measure; empty if a zero byte in place of an item ends the list."""
    end: bytes = b""
    """The constant after the list, in place of an item; empty for a measured list, and for a list until a zero byte."""
    body: Operation

    @property
    def repeats(self) -> str:
        """The kind of the repeated operation."""
        return self.body.kind


@dataclass(frozen=True, kw_only=True)
class Conditional(Operation):
    """Runs operations if a session fact holds, or if the next byte has one of the given values."""

    kind: ClassVar[str] = "conditional"

    fact: str = ""
    ahead: tuple[int, ...] = ()
    body: tuple[Operation, ...]


Operations = tuple[Operation, ...]


def flat(operations: Operations) -> Iterator[Operation]:
    """Yield the operations of rows, in order."""
    for operation in operations:
        if isinstance(operation, Conditional):
            yield from flat(operation.body)
        else:
            yield operation


def is_attribute(operation: Operation) -> bool:
    """Return whether a row is an attribute in Python. Constants and measures are not."""
    return not isinstance(operation, Measure) and not is_constant(operation)


def is_constant(operation: Operation) -> bool:
    """Return whether a row is a constant: an integer, a character or bytes."""
    return isinstance(operation, Constant) or (isinstance(operation, Bytes) and bool(operation.constant))


def attributes(operations: Operations) -> Operations:
    """Return the operations whose rows are attributes in Python."""
    return tuple(filter(is_attribute, flat(operations)))


def measured(operations: Operations, operation: Operation) -> Operation:
    """Return the operation that a measure measures."""
    assert isinstance(operation, Measure)
    return next(other for other in flat(operations) if other.name == operation.of)


def renamed(operations: Operations, rename: Callable[[str], str]) -> Operations:
    """Return the operations with other names, also in references."""
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
