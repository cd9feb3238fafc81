"""Pairs of names of the old and the new side: equal names, and renames.

Equal names are a pair, whatever else changed. Other names are a pair if they mean the same: by tag, position in the
layout, or use. Unpaired things are removed or added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from codegen.diff.fields import Row, bytes_of
from codegen.diff.owners import Block, Owner, all_rows, blocks_of, owners
from codegen.model.layouts import Alternative, Field, Message, NamedType, Part
from codegen.model.model import Protocol, SessionFact
from codegen.model.notation import Int, PartName, Type


@dataclass
class Names:
    """Old name -> new name, for everything on both sides."""

    types: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    blocks: dict[str, str] = field(default_factory=dict)
    layouts: dict[str, str] = field(default_factory=dict)
    """Messages, parts and alternatives."""
    rows: dict[str, dict[str, str]] = field(default_factory=dict)
    """Fields, by the new name of their layout."""

    @property
    def renames(self) -> bool:
        """True if any name changed."""
        every = (self.types, self.facts, self.blocks, self.layouts, *self.rows.values())
        return any(old_name != new_name for names in every for old_name, new_name in names.items())


_REFERENCES: Mapping[str, tuple[str, ...]] = {
    "when": ("rows", "facts"),
    "size": ("rows",),
    "repeat": ("rows",),
    "is_named": ("types",),
    "also_when": ("facts",),
    "sets": ("facts",),
    "clears": ("facts",),
    "places": ("blocks",),
    "opens": ("blocks",),
    "closes": ("blocks",),
    "part_of": ("layouts",),
    "describes": ("rows",),
    "looks_up": ("layouts",),
}
"""The attributes that refer to other things by name, and the kinds of these things."""


def find_names(old: Protocol, new: Protocol, types: Mapping[str, str]) -> Names:
    """Pair the names of a protocol. `types` are the pairs of named types."""
    names = Names(types=dict(types))
    names.facts = _facts(old, new)
    names.blocks = _blocks(old, new)
    old = as_new(old, names)
    names.layouts = _messages(old, new) | _parts(old, new)
    old = as_new(old, names)
    parts = {part.name: part for part in new.parts}
    for part in old.parts:
        if part.name in parts:
            names.layouts |= _alternatives(part, parts[part.name])
    old = as_new(old, names)
    new_owners = owners(new)
    names.rows = {
        name: _rows(old, old_owner, new, new_owners[name])
        for name, old_owner in owners(old).items()
        if name in new_owners
    }
    return names


def find_type_names(old: Mapping[str, NamedType], new: Mapping[str, NamedType]) -> dict[str, str]:
    """Pair the names of named types. A rename keeps base, sign and Python class."""

    def alike(old_thing: NamedType, new_thing: NamedType) -> bool:
        return (old_thing.base, old_thing.signed, old_thing.python) == (
            new_thing.base,
            new_thing.signed,
            new_thing.python,
        )

    return _pair(old.values(), new.values(), alike, _same_doc)


Layout = TypeVar("Layout", Message, Part, Alternative)
Thing = TypeVar("Thing", Message, Part, Alternative, Field)


def as_new(old: Protocol, names: Names) -> Protocol:
    """Return the old side with the names of the new side."""
    if not names.renames:
        return old
    layouts, types = names.layouts, names.types

    def renamed(thing: Thing, own: Mapping[str, str], rows: Mapping[str, str], **changed: Any) -> Thing:
        spaces = {"rows": rows, "facts": names.facts, "blocks": names.blocks, "layouts": layouts, "types": types}
        for attribute, kinds in _REFERENCES.items():
            new_names = {old_name: new_name for kind in kinds for old_name, new_name in spaces[kind].items()}
            value = getattr(thing, attribute, None)
            if isinstance(value, tuple):
                changed[attribute] = tuple(new_names.get(name, name) for name in value)
            elif value is not None:
                changed[attribute] = new_names.get(value, value)
        return replace(thing, name=own.get(thing.name, thing.name), **changed)

    def layout(thing: Layout, **changed: Any) -> Layout:
        rows = names.rows.get(layouts.get(thing.name, thing.name), {})
        fields = tuple(
            renamed(row, rows, rows, type=_type(row, names), batch_column=row.column) for row in thing.fields
        )
        return renamed(thing, layouts, rows, fields=fields, **changed)

    return replace(
        old,
        session=tuple(replace(fact, name=names.facts.get(fact.name, fact.name)) for fact in old.session),
        blocks={names.blocks.get(name, name): doc for name, doc in old.blocks.items()},
        types={types.get(name, name): replace(kind, name=types.get(name, name)) for name, kind in old.types.items()},
        messages=tuple(layout(message) for message in old.messages),
        parts=tuple(layout(part, alternatives=tuple(map(layout, part.alternatives))) for part in old.parts),
    )


def _type(row: Field, names: Names) -> Type:
    if isinstance(row.type, PartName):
        return PartName(names.layouts.get(row.type.name, row.type.name))
    if isinstance(row.type, Int) and row.type.name is not None:
        return replace(row.type, name=names.types.get(row.type.name, row.type.name))
    return row.type


def _pair(
    old: Iterable[Any],
    new: Iterable[Any],
    alike: Callable[[Any, Any], bool],
    better: Callable[[Any, Any], bool] = lambda old_thing, new_thing: True,
    names: dict[str, str] | None = None,
) -> dict[str, str]:
    """Pair equal names; then pair remaining things that are alike, preferring `better` pairs.

    A predicate that needs the pairs so far shares the dict `names`.
    """
    old, new = list(old), list(new)
    names = {} if names is None else names
    names |= {
        old_thing.name: old_thing.name for old_thing in old for new_thing in new if old_thing.name == new_thing.name
    }
    for good in (better, lambda old_thing, new_thing: True):
        for old_thing in old:
            if old_thing.name not in names:
                unpaired = (new_thing for new_thing in new if new_thing.name not in names.values())
                counterpart = next(
                    (new_thing for new_thing in unpaired if good(old_thing, new_thing) and alike(old_thing, new_thing)),
                    None,
                )
                if counterpart is not None:
                    names[old_thing.name] = counterpart.name
    return names


def _same_doc(old_thing: Any, new_thing: Any) -> bool:
    return bool(old_thing.doc == new_thing.doc)


def _uses(protocol: Protocol, attributes: Iterable[str], name: str) -> set[tuple[object, ...]]:
    """Return the uses of a fact or block: the message's sender and tag, the attribute, and the row if any."""
    return {
        (message.sender, message.tag, attribute, index)
        for message in protocol.messages
        for index, thing in enumerate((message, *message.fields))
        for attribute in attributes
        if name == (value := getattr(thing, attribute, None)) or (isinstance(value, tuple) and name in value)
    }


def _facts(old: Protocol, new: Protocol) -> dict[str, str]:
    """Pair session facts by use or `doc`."""
    attributes = [attribute for attribute, kinds in _REFERENCES.items() if "facts" in kinds]

    def alike(old_thing: SessionFact, new_thing: SessionFact) -> bool:
        uses = _uses(old, attributes, old_thing.name)
        same = _same_doc(old_thing, new_thing) or uses == _uses(new, attributes, new_thing.name) != set()
        return same and old_thing.since == new_thing.since

    return _pair(old.session, new.session, alike, _same_doc)


def _blocks(old: Protocol, new: Protocol) -> dict[str, str]:
    """Pair blocks by the messages that open and close them."""

    def alike(old_thing: Block, new_thing: Block) -> bool:
        return _uses(old, ("opens", "closes"), old_thing.name) == _uses(new, ("opens", "closes"), new_thing.name)

    return _pair(blocks_of(old), blocks_of(new), alike, _same_doc)


def _messages(old: Protocol, new: Protocol) -> dict[str, str]:
    """Pair messages by sender, tag, and most of the layout."""

    def alike(old_thing: Message, new_thing: Message) -> bool:
        return (old_thing.sender, old_thing.tag) == (new_thing.sender, new_thing.tag) and _likeness(
            old, old_thing, new, new_thing
        ) >= 0.5

    return _pair(old.messages, new.messages, alike)


def _parts(old: Protocol, new: Protocol) -> dict[str, str]:
    """Pair parts by most of the layout."""

    def likeness(old_thing: Part, new_thing: Part) -> float:
        same_kind = bool(old_thing.alternatives) == bool(new_thing.alternatives)
        return _likeness(old, old_thing, new, new_thing) if same_kind else 0

    return _pair(
        old.parts,
        new.parts,
        lambda part, other: likeness(part, other) >= 0.5,
        lambda part, other: likeness(part, other) == 1,
    )


def _likeness(old: Protocol, old_thing: Message | Part, new: Protocol, new_thing: Message | Part) -> float:
    """Return the unchanged share of a layout, 0 to 1: 1 if only names differ, else the share of equal rows."""
    old_rows, new_rows = _nameless(old, old_thing), _nameless(new, new_thing)
    if [row for _, row in old_rows] == [row for _, row in new_rows]:
        return 1
    return len(set(old_rows) & set(new_rows)) / max(len(old_rows), len(new_rows))


def _nameless(protocol: Protocol, owner: Message | Part) -> list[tuple[str, tuple[object, ...]]]:
    """Return the rows after the tag: name and bytes, without references, which may be renames themselves."""
    rows = []
    for row in all_rows(owner)[1 if isinstance(owner, Message) else 0 :]:
        kind = PartName("-") if isinstance(row.type, PartName) else row.type
        blank = replace(row, when=row.when and "-", size=row.size and "-", repeat=row.repeat and "-", type=kind)
        rows.append((row.name, bytes_of(Row(protocol, owner, blank))))
    return rows


def _alternatives(old: Part, new: Part) -> dict[str, str]:
    """Pair alternatives by tag."""
    return _pair(
        old.alternatives,
        new.alternatives,
        lambda old_thing, new_thing: old_thing.fields[0].constants == new_thing.fields[0].constants,
    )


def _rows(old: Protocol, old_owner: Owner, new: Protocol, new_owner: Owner) -> dict[str, str]:
    """Pair fields by bytes, and by position after a field on both sides."""
    common = {row.name for row in old_owner.fields} & {row.name for row in new_owner.fields}
    places_before, places = _places(old_owner, common), _places(new_owner, common)
    names: dict[str, str] = {}

    def alike(old_row: Field, new_row: Field) -> bool:
        # Uses the names paired so far, so that a count may be renamed together with the counted row.
        new_references = {
            key: names.get(name, name) for key in ("when", "size", "repeat") if (name := getattr(old_row, key))
        }
        return (
            places_before[old_row.name] == places[new_row.name]
            and old_row.since - old_owner.since == new_row.since - new_owner.since
            and bytes_of(Row(old, old_owner, replace(old_row, **new_references)))
            == bytes_of(Row(new, new_owner, new_row))
        )

    return _pair(old_owner.fields, new_owner.fields, alike, _same_doc, names)


def _places(owner: Owner, common: set[str]) -> dict[str, str]:
    """Return, for each row, the last common row before it."""
    places: dict[str, str] = {}
    last = ""
    for row in owner.fields:
        places[row.name] = last
        last = row.name if row.name in common else last
    return places
