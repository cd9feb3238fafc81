"""The model -> content of the reference's pages: entries, matrix, blocks, and steps between versions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from codegen.emit.package import package_of
from codegen.emit.python_source import Attribute, Source
from codegen.emit.rendering import joined
from codegen.lowering.rows import enumeration_name
from codegen.model.layouts import OUTSIDE, Alternative, Field, Message, NamedType, Part
from codegen.model.model import Protocol, SessionFact, Version
from codegen.model.names import class_name, snake_case
from codegen.model.notation import Byte1, Byten, Int, PartName, String
from codegen.model.places import Place
from codegen.model.versions import View, views
from codegen.reference.drawing import NARROW, Picture, draw
from codegen.reference.layout import Row, rows
from codegen.shared import mask

Layout = Message | Part | Alternative


@dataclass(frozen=True)
class Figure:
    """A picture for wide pages, and another one for phones if it needs more lines there."""

    id: str
    wide: Picture
    narrow: Picture | None


@dataclass(frozen=True)
class Entry:
    """A message, a part or an alternative on a page."""

    protocol: Protocol
    layout: Layout
    anchor: str
    rows: tuple[Row, ...]
    figure: Figure | None
    alternatives: tuple[Entry, ...] = ()
    python: str = ""
    """The class without its methods."""
    path: str = ""
    """The module to import the class from."""
    path_remark: str = ""
    """The versions that share the class."""


@dataclass(frozen=True)
class BlockRule:
    """A place in a session, and the messages that are legal there."""

    name: str
    doc: str
    opener: Message | None
    closers: tuple[Message, ...]
    inside: tuple[Message, ...]


@dataclass(frozen=True)
class Change:
    """A layout that a version changes."""

    entry: Entry
    added: tuple[Row, ...]
    through: tuple[str, ...]
    """The changed parts within the layout."""


@dataclass(frozen=True)
class Step:
    """The changes from one version to the next."""

    older: Version
    newer: Version
    facts: tuple[SessionFact, ...]
    new: tuple[Entry, ...]
    changed: tuple[Change, ...]
    same: tuple[Message, ...]


@dataclass(frozen=True)
class Use:
    """A field of a named type."""

    href: str
    owner: str
    field: str


@dataclass(frozen=True)
class Sample:
    """An example field in the legend of the drawings."""

    picture: Picture
    term: str
    text: str


def anchor_of(layout: Message | Part) -> str:
    """Return the documentation's anchor in lower case; for a part without one, its name."""
    return layout.ref.lower() if layout.ref is not None else _kebab(layout.name)


def href_of(protocol: Protocol, layout: Message | Part) -> str:
    """Return an entry's URL within the site."""
    return f"{protocol.name}.html#{anchor_of(layout)}"


def message_entries(protocol: Protocol) -> tuple[Entry, ...]:
    """Return all messages of the newest version."""
    newest = views(protocol)[-1]
    return tuple(_entry(newest, message) for message in newest.messages)


def part_entries(protocol: Protocol) -> tuple[Entry, ...]:
    """Return all parts of the newest version."""
    newest = views(protocol)[-1]
    return tuple(_entry(newest, part) for part in newest.parts)


def states(protocol: Protocol, message: Message) -> tuple[str, ...]:
    """Return each version's status: new, changed, same, absent; `with`, or the session fact, if also sent."""
    result = []
    for view in views(protocol):
        layout = view.layout(message.name)
        if layout is None:
            result.append((message.also_when or "with") if message.is_sent_in(view.version) else "absent")
        elif layout.since == view.version:
            result.append("new")
        else:
            result.append("changed" if view.defined_in(layout) == view.version else "same")
    return tuple(result)


def block_rules(protocol: Protocol) -> tuple[BlockRule, ...]:
    """Return the place between blocks and each block; () for a protocol without blocks."""
    if not protocol.blocks:
        return ()
    places = {OUTSIDE: "Between the blocks below.", **protocol.blocks}
    return tuple(
        BlockRule(
            name=name,
            doc=doc,
            opener=next((message for message in protocol.messages if message.opens == name), None),
            closers=tuple(message for message in protocol.messages if name in message.closes),
            inside=tuple(
                message for message in protocol.messages if name in message.places and name not in message.closes
            ),
        )
        for name, doc in places.items()
    )


def effect(message: Message) -> str:
    """Return the message's effect on a transaction; empty if none."""
    if not message.transaction:
        return ""
    verb = message.transaction.removesuffix(" prepared")
    return f"{verb} a {'transaction' if verb == message.transaction else 'prepared transaction'}"


def effects(protocol: Protocol) -> dict[str, list[Message]]:
    """Return the messages by their effect on a transaction."""
    effects_by_key: dict[str, list[Message]] = {}
    for message in protocol.messages:
        if message.transaction:
            effects_by_key.setdefault(effect(message), []).append(message)
    return effects_by_key


def steps_between(protocol: Protocol) -> tuple[Step, ...]:
    """Return the changes of each version, from the second on."""
    return tuple(_step(older, newer) for older, newer in pairwise(views(protocol)))


def uses(entries: Iterable[Entry], named: NamedType) -> tuple[Use, ...]:
    """Return the fields of a named type."""
    return tuple(
        Use(f"{entry.protocol.name}.html#{entry.anchor}.{row.field.name}", entry.layout.name, row.field.name)
        for outer in entries
        for entry in (outer, *outer.alternatives)
        for row in entry.rows
        if row.field.named_type == named.name
    )


def samples(owner: Protocol) -> tuple[Sample, ...]:
    """Return a field of each shape, with the byte order of a protocol."""
    place = Place(Path(), 1)
    streaming = SessionFact("streaming", 1, "", place)
    # The samples need a protocol only for the names of its session facts.
    protocol = Protocol("", "", "big", "", "", "", "", "", "", (), (), (streaming,), "", {}, (), {}, {}, (), (), place)
    tag, number = Field("tag", Byte1(("X",)), place), Field("number", Int("Int32"), place)

    def sample(term: str, text: str, *fields: Field) -> Sample:
        return Sample(draw(term, rows(protocol, fields)), term, text)

    return (
        sample(
            "A constant",
            "One value is legal, or one of those named. Every message begins with such a byte, its tag.",
            tag,
        ),
        sample(
            "An integer",
            "The ruler has a tick for each byte and says where the field begins. "
            f"The {'least' if owner.byte_order == 'little' else 'most'} significant byte is first.",
            number,
        ),
        sample(
            "Text",
            "Torn, as its length varies; it ends with a zero byte. Offsets after it count from its end: +0.",
            Field("name", String(), place),
            number,
        ),
        sample(
            "Bytes",
            "Torn, as their number varies; an earlier field says how many, or they take all that is left.",
            Field("content", Byten(), place, size="length"),
        ),
        sample("A part", "It has a layout of its own, drawn elsewhere.", Field("new", PartName("Part"), place)),
        sample(
            "A repeated field",
            "A stack; an earlier field says how often it comes.",
            Field("ids", Int("Int32"), place, repeat="count"),
        ),
        sample(
            "A field that may be absent",
            "Dashed; the bracket says when it is there, and which version brought it. What follows has two possible "
            "offsets then: 1 without it, 5 with it.",
            tag,
            Field("xid", Int("Int32"), place, when=streaming.name, since=2),
            number,
        ),
    )


def figure(id: str, title: str, layout_rows: tuple[Row, ...]) -> Figure | None:
    """Return a layout's picture in both widths; None for a layout without fields."""
    if not layout_rows:
        return None
    wide = draw(title, layout_rows)
    return Figure(id, wide, draw(title, layout_rows, NARROW) if wide.width > NARROW else None)


def _kebab(name: str) -> str:
    return snake_case(class_name(name)).replace("_", "-")


def _entry(view: View, layout: Message | Part) -> Entry:
    path, remark = _path(view.protocol, layout)
    drawn = _drawn(view.protocol, layout, anchor_of(layout))
    alternatives = tuple(
        _drawn(view.protocol, other, f"{drawn.anchor}-{_kebab(other.name)}")
        for other in (layout.alternatives if isinstance(layout, Part) else ())
    )
    return replace(drawn, alternatives=alternatives, python=_synopsis(view, layout), path=path, path_remark=remark)


def _drawn(protocol: Protocol, layout: Layout, anchor: str) -> Entry:
    layout_rows = rows(protocol, layout.fields, layout.since)
    return Entry(protocol, layout, anchor, layout_rows, figure(anchor, f"Layout of {layout.name}", layout_rows))


def _path(protocol: Protocol, layout: Message | Part) -> tuple[str, str]:
    """Return the newest class's module, and the versions that share the class."""
    groups: list[list[str]] = []
    for view in views(protocol):
        layout_of_version = view.layout(layout.name)
        if layout_of_version is None:
            continue
        if view.defined_in(layout_of_version) == view.version:
            groups.append([])
        groups[-1].append(view.module)
    *earlier, current = groups
    *same, newest = current
    remarks = [f"the same class in {joined(same)}"] if same else []
    for group in earlier:
        remarks.append(f"{joined(group)} {'has its own' if len(group) == 1 else 'share another'}")
    return f"{package_of(protocol)}.{newest}.{class_name(layout.name)}", "; ".join(remarks)


def _synopsis(view: View, layout: Message | Part) -> str:
    """Return a class with its attributes and their types."""
    block = Source(view).block(layout)
    classes = []
    for row in layout.fields:
        members = [f'    {name.upper()} = "{character}"' for character, name in row.values.items()]
        classes += [[f"class {enumeration_name(row.name)}(StrEnum):", *members]] if members else []
    for alternative in block.alternatives:
        classes.append([f"class {alternative.name}:", *_attributes(alternative.attributes)])
    if block.alternatives:
        classes.append([f"{block.name} = (", *_union(alternative.name for alternative in block.alternatives), ")"])
    else:
        classes.append([f"class {block.name}:", *_attributes(block.attributes)])
    return "\n\n".join("\n".join(lines) for lines in classes)


def _attributes(attributes: Iterable[Attribute]) -> list[str]:
    lines = []
    for attribute in attributes:
        lines.append(f"    {attribute.name}: {attribute.annotation}{' = None' if attribute.may_be_absent else ''}")
        lines += [f"    {name}: bool  # mask {mask(bit)}" for bit, name in attribute.flags]
    return lines or ["    ..."]


def _union(names: Iterable[str]) -> list[str]:
    return [f"    {'| ' if index else ''}{name}" for index, name in enumerate(names)]


def _step(older: View, newer: View) -> Step:
    protocol = newer.protocol
    own = {message.name for message in newer.own_messages} | {part.name for part in newer.own_parts}
    entries = {message.name: _entry(newer, message) for message in newer.messages}
    changed = []
    for entry in (*entries.values(), *(_entry(newer, part) for part in newer.parts)):
        if entry.layout.name in own and older.layout(entry.layout.name):
            all_rows = [row for inner in (entry, *entry.alternatives) for row in inner.rows]
            parts = [row.field.type.name for row in all_rows if isinstance(row.field.type, PartName)]
            changed.append(
                Change(
                    entry=entry,
                    added=tuple(row for row in all_rows if row.field.since == newer.version),
                    through=tuple(name for name in dict.fromkeys(parts) if name in own),
                )
            )
    return Step(
        older=protocol.versions[older.version - 1],
        newer=protocol.versions[newer.version - 1],
        facts=tuple(fact for fact in protocol.session if fact.since == newer.version),
        new=tuple(entries[message.name] for message in newer.messages if not older.layout(message.name)),
        changed=tuple(changed),
        same=tuple(message for message in newer.messages if message.name not in own),
    )
