"""Layouts of messages and parts as plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from codegen.model.notation import Byte1, Byten, Int, PartName, Type
from codegen.model.places import Place

OUTSIDE = "outside"
"""The place of a message between blocks."""

ANYWHERE = "anywhere"
"""All places."""

UNTIL_ZERO = "until zero"
"""The `repeat` of items that a zero byte ends."""

UNTIL = "until "
"""The beginning of the `repeat` of items that the next row, a constant, ends."""

MESSAGE = "message"
"""The `measures` of a message's length, including itself and without the tag."""

REST = "rest"
"""The `size` of a Byten that takes the rest of the message."""


@dataclass(frozen=True)
class NamedType:
    """An integer type with a name in the documentation's parentheses, such as XLogRecPtr."""

    name: str
    base: str
    """Empty if invalid in the spec."""
    signed: bool
    path: str
    """The dotted path of the class in Python; `int` for none."""
    made_by: str
    """The dotted path of the function that converts the integer to the value; empty for none."""
    arrow: str
    """The Arrow type, if not an integer."""
    epoch: int
    """The number that Arrow counts as zero of the type."""
    values: Mapping[int, str]
    """The legal values and their names; empty for any."""
    doc: str
    place: Place = field(compare=False)

    @property
    def python(self) -> str:
        """The class's name."""
        return self.path.rpartition(".")[2]

    @property
    def maker(self) -> str:
        """The function's name."""
        return self.made_by.rpartition(".")[2]

    @property
    def constructor(self) -> str:
        """The function or enumeration that converts an integer to a value; empty for none."""
        return self.maker or (self.python if self.values else "")


@dataclass(frozen=True)
class Field:
    """A row of a layout with its modifiers (see spec/README.md)."""

    name: str
    type: Type
    place: Place = field(compare=False)
    doc: str = ""
    note: str = ""
    page_note: str = ""
    since: int = 1
    until: int | None = None
    when: str | None = None
    optional: bool = False
    measures: str | None = None
    may_be_null: bool = False
    any_character: bool = False
    printed_apart: bool = False
    replaces: bool = False
    """True if older versions have another row of that name: pages do not print the first version of such a row."""
    size: str | None = None
    repeat: str | None = None
    is_named: str | None = None
    looks_up: str | None = None
    printed_under: str | None = None
    printed_as: str = ""
    """The words of a page without tables that describe the row."""
    listed_in: str | None = None
    nonzero: bool = False
    boolean: bool = False
    holds_text: bool = False
    bits: Mapping[int, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    batch_column: str | None = None

    @property
    def column(self) -> str:
        """The name of the column in batches; for a part that is not repeated, the end of the name."""
        return self.batch_column or self.name

    @property
    def key(self) -> str:
        """The name, with the last version if another row of that name replaces this one."""
        return self.name if self.until is None else f"{self.name} until {self.until}"

    def is_in(self, version: int) -> bool:
        return self.since <= version and (self.until is None or version <= self.until)

    @property
    def constants(self) -> tuple[str | int | bytes, ...]:
        """The constants in the documentation; () if any value is legal."""
        if isinstance(self.type, Byte1):
            return self.type.constants
        if isinstance(self.type, Byten) and self.type.constant:
            return (self.type.constant,)
        if isinstance(self.type, Int) and self.type.constant is not None:
            return (self.type.constant,)
        return ()

    @property
    def is_constant(self) -> bool:
        """True if only one value is legal, so that it is not an attribute."""
        return len(self.constants) == 1

    @property
    def legal(self) -> tuple[str | int | bytes, ...]:
        """The legal values: constants, or characters with names; () for any."""
        if self.any_character:
            return ()
        return tuple(self.values) or self.constants

    @property
    def codes(self) -> tuple[int, ...]:
        """The legal values of an integer or character as numbers."""
        numbers = (value for value in self.legal if not isinstance(value, bytes))
        return tuple(ord(value) if isinstance(value, str) else value for value in numbers)

    @property
    def ended_by(self) -> str:
        """The constant that ends a list; empty for a counted list, and for a list until a zero byte."""
        is_until = self.repeat is not None and self.repeat.startswith(UNTIL) and self.repeat != UNTIL_ZERO
        return (self.repeat or "").removeprefix(UNTIL) if is_until else ""

    @property
    def is_character(self) -> bool:
        """True if the byte is a character: a tag, or a character with a name."""
        return bool(self.values) or (isinstance(self.type, Byte1) and (bool(self.constants) or self.any_character))

    @property
    def width(self) -> int:
        """The bytes of an integer or character; 0 for other types."""
        return self.type.width if isinstance(self.type, Int) else int(isinstance(self.type, Byte1))

    @property
    def is_leading(self) -> bool:
        """True if the rows after an integer or character have the same offset in all messages."""
        return self.width > 0 and self.repeat is None and self.when is None and not self.optional

    @property
    def named_type(self) -> str | None:
        """An integer's named type, from the documentation or from `is`."""
        if isinstance(self.type, Int) and self.type.name is not None:
            return self.type.name
        return self.is_named


@dataclass(frozen=True)
class Alternative:
    """A layout that a part may have, identified by its first field, a tag."""

    name: str
    doc: str
    note: str
    page_note: str
    since: int
    fields: tuple[Field, ...]
    place: Place = field(compare=False)

    @property
    def tag(self) -> str:
        """The tag's character."""
        return str(self.fields[0].constants[0])


@dataclass(frozen=True)
class Part:
    """A layout within messages or other parts: fields, or one of several alternatives."""

    name: str
    part_of: tuple[str, ...]
    ref: str | None
    doc: str
    note: str
    page_note: str
    fields: tuple[Field, ...]
    alternatives: tuple[Alternative, ...]
    place: Place = field(compare=False)
    since: int = 1
    """In a view, the first version with a message that contains the part."""


@dataclass(frozen=True)
class Message:
    """A message: its layout, legal places, and effects on the session."""

    name: str
    ref: str | None
    doc: str
    note: str
    page_note: str
    since: int
    also_since: int | None
    """The version before `since` from which on servers send the message nevertheless; None for none."""
    also_when: str | None
    release: int | None
    sender: str
    callbacks: tuple[str, ...]
    places: tuple[str, ...]
    opens: str | None
    closes: tuple[str, ...]
    """The blocks that the message closes, whichever is open."""
    when: str | None
    """The session fact, or the fact and its value, that distinguishes messages with the same tag."""
    sets: str | None
    clears: str | None
    tells_encoding: str | None
    """The setting and its field, and the field of the value: `client_encoding in name: setting`."""
    carries: tuple[str, ...]
    """The protocols of the message in the last field, in a replication session."""
    describes: str | None
    described_as: str
    """The described object in a sentence: a table."""
    transaction: str | None
    fields: tuple[Field, ...]
    place: Place = field(compare=False)

    @property
    def is_tagged(self) -> bool:
        """True if the message begins with a tag; session facts identify other messages."""
        return bool(self.fields) and self.fields[0].name == "tag"

    @property
    def tag(self) -> str:
        """The tag's character; empty for a message without a tag."""
        return str(self.fields[0].constants[0]) if self.is_tagged else ""

    @property
    def senders(self) -> tuple[str, ...]:
        """The sides that send the message."""
        return ("server", "client") if self.sender == "both" else (self.sender,)

    @property
    def encoding_fields(self) -> tuple[str, str, str]:
        """The field of a setting's name, the encoding's setting, and the field of its value."""
        setting, _, rest = str(self.tells_encoding).partition(" in ")
        name, _, value = rest.partition(": ")
        return name, setting, value

    def is_sent_in(self, version: int) -> bool:
        """Return whether servers send the message to clients of the version, perhaps only while `also_when` holds."""
        return version >= (self.also_since or self.since)


def distinguishing_offset(first: Message, second: Message) -> int | None:
    """Return the offset of the constant that distinguishes two messages of one place; None if they are ambiguous.

    Return -1 if they come under different values of a session fact.
    """
    if first.when != second.when and _fact(first) and _fact(first) == _fact(second):
        return -1
    offset = 0
    for row, same in zip(first.fields, second.fields, strict=False):
        if row.width != same.width or not (row.is_leading and same.is_leading):
            return None
        are_constant = row.is_constant and same.is_constant and row.measures is None
        if are_constant and row.constants != same.constants:
            return offset
        offset += row.width
    return None


def _fact(message: Message) -> str:
    return (message.when or "").partition(" = ")[0]


def parts_used(fields: tuple[Field, ...]) -> list[str]:
    """Return the names of the parts in a layout, in order."""
    return [row.type.name for row in fields if isinstance(row.type, PartName)]


def counted(fields: tuple[Field, ...], row: Field) -> Field | None:
    """Return the field whose length or number a row measures; None if the row measures none."""
    return next((other for other in fields if row.name in (other.size, other.repeat)), None)


def attributes(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """Return the fields that are attributes in Python: not constants and measures, which follow from other fields."""
    return tuple(row for row in fields if not row.is_constant and row.measures is None and counted(fields, row) is None)
