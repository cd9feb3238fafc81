"""A layout for readers: each field with its offset, width and condition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from codegen.model.layouts import REST, UNTIL_ZERO, Field
from codegen.model.model import Protocol
from codegen.model.notation import Byten, PartName, String

CONSTANT = "constant"
INTEGER = "integer"
TEXT = "text"
BYTES = "bytes"
PART = "part"

_MOST_OFFSETS = 3


@dataclass(frozen=True)
class Offset:
    """A field's first byte, or several possible ones, from the start or from the end of the last variable field."""

    choices: tuple[int, ...]
    relative: bool

    @property
    def short(self) -> str:
        """For a ruler: 5, 1/5, +4."""
        return self._joined("/")

    @property
    def long(self) -> str:
        """For a table: 5, 1 or 5, +4."""
        return self._joined(" or ")

    def _joined(self, separator: str) -> str:
        if len(self.choices) > _MOST_OFFSETS:
            text = f"{self.choices[0]}…{self.choices[-1]}"
        else:
            text = separator.join(map(str, self.choices))
        return f"+{text}" if self.relative else text


@dataclass(frozen=True)
class Row:
    """A field of a layout, with facts derived from the fields before it."""

    field: Field
    offset: Offset
    width: int | None
    """Bytes; None if variable."""
    group: str
    """The session fact or optional field that the field depends on; empty if always present."""
    condition: str
    """The condition as a label: `if streaming`, `optional`."""
    since: int | None
    """The first version with the field, if later than the layout's."""

    @property
    def kind(self) -> str:
        """The kind of content, which decides the drawing."""
        if self.field.constants:
            return CONSTANT
        if isinstance(self.field.type, String):
            return TEXT
        if isinstance(self.field.type, Byten):
            return BYTES
        return PART if isinstance(self.field.type, PartName) else INTEGER

    @property
    def extent(self) -> str:
        """The length in words."""
        if self.field.repeat is not None:
            is_counted = self.field.repeat != UNTIL_ZERO and not self.field.ended_by
            return f"repeated {self.field.repeat} times" if is_counted else f"repeated {self.field.repeat}"
        if isinstance(self.field.type, Byten) and self.field.type.count is not None:
            return f"{self.field.type.count} bytes"
        if isinstance(self.field.type, Byten):
            return "the rest of the message" if self.field.size == REST else f"{self.field.size} bytes"
        if self.width is not None:
            return "1 byte" if self.width == 1 else f"{self.width} bytes"
        return "up to a zero byte" if isinstance(self.field.type, String) else "of variable length"

    @property
    def spoken(self) -> str:
        """The field in a sentence, for screen readers."""
        place = "after the previous field" if self.offset.relative else f"at byte {self.offset.long}"
        words = [self.field.name, str(self.field.type), self.extent, place, self.condition]
        return ", ".join(word for word in words if word)


def rows(protocol: Protocol, fields: Iterable[Field], since: int = 1) -> tuple[Row, ...]:
    """Return the rows of a layout whose first version is `since`."""
    facts = {fact.name for fact in protocol.session}
    result: list[Row] = []
    # The possible sets of optional rows so far, with their number of bytes.
    states: set[tuple[frozenset[tuple[str, bool]], int]] = {(frozenset(), 0)}
    relative = False
    for row in fields:
        group = row.name if row.optional else row.when or ""
        if group:
            states = {
                (facts_known | {(group, is_present)}, size)
                for facts_known, size in states
                for is_present in (True, False)
                if (group, not is_present) not in facts_known
            }
        present = {state for state in states if not group or (group, True) in state[0]}
        width = row.width if row.width and row.repeat is None else None
        result.append(
            Row(
                field=row,
                offset=Offset(tuple(sorted({size for _, size in present})), relative),
                width=width,
                group=group,
                condition="" if not group else f"if {group}" if group in facts else "optional",
                since=row.since if row.since > since else None,
            )
        )
        if width is None:
            relative = True
            states = {(facts_known, 0) for facts_known, _ in states}
        else:
            states = (states - present) | {(facts_known, size + width) for facts_known, size in present}
    return tuple(result)
