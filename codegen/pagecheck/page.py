"""A documentation page as frozen data: messages, the tables of each, and the rows of each table, with their lines."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.pagecheck.remarks import BlockKind, Choice, Condition


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table."""

    line: int
    type: str | None
    """The type as printed, "Int32 (TransactionId)"; None where the page begins or ends within it."""
    description: str
    since: int | None = None
    condition: Condition | None = None
    repeated_for: str | None = None
    """The thing that the field is repeated for, "relation"."""
    fixed_value: str | None = None
    """The value of "(must be 0)" in the description."""
    tail_missing: bool = False
    """True if the page ends within the description, so that remarks may be missing."""


@dataclass(frozen=True, slots=True)
class Block:
    """One table of a message, and the text that introduces it."""

    line: int
    kind: BlockKind
    text: str
    rows: tuple[Row, ...]
    since: int | None = None
    condition: Condition | None = None
    repeated_for: str | None = None
    """The thing that the table is repeated for, "column included in the publication"."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A text that belongs to a message, outside its tables."""

    line: int
    text: str
    choice: Choice | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The messages of one list, and what the text above the list says of them."""

    line: int
    since: int | None = None
    names: tuple[str, ...] = ()
    """The messages that the heading lists."""
    heading_missing: bool = False
    """True if the heading may stand before the page begins."""
    tail_missing: bool = False
    """True if messages of the list may stand after the page ends."""
    section: str | None = None
    """The anchor of the section around the list, where it has one."""
    section_title: str = ""
    section_head_missing: bool = False
    """True if the section begins before the page."""
    section_tail_missing: bool = False
    """True if the section ends after the page."""
    entries: tuple[str, ...] = ()
    """The anchors or terms of the entries around the list, outermost first."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message or a message part: its name, its tables and the texts beside them."""

    line: int
    name: str | None
    """The name as printed, without direction; None where the page begins within the message, or has no name for it."""
    group: Group
    direction: str | None = None
    """The B or F that stands in parentheses after the name."""
    anchor: str | None = None
    blocks: tuple[Block, ...] = ()
    remarks: tuple[Remark, ...] = ()
    head_missing: bool = False
    """True if rows may be missing because the page begins within the message."""
    tail_missing: bool = False
    """True if rows may be missing because the page ends within the message."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of all tables."""
        return tuple(row for block in self.blocks for row in block.rows)

    @property
    def last_line(self) -> int:
        """The line of the last row, or of the last text after it."""
        return max([self.line, *(row.line for row in self.rows), *(remark.line for remark in self.remarks)])


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a list that is no table of a message, and the text on it."""

    line: int
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class TermList:
    """The first list of a section that has an anchor."""

    line: int
    anchor: str
    terms: tuple[Term, ...]
    tail_missing: bool
    """True if the page ends within the list."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page, or a fragment of one: its messages in order, and lists of other things."""

    source: str
    messages: tuple[Message, ...]
    lists: tuple[TermList, ...] = ()
