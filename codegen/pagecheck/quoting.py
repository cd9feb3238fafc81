"""Quotations of the page and the spec in differences."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.model.places import Place
from codegen.pagecheck.expected import ExpectedBoundary, ExpectedRow
from codegen.pagecheck.page import Block, Message, Row
from codegen.pagecheck.remarks import BlockKind

NOTHING = "nothing"

_TABLE_OF: dict[BlockKind, str] = {
    "each": "the table that follows is there for each",
    "until zero": "a zero byte ends the tables that follow, one for each",
    "after": "fields that follow the last of these tables",
    "one of": "one of the tables that follow is there for each",
    "or": "another of these tables",
}


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """A difference between the page and the spec."""

    page: Place
    spec: Place
    what: str
    printed: str
    specified: str

    def __str__(self) -> str:
        return f"{self.page}: {self.what}: the page has {self.printed}; {self.spec} has {self.specified}"


def quoted(text: str) -> str:
    return f'"{text}"'


def name_of(message: Message) -> str:
    """Return a message's name as printed."""
    if message.name is None:
        return "a message without a name"
    return quoted(f"{message.name} ({message.direction})" if message.direction else message.name)


def nothing_beside(side: str, quotation: str) -> str:
    """Return a description of a missing row by its neighbour on the page."""
    return f"{NOTHING} {side} {quotation}"


def direction(letter: str | None) -> str:
    """Return a description of the letter after a message's name."""
    return f'"({letter})" after the name' if letter else "no letter after the name"


def since(version: int | None) -> str:
    """Return the remark on the first version."""
    return quoted(f"since protocol version {version}") if version and version > 1 else 'no "since protocol version"'


def printed_remarks(element: Row | Block) -> tuple[str, str, str]:
    """Return the page's remarks on a row or table: version, condition and repetition."""
    condition = quoted(element.condition.text) if element.condition else "no condition"
    return (
        since(element.since),
        condition,
        quoted(f"for each {element.repeated_for}") if element.repeated_for else "no repetition",
    )


def specified_remarks(wanted: ExpectedRow | ExpectedBoundary) -> tuple[str, str, str]:
    """Return the spec's version, condition and repetition."""
    field, condition = wanted.field, "no condition"
    if wanted.condition or field.when is not None or field.optional:
        optional = "optional: true" if field.optional else str(field.type)
        condition = quoted(optional if field.when is None else f"when: {field.when}")
    return (
        since(wanted.since),
        condition,
        quoted(f"repeat: {wanted.repeated_for}") if wanted.repeated_for else "no repetition",
    )


def specified_values(wanted: ExpectedRow) -> str:
    """Return a field's legal values in the spec."""
    if wanted.field.boolean:
        return quoted("boolean: true")
    return quoted("bits: " + ", ".join(f"{bit}: {name}" for bit, name in wanted.field.bits.items()))


def whole(element: Row | Block) -> str:
    """Return a whole row of the page, or the text before a table."""
    if isinstance(element, Block):
        return quoted(element.text) if element.text else "a table without a text above it"
    words = quoted(element.type) if element.type else "a row whose type is cut off"
    return _joined(words, element, printed_remarks(element))


def whole_expected(wanted: ExpectedRow | ExpectedBoundary, *, plain: bool) -> str:
    """Return a whole expected row, or the expected text before a table."""
    if isinstance(wanted, ExpectedRow):
        return _joined(quoted(wanted.plain_type if plain else wanted.type), wanted, specified_remarks(wanted))
    words = _TABLE_OF[wanted.kind]
    return f"{words} {wanted.repeated_for.removesuffix('_count')}" if wanted.repeated_for else words


def _joined(words: str, row: Row | ExpectedRow, remarks: tuple[str, str, str]) -> str:
    is_present = (row.since, row.condition)
    return ", ".join(
        [words, *(remark for remark, is_remarked in zip(remarks, is_present, strict=False) if is_remarked)]
    )
