"""A protocol as plain frozen data: what spec/ says, checked, and nothing that is decided elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from codegen.spec.layouts import Alternative, Field, Message, NamedType, Part
from codegen.spec.notation import Int, String
from codegen.spec.places import Place


@dataclass(frozen=True)
class Version:
    """A version of the protocol."""

    number: int
    module: str
    server: int
    doc: str
    place: Place = field(compare=False)
    name: str = ""
    """The name that people have for it, `3.2`; empty for its number."""

    @property
    def called(self) -> str:
        """The name that people have for it."""
        return self.name or str(self.number)


@dataclass(frozen=True)
class SessionFact:
    """Something that a session knows and a layout may depend on."""

    name: str
    since: int
    doc: str
    place: Place = field(compare=False)
    values: Mapping[str, str] = field(default_factory=dict)
    """Its values and what they mean, the first one at the start; empty for a fact that holds or not."""


@dataclass(frozen=True)
class Protocol:
    """All that one folder of spec/ says, messages and parts in the order of the documentation's page."""

    name: str
    package: str
    """The package of its modules, within the generated one; empty where they are in that itself."""
    byte_order: Literal["big", "little"]
    """The order of the bytes of its integers."""
    software: str
    """The software whose releases brought its versions and messages; empty where nothing says so."""
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
    """The codecs of Python by the names that messages have for encodings."""
    types: Mapping[str, NamedType]
    messages: tuple[Message, ...]
    parts: tuple[Part, ...]
    place: Place = field(compare=False)
    is_alone: bool = False
    """True for a package by itself, of another project; false for one within ours."""
    memory: dict[int, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """The views of its versions that were made already, which later stages need again and again."""

    @property
    def has_decoder(self) -> bool:
        """True if a Decoder keeps the state of its sessions, of which it reads the server's messages alone."""
        return bool(self.blocks) and not self.package

    @property
    def kept_facts(self) -> tuple[SessionFact, ...]:
        """The session facts that messages set and clear, so that a decoder knows them by itself."""
        kept = {fact_of(name) for message in self.messages for name in (message.sets, message.clears)}
        return tuple(fact for fact in self.session if fact.name in kept)

    @property
    def given_facts(self) -> tuple[SessionFact, ...]:
        """The other session facts, which a decoder has to be told."""
        return tuple(fact for fact in self.session if fact not in self.kept_facts)

    @property
    def layout_facts(self) -> tuple[SessionFact, ...]:
        """The session facts that layouts depend on, so that `parse` has to be told."""
        named = {row.when for message in self.messages for row in message.fields}
        named |= {fact_of(message.when) for message in self.messages}
        return tuple(fact for fact in self.session if fact.name in named)

    @property
    def row_facts(self) -> tuple[SessionFact, ...]:
        """The session facts that rows depend on."""
        named = {row.when for message in self.messages for row in message.fields}
        return tuple(fact for fact in self.session if fact.name in named)

    @property
    def fact_values(self) -> dict[str, tuple[str, ...]]:
        """The values of the session facts that have some, the first one at the start."""
        return {fact.name: tuple(fact.values) for fact in self.session if fact.values}

    @property
    def version_names(self) -> dict[int, str]:
        """The names that people have for its versions, where these are not their numbers."""
        return {version.number: version.name for version in self.versions if version.name}

    @property
    def enumerations(self) -> list[NamedType]:
        """The named types of its rows that have named values."""
        rows = [row for layout in [*self.layouts, *self.alternatives] for row in layout.fields]
        used = {row.named_type for row in rows}
        return [named for named in self.types.values() if named.values and named.name in used]

    @property
    def has_texts(self) -> bool:
        """True if there are texts, which take an encoding."""
        layouts = [*self.layouts, *self.alternatives]
        return any(isinstance(row.type, String) for layout in layouts for row in layout.fields)

    @property
    def layouts(self) -> list[Message | Part]:
        """Messages and parts, in the order of the page."""
        return [*self.messages, *self.parts]

    @property
    def alternatives(self) -> list[Alternative]:
        """The alternatives of all parts."""
        return [other for part in self.parts for other in part.alternatives]

    @property
    def parse_arguments(self) -> tuple[str, ...]:
        """The names of the arguments of `parse` besides the bytes."""
        return (*(fact.name for fact in self.layout_facts), *(["encoding"] if self.has_texts else []))

    def part(self, name: str) -> Part:
        """The part of that name; KeyError if there is none."""
        for part in self.parts:
            if part.name == name:
                return part
        raise KeyError(name)

    def official(self, layout: Message | Part) -> str:
        """The address in the documentation: on the page of its release, if not on the spec's."""
        release = layout.release if isinstance(layout, Message) else None
        page = self.page if release is None else re.sub(r"/docs/\d+/", f"/docs/{release}/", self.page)
        return page if layout.ref is None else f"{page}#{self.anchor}{layout.ref}"

    @property
    def paths(self) -> list[str]:
        """The dotted paths of all classes and functions of named types."""
        paths = {path for named in self.types.values() for path in (named.path, named.made_by)}
        return sorted(path for path in paths if "." in path)

    def signed(self, row: Field) -> bool:
        """Return whether an integer is signed: its name says so; without a name all but Int8 are."""
        if row.named_type is not None:
            return self.types[row.named_type].signed
        return isinstance(row.type, Int) and row.type.base != "Int8"


def fact_of(condition: str | None) -> str | None:
    """The session fact in `fact` or `fact = value`."""
    return None if condition is None else condition.partition(" = ")[0]


def value_of(condition: str) -> str:
    """The value in `fact = value`; empty without one."""
    return condition.partition(" = ")[2]
