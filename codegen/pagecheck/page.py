"""A documentation page as frozen data: messages, their tables, and the tables' rows, with line numbers."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.pagecheck.remarks import BlockKind, Choice, Condition, OlderRow


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table."""

    line: int
    type: str | None
    """The printed type, "Int32 (TransactionId)"; None if the page begins or ends within the type."""
    description: str
    since: int | None = None
    condition: Condition | None = None
    repeated_for: str | None = None
    """The noun after "for each", such as "relation"."""
    fixed_value: str | None = None
    """The value of "(must be 0)" in the description."""
    tail_missing: bool = False
    """True if the page ends within the description, so that remarks may be missing."""


@dataclass(frozen=True, slots=True)
class Block:
    """A table of a message, and the text before the table."""

    line: int
    kind: BlockKind
    text: str
    rows: tuple[Row, ...]
    since: int | None = None
    condition: Condition | None = None
    repeated_for: str | None = None
    """The noun after "for each", such as "column included in the publication"."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A text of a message outside of its tables."""

    line: int
    text: str
    choice: Choice | None = None
    older: OlderRow | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The messages of one list, and the facts in the text above the list."""

    line: int
    since: int | None = None
    names: tuple[str, ...] = ()
    """The messages in the heading."""
    heading_missing: bool = False
    """True if the heading may precede the page."""
    tail_missing: bool = False
    """True if the list may continue after the page."""
    section: str | None = None
    """The anchor of the list's section, if any."""
    section_title: str = ""
    section_head_missing: bool = False
    """True if the section begins before the page."""
    section_tail_missing: bool = False
    """True if the section ends after the page."""
    entries: tuple[str, ...] = ()
    """Anchors or terms of the surrounding entries, outermost first."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message or a part: its name, tables and remarks."""

    line: int
    name: str | None
    """The printed name without direction; None if the page begins within the message or prints no name."""
    group: Group
    direction: str | None = None
    """The B or F in parentheses after the name."""
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
        """The line of the last row or remark."""
        return max([self.line, *(row.line for row in self.rows), *(remark.line for remark in self.remarks)])


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a list that is not a message's table, with its text."""

    line: int
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class TermList:
    """The first list of a section with an anchor."""

    line: int
    anchor: str
    terms: tuple[Term, ...]
    tail_missing: bool
    """True if the page ends within the list."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page or a fragment: its messages in order, and lists of other terms."""

    source: str
    messages: tuple[Message, ...]
    lists: tuple[TermList, ...] = ()
    text: str = ""
    """All text, with white space folded."""
    lines: tuple[tuple[int, int], ...] = ()
    """The offsets of paragraphs in the text, each with its line."""

    def line_at(self, offset: int) -> int:
        """Return the line of the paragraph at an offset of the text."""
        return max((pair for pair in self.lines if pair[0] <= offset), default=(0, 1))[1]
