"""Choices between messages that share a tag or have none: by the session's state or by a constant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from codegen.lowering.operations import Constant, Integer, Operations, Take
from codegen.lowering.rows import lower
from codegen.model.layouts import Message
from codegen.model.model import fact_of, value_of
from codegen.model.names import class_name
from codegen.model.versions import View


@dataclass(frozen=True)
class Choice:
    """A message without a tag of its own."""

    name: str
    """The message's class."""
    first: bytes
    """The legal first bytes; empty for any."""
    fact: str
    """The session fact that identifies the message; empty for none."""
    value: str
    constants: tuple[tuple[int, bytes], ...]
    """The offsets and bytes of leading constants, without the tag."""

    @property
    def condition(self) -> str:
        """The condition on bytes and session facts; empty for none."""
        conditions = []
        if self.first:
            is_one = len(self.first) == 1
            conditions.append(f"data[offset] == 0x{self.first[0]:02X}" if is_one else f"data[offset] in {self.first!r}")
        if self.fact:
            conditions.append(f'{self.fact} == "{self.value}"')
        conditions += [f"data.startswith({code!r}, {_place(offset)})" for offset, code in self.constants]
        return " and ".join(conditions)

    @property
    def construct(self) -> str:
        """The source of the StructChoice."""
        arguments = [f"{self.name}.struct"]
        if self.first:
            arguments.append(f"first={self.first!r}")
        if self.fact:
            arguments.append(f'fact=("{self.fact}", "{self.value}")')
        if self.constants:
            arguments.append(f"constants={self.constants!r}")
        return f"StructChoice({', '.join(arguments)})"


def _place(offset: int) -> str:
    return f"offset + {offset}" if offset else "offset"


def choices_by_sender(view: View) -> dict[str, list[Choice]]:
    """Return each sender's choices; none if each message has its own tag."""
    names = untagged_names(view)
    return {
        sender: [
            _choice(view, message)
            for message in sorted(view.messages, key=lambda message: message.is_tagged)
            if sender in message.senders and message.name in names
        ]
        for sender in ("server", "client")
    }


def untagged_names(view: View) -> set[str]:
    """Return the messages without a tag of their own, and those that a session fact allows."""
    names = {message.name for message in view.messages if not message.is_tagged or message.when is not None}
    tags = Counter((message.tag, sender) for message in view.messages for sender in message.senders)
    shared = {tag for (tag, _), number in tags.items() if tag and number > 1}
    return names | {message.name for message in view.messages if message.tag in shared}


def _choice(view: View, message: Message) -> Choice:
    operations = lower(view, message.fields)
    first = message.tag.encode("ascii")
    if isinstance(operations[0], Take) and operations[0].width == 1:
        first = bytes(operations[0].allowed)
    fact, value = (fact_of(message.when) or "", value_of(message.when)) if message.when else ("", "")
    constants = tuple((offset, code) for offset, code in _constants(operations) if offset or not message.tag)
    return Choice(class_name(message.name), first, fact, value, constants)


def _constants(operations: Operations) -> Iterator[tuple[int, bytes]]:
    """Yield the constants among the leading integers, with their offsets; a length may differ in a wrong message."""
    offset = 0
    for operation in operations:
        if not isinstance(operation, Integer):
            return
        if isinstance(operation, Constant) and not operation.is_length:
            yield offset, operation.data
        offset += operation.width
