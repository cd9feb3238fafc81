"""Choices between messages that share a tag or have none: by the session's state or by a constant."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from codegen.lowering.operations import Constant, Integer, Take
from codegen.lowering.rows import lower
from codegen.model.layouts import Message, distinguishing_offset
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
    offset: int
    """The offset of the constant that identifies the message."""
    constant: Constant | None

    @property
    def condition(self) -> str:
        """The condition on bytes and session facts."""
        conditions = []
        if self.first:
            is_one = len(self.first) == 1
            conditions.append(f"data[0] == 0x{self.first[0]:02X}" if is_one else f"data[0] in {self.first!r}")
        if self.fact:
            conditions.append(f'{self.fact} == "{self.value}"')
        if self.constant is not None:
            own = f"data[{self.offset}:{self.offset + self.constant.width}]"
            conditions.append(f'int.from_bytes({own}, "{self.constant.order}") == {self.constant.code}')
        return " and ".join(conditions)

    @property
    def construct(self) -> str:
        """The source of the StructChoice."""
        arguments = [f"{self.name}.struct"]
        if self.first:
            arguments.append(f"first={self.first!r}")
        if self.fact:
            arguments.append(f'fact=("{self.fact}", "{self.value}")')
        if self.constant is not None:
            arguments.append(f"constant=({self.offset}, {self.constant.construct}, {self.constant.code})")
        return f"StructChoice({', '.join(arguments)})"


def choices_by_sender(view: View) -> dict[str, list[Choice]]:
    """Return each sender's choices; none if each message has its own tag."""
    names = untagged_names(view)
    return {
        sender: [
            _choice(view, message) for message in view.messages if sender in message.senders and message.name in names
        ]
        for sender in ("server", "client")
    }


def untagged_names(view: View) -> set[str]:
    """Return the messages without a tag of their own."""
    names = {message.name for message in view.messages if not message.is_tagged}
    tags = Counter((message.tag, sender) for message in view.messages for sender in message.senders)
    shared = {tag for (tag, _), number in tags.items() if tag and number > 1}
    return names | {message.name for message in view.messages if message.tag in shared}


def _choice(view: View, message: Message) -> Choice:
    operations = lower(view, message.fields)
    first = message.tag.encode("ascii")
    if isinstance(operations[0], Take):
        first = bytes(operations[0].allowed)
    offset, constant = (0, None) if isinstance(operations[0], Take) else _constant(view, message)
    fact, value = (fact_of(message.when) or "", value_of(message.when)) if message.when else ("", "")
    return Choice(class_name(message.name), first, fact, value, offset, constant)


def _constant(view: View, message: Message) -> tuple[int, Constant | None]:
    """Return the offset and the constant that distinguish a message from others in the same place."""
    rivals = [
        operation
        for operation in view.messages
        if operation is not message
        and (operation.tag, operation.when) == (message.tag, message.when)
        and set(operation.senders) & set(message.senders)
    ]
    offsets = {distinguishing_offset(message, other) for other in rivals}
    distinguishing: tuple[int, Constant | None] = 0, None
    offset = 0
    for operation in lower(view, message.fields):
        if not isinstance(operation, Integer):
            break
        if isinstance(operation, Constant) and offset in offsets:
            distinguishing = offset, operation
        offset += operation.width
    return distinguishing
