"""The layouts of messages and their parts as plain frozen data: rows, and what is said of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from codegen.spec.notation import Byte1, Int, PartName, Type
from codegen.spec.places import Place

OUTSIDE = "outside"
"""The place of a message between blocks."""

ANYWHERE = "anywhere"
"""All places."""

UNTIL_ZERO = "until zero"
"""The count of items that a zero byte ends."""

MESSAGE = "message"
"""The length of a message, with itself and without the tag."""

REST = "rest"
"""The size of a Byten that takes all bytes that are left."""


@dataclass(frozen=True)
class NamedType:
    """An integer type that the documentation names in parentheses, such as XLogRecPtr."""

    name: str
    base: str
    """Empty where the spec has a mistake there."""
    signed: bool
    path: str
    """The dotted path of its class in Python; `int` for one without."""
    made_by: str
    """The dotted path of the function that makes the value of an integer; empty where it is the integer."""
    arrow: str
    """The name of its type in Arrow, where that is not an integer."""
    epoch: int
    """The number that Arrow counts as zero of the type."""
    values: Mapping[int, str]
    """The only values that are legal, with their names; empty where any is."""
    doc: str
    place: Place = field(compare=False)

    @property
    def python(self) -> str:
        """The name of the class."""
        return self.path.rpartition(".")[2]

    @property
    def maker(self) -> str:
        """The name of the function."""
        return self.made_by.rpartition(".")[2]

    @property
    def constructor(self) -> str:
        """The function or enumeration that makes a value; empty where it is the integer."""
        return self.maker or (self.python if self.values else "")


@dataclass(frozen=True)
class Field:
    """One row of a layout, and the modifiers beneath it (spec/README.md explains each)."""

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
    """True if older versions have another row of the name, so that no page says since when there is one."""
    size: str | None = None
    repeat: str | None = None
    is_named: str | None = None
    looks_up: str | None = None
    printed_under: str | None = None
    listed_in: str | None = None
    nonzero: bool = False
    boolean: bool = False
    holds_text: bool = False
    bits: Mapping[int, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    batch_column: str | None = None

    @property
    def column(self) -> str:
        """The name of its column in batches; within a part that is there once, the end of the name."""
        return self.batch_column or self.name

    @property
    def key(self) -> str:
        """The name, and the last version of a row that another of the same name replaces."""
        return self.name if self.until is None else f"{self.name} until {self.until}"

    def is_in(self, version: int) -> bool:
        """Return whether a version has the row."""
        return self.since <= version and (self.until is None or version <= self.until)

    @property
    def constants(self) -> tuple[str | int, ...]:
        """The constants that the documentation prints; () where any value is legal."""
        if isinstance(self.type, Byte1):
            return self.type.constants
        if isinstance(self.type, Int) and self.type.constant is not None:
            return (self.type.constant,)
        return ()

    @property
    def is_constant(self) -> bool:
        """True if only one value is legal, so that nobody needs to be told it."""
        return len(self.constants) == 1

    @property
    def legal(self) -> tuple[str | int, ...]:
        """The only values that are legal: constants, or the characters with names; () where any value is."""
        if self.any_character:
            return ()
        return tuple(self.values) or self.constants

    @property
    def codes(self) -> tuple[int, ...]:
        """The same as numbers."""
        return tuple(ord(value) if isinstance(value, str) else value for value in self.legal)

    @property
    def is_character(self) -> bool:
        """True if its byte stands for a character: a tag, or one of several with names."""
        return bool(self.values) or (isinstance(self.type, Byte1) and (bool(self.constants) or self.any_character))

    @property
    def width(self) -> int:
        """The bytes of an integer or character; 0 for what has no such width."""
        return self.type.width if isinstance(self.type, Int) else int(isinstance(self.type, Byte1))

    @property
    def named_type(self) -> str | None:
        """The named type of an integer, printed by the documentation or added by `is`."""
        if isinstance(self.type, Int) and self.type.name is not None:
            return self.type.name
        return self.is_named


@dataclass(frozen=True)
class Alternative:
    """One of the layouts that a part may have; its first field, a tag, tells which."""

    name: str
    doc: str
    note: str
    page_note: str
    since: int
    fields: tuple[Field, ...]
    place: Place = field(compare=False)

    @property
    def tag(self) -> str:
        """The character that it begins with."""
        return str(self.fields[0].constants[0])


@dataclass(frozen=True)
class Part:
    """A layout without a tag that messages or other parts contain: fields, or one of several alternatives."""

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
    """The version, in a view, that brought the first message with the part in it."""


@dataclass(frozen=True)
class Message:
    """A message: its layout, where it may stand, and what it changes."""

    name: str
    ref: str | None
    doc: str
    note: str
    page_note: str
    since: int
    also_since: int | None
    """The lowest version before `since` that servers send it to all the same; None for none."""
    also_when: str | None
    release: int | None
    sender: str
    callbacks: tuple[str, ...]
    places: tuple[str, ...]
    opens: str | None
    closes: tuple[str, ...]
    """The blocks of which it ends the one that is open."""
    when: str | None
    """The session fact, or the fact and its value, without which it is another message with the same tag."""
    sets: str | None
    clears: str | None
    tells_encoding: str | None
    """The setting and its field, and the field with its value: `client_encoding in name: setting`."""
    carries: str | None
    """The protocol whose message its last field is, in a session that replicates."""
    describes: str | None
    described_as: str
    """The thing that it describes in a sentence: a table."""
    transaction: str | None
    fields: tuple[Field, ...]
    place: Place = field(compare=False)

    @property
    def is_tagged(self) -> bool:
        """True if the message begins with a tag; others are told by what a session waits for."""
        return bool(self.fields) and self.fields[0].name == "tag"

    @property
    def tag(self) -> str:
        """The character that the message begins with; empty for one without a tag."""
        return str(self.fields[0].constants[0]) if self.is_tagged else ""

    @property
    def senders(self) -> tuple[str, ...]:
        """The sides that send it."""
        return ("server", "client") if self.sender == "both" else (self.sender,)

    @property
    def encoding_fields(self) -> tuple[str, str, str]:
        """The field that names a setting, the setting that is the encoding, and the field with its value."""
        setting, _, rest = str(self.tells_encoding).partition(" in ")
        name, _, value = rest.partition(": ")
        return name, setting, value

    def comes_in(self, version: int) -> bool:
        """Return whether servers send it to clients of the version, be it only while `also_when` holds."""
        return version >= (self.also_since or self.since)


def told_apart(first: Message, second: Message) -> int | None:
    """Return the number of bytes before what tells two messages of one tag apart; None if nothing does.

    The number is -1 for two that come when a session waits for something else, else the offset of a constant.
    """
    if first.when != second.when:
        return -1
    offset = 0
    for row, same in zip(first.fields, second.fields, strict=False):
        if row.width != same.width or not row.width or row.repeat is not None:
            return None
        are_constant = row.is_constant and same.is_constant and row.measures is None
        if are_constant and row.constants != same.constants:
            return offset
        offset += row.width
    return None


def parts_used(fields: tuple[Field, ...]) -> list[str]:
    """The names of the parts that a layout contains, in order."""
    return [row.type.name for row in fields if isinstance(row.type, PartName)]


def counted(fields: tuple[Field, ...], row: Field) -> Field | None:
    """The field whose length or number a row says; None if it says none."""
    return next((other for other in fields if row.name in (other.size, other.repeat)), None)


def attributes(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """The fields that are attributes in Python: no constants, lengths and numbers, which follow from the others."""
    return tuple(row for row in fields if not row.is_constant and row.measures is None and counted(fields, row) is None)
