"""A protocol as plain frozen data: the checked content of spec/."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from codegen.model.layouts import Alternative, Field, Message, NamedType, Part
from codegen.model.notation import Int, String
from codegen.model.places import Place


@dataclass(frozen=True)
class Version:
    """A version of the protocol."""

    number: int
    module: str
    server: int
    doc: str
    place: Place = field(compare=False)
    name: str = ""
    """The name, such as `3.2`; empty if it is the number."""

    @property
    def display_name(self) -> str:
        """The name, or else the number."""
        return self.name or str(self.number)


@dataclass(frozen=True)
class SessionFact:
    """A fact of a session, on which layouts may depend."""

    name: str
    since: int
    doc: str
    place: Place = field(compare=False)
    values: Mapping[str, str] = field(default_factory=dict)
    """The values and their meaning, the initial value first; empty for a fact that is true or false."""


@dataclass(frozen=True)
class Protocol:
    """The content of one folder of spec/; messages and parts are in the order of the documentation's page."""

    name: str
    package: str
    """The subpackage with the protocol's modules; empty for the generated package itself."""
    byte_order: Literal["big", "little"]
    """The byte order of integers."""
    software: str
    """The software whose releases introduced versions and messages; empty if unspecified."""
    title: str
    page: str
    anchor: str
    doc: str
    note: str
    checked_against: tuple[str, ...]
    versions: tuple[Version, ...]
    session: tuple[SessionFact, ...]
    outside: str
    """The place between blocks in a sentence; empty for `outside of all blocks`."""
    blocks: Mapping[str, str]
    callbacks: tuple[str, ...]
    encodings: Mapping[str, str]
    """Python's codecs by the names of encodings in messages."""
    types: Mapping[str, NamedType]
    messages: tuple[Message, ...]
    parts: tuple[Part, ...]
    place: Place = field(compare=False)
    is_alone: bool = False
    """True for another project's package; false within logicalrep's package."""
    memory: dict[int, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Cached views by version."""

    @property
    def has_decoder(self) -> bool:
        """True if the protocol has a Decoder, which reads only the server's messages."""
        return bool(self.blocks) and not self.package

    @property
    def tracked_facts(self) -> tuple[SessionFact, ...]:
        """The session facts that messages set and clear, so that a decoder tracks them."""
        kept = {fact_of(name) for message in self.messages for name in (message.sets, message.clears)}
        return tuple(fact for fact in self.session if fact.name in kept)

    @property
    def argument_facts(self) -> tuple[SessionFact, ...]:
        """The session facts that are arguments of a decoder."""
        return tuple(fact for fact in self.session if fact not in self.tracked_facts)

    @property
    def layout_facts(self) -> tuple[SessionFact, ...]:
        """The session facts on which layouts depend: arguments of `parse`."""
        named = {row.when for message in self.messages for row in message.fields}
        named |= {fact_of(message.when) for message in self.messages}
        return tuple(fact for fact in self.session if fact.name in named)

    @property
    def row_facts(self) -> tuple[SessionFact, ...]:
        """The session facts on which rows depend."""
        named = {row.when for message in self.messages for row in message.fields}
        return tuple(fact for fact in self.session if fact.name in named)

    @property
    def fact_values(self) -> dict[str, tuple[str, ...]]:
        """The values of session facts with values, the initial value first."""
        return {fact.name: tuple(fact.values) for fact in self.session if fact.values}

    @property
    def version_names(self) -> dict[int, str]:
        """The names of versions, if not their numbers."""
        return {version.number: version.name for version in self.versions if version.name}

    @property
    def enumerations(self) -> list[NamedType]:
        """The named types of rows that have named values."""
        rows = [row for layout in [*self.layouts, *self.alternatives] for row in layout.fields]
        used = {row.named_type for row in rows}
        return [named for named in self.types.values() if named.values and named.name in used]

    @property
    def has_texts(self) -> bool:
        """True if there are texts, whose encoding is an argument."""
        layouts = [*self.layouts, *self.alternatives]
        return any(isinstance(row.type, String) for layout in layouts for row in layout.fields)

    @property
    def layouts(self) -> list[Message | Part]:
        """Messages and parts, in the page's order."""
        return [*self.messages, *self.parts]

    @property
    def alternatives(self) -> list[Alternative]:
        return [other for part in self.parts for other in part.alternatives]

    @property
    def parse_arguments(self) -> tuple[str, ...]:
        """The arguments of `parse` other than the bytes."""
        return (*(fact.name for fact in self.layout_facts), *(["encoding"] if self.has_texts else []))

    def part(self, name: str) -> Part:
        """Return the part with the name. Raises KeyError if there is none."""
        for part in self.parts:
            if part.name == name:
                return part
        raise KeyError(name)

    def official(self, layout: Message | Part) -> str:
        """Return the layout's URL in the documentation of its release, by default of the spec's release."""
        release = layout.release if isinstance(layout, Message) else None
        page = self.page if release is None else re.sub(r"/docs/\d+/", f"/docs/{release}/", self.page)
        return page if layout.ref is None else f"{page}#{self.anchor}{layout.ref}"

    @property
    def paths(self) -> list[str]:
        """The dotted paths of the classes and functions of named types."""
        paths = {path for named in self.types.values() for path in (named.path, named.made_by)}
        return sorted(path for path in paths if "." in path)

    def signed(self, row: Field) -> bool:
        """Return whether an integer is signed: by its named type; without one all types but Int8 are signed."""
        if row.named_type is not None:
            return self.types[row.named_type].signed
        return isinstance(row.type, Int) and row.type.base != "Int8"


def fact_of(condition: str | None) -> str | None:
    """Return the session fact of `fact` or `fact = value`."""
    return None if condition is None else condition.partition(" = ")[0]


def value_of(condition: str) -> str:
    """Return the value of `fact = value`; empty without a value."""
    return condition.partition(" = ")[2]
