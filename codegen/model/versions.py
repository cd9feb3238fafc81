"""The content of a version: the only code that filters by `since`, and the input of all later stages."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from codegen.model.layouts import Alternative, Field, Message, Part, parts_used
from codegen.model.model import Protocol
from codegen.model.notation import PartName

_Layout = TypeVar("_Layout", Message, Part, Alternative)


@dataclass(frozen=True)
class View:
    """The layouts of one version of a protocol, with the version's rows."""

    protocol: Protocol
    version: int
    messages: tuple[Message, ...]
    parts: tuple[Part, ...]
    memory: dict[int, Any] = field(default_factory=dict, compare=False, repr=False)
    """Cached results of later stages."""

    @property
    def module(self) -> str:
        """The version's module."""
        return self.protocol.versions[self.version - 1].module

    def part(self, name: str) -> Part:
        """Return the part with the name. Raises KeyError if the version has none."""
        for part in self.parts:
            if part.name == name:
                return part
        raise KeyError(name)

    def part_of(self, row: Field) -> Part | None:
        """Return a field's part; None for another type."""
        return self.part(row.type.name) if isinstance(row.type, PartName) else None

    def layout(self, name: str) -> Message | Part | None:
        """Return the message or part with the name; None if the version has none."""
        layouts: list[Message | Part] = [*self.messages, *self.parts]
        return next((layout for layout in layouts if layout.name == name), None)

    def defined_in(self, layout: Message | Part | Alternative) -> int:
        """Return the version that introduced the layout in its present form, including its parts."""
        inner: list[Part | Alternative] = [self.part(name) for name in parts_used(layout.fields)]
        inner += layout.alternatives if isinstance(layout, Part) else ()
        rows = [row.since for row in layout.fields]
        rows += [end + 1 for end in self.ends.get(layout.name, ()) if layout.since <= end < self.version]
        return max([layout.since, *rows, *(self.defined_in(other) for other in inner)])

    @cached_property
    def ends(self) -> dict[str, list[int]]:
        """The last versions of rows, by the layout's name."""
        layouts = [*self.protocol.layouts, *self.protocol.alternatives]
        return {layout.name: [row.until for row in layout.fields if row.until is not None] for layout in layouts}

    @property
    def own_messages(self) -> tuple[Message, ...]:
        """The messages that are new or changed in this version."""
        return tuple(message for message in self.messages if self.defined_in(message) == self.version)

    @property
    def own_parts(self) -> tuple[Part, ...]:
        """The parts that are new or changed in this version."""
        return tuple(part for part in self.parts if self.defined_in(part) == self.version)


def views(protocol: Protocol) -> tuple[View, ...]:
    """Return the views of all versions, the oldest first."""
    return tuple(view(protocol, version.number) for version in protocol.versions)


def unfiltered(protocol: Protocol) -> View:
    """Return the layouts with the rows of all versions."""
    return View(protocol, len(protocol.versions), protocol.messages, protocol.parts)


def view(protocol: Protocol, version: int) -> View:
    """Return the view of a version. Raises ValueError if the protocol has no such version."""
    if not 1 <= version <= len(protocol.versions):
        raise ValueError(f"{protocol.name} has no version {version}; the newest is {len(protocol.versions)}")
    if version not in protocol.memory:
        protocol.memory[version] = _view(protocol, version)
    cached: View = protocol.memory[version]
    return cached


def _view(protocol: Protocol, version: int) -> View:
    since = _since_of_parts(protocol)
    messages = (_shown(message, message.since, version) for message in protocol.messages if message.since <= version)
    parts = (
        replace(
            _shown(part, since[part.name], version),
            alternatives=tuple(
                _shown(other, max(other.since, since[part.name]), version)
                for other in part.alternatives
                if other.since <= version
            ),
        )
        for part in protocol.parts
        if since.get(part.name, version + 1) <= version
    )
    return View(protocol, version, tuple(messages), tuple(parts))


def _shown(layout: _Layout, since: int, version: int) -> _Layout:
    """Return a layout with the rows of a version; no row is older than the layout."""
    rows = (replace(row, since=max(row.since, since)) for row in layout.fields if row.is_in(version))
    return replace(layout, since=since, fields=tuple(rows))


def _since_of_parts(protocol: Protocol) -> dict[str, int]:
    """Return the first version with a message that contains the part, by part."""
    parts = {part.name: part for part in protocol.parts}
    since_by_part: dict[str, int] = {}

    def visit(fields: tuple[Field, ...], since: int) -> None:
        for row in fields:
            for name in parts_used((row,)):
                first = max(since, row.since)
                if name in parts and first < since_by_part.get(name, first + 1):
                    since_by_part[name] = first
                    visit(parts[name].fields, first)
                    for other in parts[name].alternatives:
                        visit(other.fields, max(first, other.since))

    for message in protocol.messages:
        visit(message.fields, message.since)
    return since_by_part
