"""What a version contains: the one place that looks at `since`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from codegen.spec.model import Alternative, Field, Message, Part, Protocol, parts_used


@dataclass(frozen=True)
class View:
    """The layouts of one version of a protocol."""

    protocol: Protocol
    version: int
    messages: tuple[Message, ...]
    parts: tuple[Part, ...]

    def defined_in(self, layout: Message | Part) -> int:
        """The version that brought the layout as it is in this one, the parts within it included."""
        newest = layout.since if isinstance(layout, Message) else 1
        fields = layout.fields
        if isinstance(layout, Part):
            fields += tuple(row for alternative in layout.alternatives for row in alternative.fields)
        newest = max([newest, *(row.since for row in fields)])
        inner = [self.defined_in(part) for part in self.parts if part.name in parts_used(fields)]
        return max([newest, *inner])

    @property
    def own_messages(self) -> tuple[Message, ...]:
        """The messages that are new or different in this version."""
        return tuple(message for message in self.messages if self.defined_in(message) == self.version)

    @property
    def own_parts(self) -> tuple[Part, ...]:
        """The parts that are new or different in this version."""
        return tuple(part for part in self.parts if self.defined_in(part) == self.version)


def view(protocol: Protocol, version: int) -> View:
    """The layouts of a version; ValueError if the protocol has no such version."""
    if not 1 <= version <= len(protocol.versions):
        raise ValueError(f"{protocol.name} has no version {version}; the newest is {len(protocol.versions)}")
    messages = tuple(
        replace(message, fields=_until(message.fields, version))
        for message in protocol.messages
        if message.since <= version
    )
    parts = tuple(
        replace(
            part,
            fields=_until(part.fields, version),
            alternatives=tuple(_alternative_until(alternative, version) for alternative in part.alternatives),
        )
        for part in protocol.parts
    )
    return View(protocol, version, messages, parts)


def _until(fields: tuple[Field, ...], version: int) -> tuple[Field, ...]:
    return tuple(row for row in fields if row.since <= version)


def _alternative_until(alternative: Alternative, version: int) -> Alternative:
    return replace(alternative, fields=_until(alternative.fields, version))
