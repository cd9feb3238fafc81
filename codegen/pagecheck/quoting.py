"""How a difference quotes the page and the spec."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.pagecheck.expected import ExpectedBoundary, ExpectedRow
from codegen.pagecheck.page import Block, Message, Row
from codegen.pagecheck.remarks import BlockKind, Condition
from codegen.spec.model import Place

NOTHING = "nothing"

_TABLE_OF: dict[BlockKind, str] = {
    "each": "the table that follows is there for each",
    "one of": "one of the tables that follow is there for each",
    "or": "another of these tables",
}


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """One place where the page and the spec differ."""

    page: Place
    spec: Place
    what: str
    printed: str
    specified: str

    def __str__(self) -> str:
        return f"{self.page}: {self.what}: the page has {self.printed}; {self.spec} has {self.specified}"


def quoted(text: str) -> str:
    """A text of the page or the spec."""
    return f'"{text}"'


def name_of(message: Message) -> str:
    """A message's name as printed."""
    if message.name is None:
        return "a message without a name"
    return quoted(f"{message.name} ({message.direction})" if message.direction else message.name)


def nothing_beside(side: str, quotation: str) -> str:
    """What the page lacks, by what it has before or after it."""
    return f"{NOTHING} {side} {quotation}"


def direction(letter: str | None) -> str:
    """The letter after a message's name."""
    return f'"({letter})" after the name' if letter else "no letter after the name"


def since(version: int | None) -> str:
    """The remark since which version something is there."""
    return quoted(f"since protocol version {version}") if version and version > 1 else 'no "since protocol version"'


def printed_condition(condition: Condition | None) -> str:
    """The condition of a row or table on the page."""
    return quoted(condition.text) if condition else "no condition"


def specified_condition(wanted: ExpectedRow | ExpectedBoundary) -> str:
    """The condition of a field in the spec."""
    field = wanted.field
    if field.when is not None:
        return quoted(f"when: {field.when}")
    if field.optional:
        return quoted("optional: true")
    return quoted(str(field.type)) if wanted.condition else "no condition"


def printed_repeat(each: str | None) -> str:
    """What a row or table is repeated for."""
    return quoted(f"for each {each}") if each else "no repetition"


def specified_repeat(counter: str | None) -> str:
    """The field that counts the repetitions."""
    return quoted(f"repeat: {counter}") if counter else "no repetition"


def specified_values(wanted: ExpectedRow) -> str:
    """The values that a field can have in the spec."""
    if wanted.field.boolean:
        return quoted("boolean: true")
    return quoted("bits: " + ", ".join(f"{bit}: {name}" for bit, name in wanted.field.bits.items()))


def row(found: Row) -> str:
    """A whole row of the page."""
    words = [quoted(found.type) if found.type else "a row whose type is cut off"]
    if found.since:
        words.append(since(found.since))
    if found.condition:
        words.append(quoted(found.condition.text))
    return ", ".join(words)


def block(found: Block) -> str:
    """The text that introduces a table of the page."""
    return quoted(found.text) if found.text else "a table without a text above it"


def expected_row(wanted: ExpectedRow, *, plain: bool) -> str:
    """A whole row that the page lacks."""
    words = [quoted(wanted.plain_type if plain else wanted.type)]
    if wanted.since:
        words.append(since(wanted.since))
    if wanted.condition:
        words.append(specified_condition(wanted))
    return ", ".join(words)


def expected_boundary(wanted: ExpectedBoundary) -> str:
    """A text that the page ought to have above a table."""
    words = _TABLE_OF[wanted.kind]
    return f"{words} {wanted.each.removesuffix('_count')}" if wanted.each else words
