"""The distinction of messages that share a tag or have none: by what a session waits for, or by a constant."""

from __future__ import annotations

import re
from collections import Counter

from codegen.lowering.operations import Constant, Integer, Take
from codegen.lowering.rows import lower
from codegen.spec.model import Message, fact_of, told_apart, value_of
from codegen.spec.names import class_name
from codegen.spec.versions import View

Choices = dict[str, list[tuple[str, str, str]]]
"""The message's class by sender, by what a session waits for or the tag, and by a condition on a constant."""


def tell_apart(now: View) -> Choices:
    """The choices for each sender; none where each message has a tag of its own."""
    names = told_apart_names(now)
    if not names:
        return {}
    return {
        sender: [
            (_awaited(message), _constant(now, message), class_name(message.name))
            for message in now.messages
            if sender in message.senders and message.name in names
        ]
        for sender in ("server", "client")
    }


def told_apart_names(now: View) -> set[str]:
    """The messages without a tag of their own."""
    names = {message.name for message in now.messages if not message.is_tagged}
    tags = Counter((message.tag, sender) for message in now.messages for sender in message.senders)
    shared = {tag for (tag, _), number in tags.items() if tag and number > 1}
    return names | {message.name for message in now.messages if message.tag in shared}


def told_formats(choices: Choices) -> set[str]:
    """The formats of the constants."""
    text = " ".join(constant for those in choices.values() for _, constant, _ in those)
    return set(re.findall(r"_(\w)\.unpack_from", text))


def _awaited(message: Message) -> str:
    conditions = [f"data[0] == 0x{ord(message.tag):02X}"] if message.is_tagged else []
    if message.when is not None:
        conditions.append(f'{fact_of(message.when)} == "{value_of(message.when)}"')
    return " and ".join(conditions)


def _constant(now: View, message: Message) -> str:
    """The condition on the bytes that tells a message from others that come in the same place."""
    operations = lower(now, message.fields)
    first = operations[0]
    if isinstance(first, Take) and first.allowed:
        return f"data[0] in {first.allowed}"
    others = [
        one
        for one in now.messages
        if one is not message
        and (one.tag, one.when) == (message.tag, message.when)
        and set(one.senders) & set(message.senders)
    ]
    offsets = {told_apart(message, other) for other in others}
    found = None
    offset = 0
    for one in operations:
        if not isinstance(one, Integer):
            break
        if isinstance(one, Constant) and offset in offsets:
            found = f"_{one.letter}.unpack_from(data, {offset})[0] == {one.code}"
        offset += one.width
    return found or ""
