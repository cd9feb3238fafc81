"""The tables that the spec expects on a page, at one version.

Usually a field is one row. A field with several constants is a row for each constant, and a part without an anchor is a
table within the message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from codegen.model.layouts import UNTIL_ZERO, Field, Message, Part, counted
from codegen.model.model import Protocol
from codegen.model.notation import Byte1, Int, PartName
from codegen.model.places import Place
from codegen.model.versions import View, unfiltered
from codegen.pagecheck.remarks import BlockKind, ConditionKind

_CONDITION_OF_FACT: dict[str, ConditionKind] = {"streaming": "streamed", "parallel": "parallel"}
"""The wording of a session fact on pages."""


@dataclass(frozen=True, slots=True)
class ExpectedRow:
    """An expected row."""

    what: str
    """Message and field, for differences: "Update.xid"."""
    field: Field
    type: str
    since: int | None
    """The row's own remark; None if the message's remark applies."""
    condition: ConditionKind | None
    constants: tuple[str, ...]
    """The tags in the condition."""
    repeated_for: str | None
    """The field that counts the repetitions."""
    printed_under: str | None
    """The tag of the alternative that prints this row instead."""
    measured: Field | None
    """The field whose length or number the row has."""
    older: Field | None
    """The row that older versions have instead."""
    version_name: str
    """The name of the first version with the row."""
    values: Mapping[int, str]
    """The names of the values of the row's named type."""

    @property
    def place(self) -> Place:
        """The row's position in the spec."""
        return self.field.place

    @property
    def plain_type(self) -> str:
        """The type without the name in parentheses, as before PostgreSQL 15."""
        return self.field.type.base if isinstance(self.field.type, Int) and self.field.type.name else self.type


@dataclass(frozen=True, slots=True)
class ExpectedBoundary:
    """An expected text before a table."""

    what: str
    kind: BlockKind
    field: Field
    """The field whose content the tables are."""
    place: Place
    since: int | None = None
    condition: ConditionKind | None = None
    constants: tuple[str, ...] = ()
    repeated_for: str | None = None
    """The field that counts the repetitions of the table."""


@dataclass(frozen=True, slots=True)
class ExpectedChoice:
    """An expected sentence on alternative tags of a message."""

    what: str
    constants: tuple[str, ...]
    may_be_none: bool
    place: Place


@dataclass(frozen=True, slots=True)
class Layout:
    """A message, or a part with its own anchor, as the page should print it."""

    name: str
    anchor: str
    since: int
    release: int | None
    direction: str | None
    """The letter in parentheses, which a page may omit if the server sends all messages; None for a part."""
    is_part: bool
    elements: tuple[ExpectedRow | ExpectedBoundary, ...]
    choices: tuple[ExpectedChoice, ...]
    place: Place

    @property
    def rows(self) -> tuple[ExpectedRow, ...]:
        return tuple(element for element in self.elements if isinstance(element, ExpectedRow))


def layouts(view: View) -> tuple[Layout, ...]:
    """Return the expected layouts in the page's order: messages, then parts with an anchor."""
    # A page without anchors has every message.
    on_page = [message for message in view.messages if message.ref is not None or not view.protocol.anchor]
    messages = [_layout(view, message) for message in on_page]
    return (*messages, *(_layout(view, part) for part in view.parts if part.ref is not None))


def _layout(view: View, source: Message | Part) -> Layout:
    protocol = view.protocol
    release, direction = None, None
    if isinstance(source, Message):
        release = source.release
        direction = {"client": "F", "server": "B", "both": "F & B"}[source.sender]
    return Layout(
        name=source.name,
        anchor=f"{protocol.anchor}{source.ref or ''}",
        since=source.since,
        release=release,
        direction=direction,
        is_part=isinstance(source, Part),
        elements=_elements(view, source.name, source.fields, source.since),
        choices=tuple(
            ExpectedChoice(f"{source.name}.{row.name}", row.type.constants, row.optional, row.place)
            for row in source.fields
            if isinstance(row.type, Byte1) and len(row.type.constants) > 1
        ),
        place=source.place,
    )


def _elements(
    view: View, owner: str, fields: tuple[Field, ...], since: int
) -> tuple[ExpectedRow | ExpectedBoundary, ...]:
    elements: list[ExpectedRow | ExpectedBoundary] = []
    for row in fields:
        inner = _inner_part(view, row)
        is_after = bool(elements) and isinstance(last := fields[fields.index(row) - 1].type, PartName)
        if is_after and isinstance(last, PartName) and view.protocol.package:
            elements.append(ExpectedBoundary(f"{owner}.{row.name}", "after", row, row.place))
        if inner is None and row.printed_apart:
            elements.append(_boundary(view.protocol, f"{owner}.{row.name}", "each", row, fields, since))
            elements += _rows(view, owner, replace(row, repeat=None), fields, since)
        elif inner is None:
            elements += _rows(view, owner, row, fields, since)
        elif inner.alternatives:
            for index, alternative in enumerate(inner.alternatives):
                what = f"{owner}.{row.name}, {alternative.name}"
                own_since = max(since, alternative.since)
                if index:
                    shown = own_since if own_since > since else None
                    elements.append(ExpectedBoundary(what, "or", row, alternative.place, shown))
                else:
                    elements.append(_boundary(view.protocol, what, "one of", row, fields, since))
                elements += _elements(view, alternative.name, alternative.fields, own_since)
        else:
            elements.append(_boundary(view.protocol, f"{owner}.{row.name}", "each", row, fields, since))
            elements += _elements(view, inner.name, inner.fields, since)
    return tuple(elements)


def _inner_part(view: View, row: Field) -> Part | None:
    """Return the part that the page prints instead of a row, if the part has no entry of its own."""
    if not isinstance(row.type, PartName):
        return None
    part = view.part(row.type.name)
    return part if part.ref is None else None


def _boundary(
    protocol: Protocol, what: str, kind: BlockKind, row: Field, fields: tuple[Field, ...], since: int
) -> ExpectedBoundary:
    condition, constants = _condition(protocol, row, fields)
    own_since = row.since if row.since > since else None
    if row.repeat == UNTIL_ZERO:
        return ExpectedBoundary(what, "until zero", row, row.place, own_since, condition, constants, row.name)
    return ExpectedBoundary(what, kind, row, row.place, own_since, condition, constants, row.repeat)


def _rows(view: View, owner: str, row: Field, fields: tuple[Field, ...], since: int) -> list[ExpectedRow]:
    constants = row.type.constants if isinstance(row.type, Byte1) else ()
    condition, tags = _condition(view.protocol, row, fields)
    types = [f"Byte1('{constant}')" for constant in constants] or [str(row.type)]
    return [
        ExpectedRow(
            what=f"{owner}.{row.name}",
            field=row,
            type=printed,
            since=row.since if row.since > since and not row.replaces else None,
            condition=condition,
            constants=tags,
            repeated_for=None if isinstance(row.type, Int) and row.type.letter else row.repeat,
            printed_under=row.printed_under,
            measured=counted(fields, row),
            older=_older(view, owner, row),
            version_name=view.protocol.versions[row.since - 1].display_name,
            values=named.values if (named := view.protocol.types.get(row.named_type or "")) else {},
        )
        for printed in types
    ]


def _older(view: View, owner: str, row: Field) -> Field | None:
    """Return the row of the same name that the version before the row's first one has."""
    layout = unfiltered(view.protocol).layout(owner)
    rows = layout.fields if layout is not None and row.replaces else ()
    return next((other for other in rows if other.name == row.name and other.until == row.since - 1), None)


def _condition(
    protocol: Protocol, row: Field, fields: tuple[Field, ...]
) -> tuple[ConditionKind | None, tuple[str, ...]]:
    """Return the condition of a field, and the tags in the condition."""
    if row.when is not None and any(fact.name == row.when for fact in protocol.session):
        return _CONDITION_OF_FACT.get(row.when, "other"), ()
    if row.when is not None:
        tags = (str(constant) for other in fields if other.name == row.when for constant in other.constants)
        return "previous", tuple(tags)
    if row.optional:
        return "optional", ()
    if isinstance(row.type, Byte1) and len(row.type.constants) > 1:
        return "depends", ()
    return None, ()
