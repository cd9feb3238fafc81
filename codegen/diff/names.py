"""Which names of the old side are which of the new: the same ones, and renames.

Names that both sides have belong together whatever else changed. Of the rest, those belong together that stand for
the same: a tag, a place in the layout, a use; what has no counterpart is gone or added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from codegen.diff.owners import Owner, all_rows, owners, since_of
from codegen.diff.reading import Reading, reading
from codegen.spec.model import Alternative, Field, Message, NamedType, Part, Protocol
from codegen.spec.notation import Int, PartName, Type


@dataclass
class Names:
    """Old name -> new name, for everything that both sides have."""

    types: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    blocks: dict[str, str] = field(default_factory=dict)
    layouts: dict[str, str] = field(default_factory=dict)
    """Messages, parts and alternatives."""
    rows: dict[str, dict[str, str]] = field(default_factory=dict)
    """Fields, by the new name of their layout."""

    @property
    def renames(self) -> bool:
        """Whether anything has another name than before."""
        every = (self.types, self.facts, self.blocks, self.layouts, *self.rows.values())
        return any(was != now for names in every for was, now in names.items())


def find_names(old: Protocol, new: Protocol, types: Mapping[str, str]) -> Names:
    """The names of a protocol, those of the types being known already."""
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
    after = owners(new)
    names.rows = {name: _rows(old, was, new, after[name]) for name, was in owners(old).items() if name in after}
    return names


def find_type_names(old: Mapping[str, NamedType], new: Mapping[str, NamedType]) -> dict[str, str]:
    """The names of the named types; a rename leaves base, sign and Python class alone."""
    return _pair(
        old,
        new,
        lambda was, now: (
            (old[was].base, old[was].signed, old[was].python) == (new[now].base, new[now].signed, new[now].python)
        ),
        lambda was, now: old[was].doc == new[now].doc,
    )


def as_new(old: Protocol, names: Names) -> Protocol:
    """The old side in the names of the new one."""
    if not names.renames:
        return old
    facts, blocks, layouts, types = names.facts, names.blocks, names.layouts, names.types

    def rows(owner: str, fields: tuple[Field, ...]) -> tuple[Field, ...]:
        own = names.rows.get(owner, {})
        return tuple(
            replace(
                row,
                name=_in(own, row.name),
                type=_type(row, types, layouts),
                is_named=_optional(types, row.is_named),
                when=_optional({**own, **facts}, row.when),
                size=_optional(own, row.size),
                repeat=_optional(own, row.repeat),
            )
            for row in fields
        )

    def message(layout: Message) -> Message:
        name = _in(layouts, layout.name)
        return replace(
            layout,
            name=name,
            also_when=_optional(facts, layout.also_when),
            places=tuple(_in(blocks, place) for place in layout.places),
            opens=_optional(blocks, layout.opens),
            closes=_optional(blocks, layout.closes),
            sets=_optional(facts, layout.sets),
            clears=_optional(facts, layout.clears),
            fields=rows(name, layout.fields),
        )

    def alternative(layout: Alternative) -> Alternative:
        name = _in(layouts, layout.name)
        return replace(layout, name=name, fields=rows(name, layout.fields))

    def part(layout: Part) -> Part:
        name = _in(layouts, layout.name)
        return replace(
            layout,
            name=name,
            part_of=tuple(_in(layouts, owner) for owner in layout.part_of),
            fields=rows(name, layout.fields),
            alternatives=tuple(map(alternative, layout.alternatives)),
        )

    return replace(
        old,
        session=tuple(replace(fact, name=_in(facts, fact.name)) for fact in old.session),
        blocks={_in(blocks, name): doc for name, doc in old.blocks.items()},
        types={_in(types, name): replace(kind, name=_in(types, name)) for name, kind in old.types.items()},
        messages=tuple(map(message, old.messages)),
        parts=tuple(map(part, old.parts)),
    )


def _in(names: Mapping[str, str], name: str) -> str:
    return names.get(name, name)


def _optional(names: Mapping[str, str], name: str | None) -> str | None:
    return None if name is None else _in(names, name)


def _type(row: Field, types: Mapping[str, str], layouts: Mapping[str, str]) -> Type:
    if isinstance(row.type, PartName):
        return PartName(_in(layouts, row.type.name))
    if isinstance(row.type, Int) and row.type.name is not None:
        return replace(row.type, name=_in(types, row.type.name))
    return row.type


def _pair(
    old: Iterable[str], new: Iterable[str], alike: Callable[[str, str], bool], better: Callable[[str, str], bool]
) -> dict[str, str]:
    """Equal names; then, of those left, names of what is alike, the better ones first."""
    old, new = list(old), list(new)
    names = {name: name for name in old if name in new}
    for good in (better, lambda was, now: True):
        for was in old:
            if was not in names:
                left = (now for now in new if now not in names.values())
                found = next((now for now in left if alike(was, now) and good(was, now)), None)
                if found is not None:
                    names[was] = found
    return names


def _facts(old: Protocol, new: Protocol) -> dict[str, str]:
    """A session fact is known by what it does: the same messages and rows name it in the same keys."""
    before = {fact.name: fact for fact in old.session}
    after = {fact.name: fact for fact in new.session}
    return _pair(
        before,
        after,
        lambda was, now: (
            before[was].since == after[now].since
            and (before[was].doc == after[now].doc or _uses(old, was) == _uses(new, now) != set())
        ),
        lambda was, now: before[was].doc == after[now].doc,
    )


def _uses(protocol: Protocol, fact: str) -> set[tuple[str, str, str, int]]:
    """Where a session fact is named: sender and tag of the message, the key, the row."""
    uses: set[tuple[str, str, str, int]] = set()
    for message in protocol.messages:
        for key, name in (("also when", message.also_when), ("sets", message.sets), ("clears", message.clears)):
            if name == fact:
                uses.add((message.sender, message.tag, key, 0))
        uses |= {
            (message.sender, message.tag, "when", index) for index, row in enumerate(message.fields) if row.when == fact
        }
    return uses


def _blocks(old: Protocol, new: Protocol) -> dict[str, str]:
    """A block is known by the tags of the messages that open and close it."""

    def ends(protocol: Protocol, block: str) -> set[tuple[str, str, str]]:
        return {
            (verb, message.sender, message.tag)
            for message in protocol.messages
            for verb, named in (("opens", message.opens), ("closes", message.closes))
            if named == block
        }

    return _pair(
        old.blocks,
        new.blocks,
        lambda was, now: ends(old, was) == ends(new, now),
        lambda was, now: old.blocks[was] == new.blocks[now],
    )


def _messages(old: Protocol, new: Protocol) -> dict[str, str]:
    """A message is known by who sends it, its tag, and most of its layout."""
    before = {message.name: message for message in old.messages}
    after = {message.name: message for message in new.messages}
    return _pair(
        before,
        after,
        lambda was, now: (
            (before[was].sender, before[was].tag) == (after[now].sender, after[now].tag)
            and _likeness(old, before[was].fields[1:], new, after[now].fields[1:]) >= 0.5
        ),
        lambda was, now: True,
    )


def _parts(old: Protocol, new: Protocol) -> dict[str, str]:
    """A part is known by most of its layout."""
    before = {part.name: part for part in old.parts}
    after = {part.name: part for part in new.parts}

    def likeness(was: str, now: str) -> float:
        if bool(before[was].alternatives) != bool(after[now].alternatives):
            return 0.0
        return _likeness(old, all_rows(before[was]), new, all_rows(after[now]))

    return _pair(
        before,
        after,
        lambda was, now: likeness(was, now) >= 0.5,
        lambda was, now: likeness(was, now) == 1.0,
    )


def _likeness(old: Protocol, was: tuple[Field, ...], new: Protocol, now: tuple[Field, ...]) -> float:
    """How much of a layout is as it was, 0 to 1: all rows with the same bytes, or else those with name and bytes."""
    bytes_before = [_nameless(old, row) for row in was]
    bytes_after = [_nameless(new, row) for row in now]
    if bytes_before == bytes_after:
        return 1.0
    before = set(zip((row.name for row in was), bytes_before, strict=True))
    after = set(zip((row.name for row in now), bytes_after, strict=True))
    return len(before & after) / max(len(was), len(now))


def _nameless(protocol: Protocol, row: Field) -> Reading:
    """A row's bytes without the names of other things in them, which may be renames themselves."""
    row = replace(row, when=row.when and "-", size=row.size and "-", repeat=row.repeat and "-", type=_without_part(row))
    return reading(protocol, row)


def _without_part(row: Field) -> Type:
    return PartName("-") if isinstance(row.type, PartName) else row.type


def _alternatives(old: Part, new: Part) -> dict[str, str]:
    """An alternative is known by its tag."""
    before = {alternative.name: alternative for alternative in old.alternatives}
    after = {alternative.name: alternative for alternative in new.alternatives}
    return _pair(
        before,
        after,
        lambda was, now: before[was].fields[0].constants == after[now].fields[0].constants,
        lambda was, now: True,
    )


def _rows(old: Protocol, was: Owner, new: Protocol, now: Owner) -> dict[str, str]:
    """A field is known by its place, after a field that both sides have, and by its bytes."""
    kept = {row.name for row in was.fields} & {row.name for row in now.fields}
    places_before, places = _places(was, kept), _places(now, kept)
    names = {name: name for name in kept}

    def alike(before: Field, after: Field) -> bool:
        renamed = replace(
            before,
            when=_optional(names, before.when),
            size=_optional(names, before.size),
            repeat=_optional(names, before.repeat),
        )
        return (
            places_before[before.name] == places[after.name]
            and before.since - since_of(was) == after.since - since_of(now)
            and reading(old, renamed) == reading(new, after)
        )

    for same_doc in (True, False):
        for before in was.fields:
            if before.name not in names:
                left = (after for after in now.fields if after.name not in names.values())
                likely = (after for after in left if after.doc == before.doc or not same_doc)
                found = next((after for after in likely if alike(before, after)), None)
                if found is not None:
                    names[before.name] = found.name
    return names


def _places(owner: Owner, kept: set[str]) -> dict[str, str]:
    """For each row, the last one before it that both sides have."""
    places: dict[str, str] = {}
    last = ""
    for row in owner.fields:
        places[row.name] = last
        last = row.name if row.name in kept else last
    return places
