"""Checks of facts about servers and pages, in a spec that could be read completely."""

from __future__ import annotations

from codegen.model.layouts import Alternative, Field, Message, Part, attributes
from codegen.model.model import Protocol
from codegen.model.nodes import Findings, allowed
from codegen.model.notation import Int, String


def check(protocol: Protocol, findings: Findings) -> None:
    """Add a finding for every inconsistency."""
    for message in protocol.messages:
        _check_versions(protocol, message, findings)
        _check_keys(protocol, message, findings)
        _check_encoding(protocol, message, findings)
        _check_printing(message, [], findings)
    for part in protocol.parts:
        _check_printing(part, [], findings)
        for alternative in part.alternatives:
            _check_printing(alternative, [other for other in part.alternatives if other is not alternative], findings)


def _check_versions(protocol: Protocol, message: Message, findings: Findings) -> None:
    if message.also_since is not None and message.also_since >= message.since:
        text = f"{message.name} is also sent since version {message.also_since}"
        findings.add(message.place, f"{text}, but it exists since version {message.since} anyway")
    brought = max((version.server for version in protocol.versions[: message.since]), default=0)
    if message.release is not None and message.release <= brought:
        text = f"{message.name} claims to come with release {message.release}"
        findings.add(message.place, f"{text}, but its version came with release {brought}")


def _check_keys(protocol: Protocol, message: Message, findings: Findings) -> None:
    """A message describes the object of an integer with a named type; a row that looks it up must have that type."""
    keys = [row.name for row in message.fields if _is_key(message, row) and row.repeat is None]
    if message.describes is not None and message.describes not in keys:
        text = f"{message.name}: 'describes' names {message.describes!r}, which is not a number that is always present"
        findings.add(message.place, f"{text}; {allowed(keys, message.describes)}")
    described = {
        other.name: row.named_type for other in protocol.messages for row in other.fields if row.name == other.describes
    }
    first_versions = {other.name: other.since for other in protocol.messages}
    for row in message.fields:
        where = f"{message.name}.{row.name}"
        if row.looks_up is None:
            continue
        if row.looks_up not in described:
            near = allowed(described, row.looks_up)
            findings.add(row.place, f"{where}: 'looks up' names {row.looks_up!r}, which describes nothing; {near}")
        elif described[row.looks_up] is None:
            continue  # The message that describes has the finding.
        elif first_versions[row.looks_up] > row.since:
            text = f"what looks up {row.looks_up} is older than that message, of version {first_versions[row.looks_up]}"
            findings.add(row.place, f"{where}: {text}")
        elif not _is_key(message, row) or row.named_type != described[row.looks_up]:
            key = f"an integer of type {described[row.looks_up]} that is always present"
            findings.add(row.place, f"{where}: what looks up {row.looks_up} must be {key}")


def _is_key(message: Message, row: Field) -> bool:
    """Return whether a row is an attribute of the message in each version, with a number of a named type."""
    return isinstance(row.type, Int) and row.named_type is not None and row in _constant_attributes(message)


def _constant_attributes(message: Message) -> tuple[Field, ...]:
    """Return the attributes that the message always has, in each of its versions."""
    rows = attributes(message.fields)
    return tuple(row for row in rows if row.when is None and row.until is None and row.since == message.since)


def _check_encoding(protocol: Protocol, message: Message, findings: Findings) -> None:
    """A message tells the encoding by two texts: the setting's name and its value."""
    if message.tells_encoding is None:
        return
    texts = [row.name for row in _constant_attributes(message) if isinstance(row.type, String) and row.repeat is None]
    name, setting, value = message.encoding_fields
    if not (name and setting and value):
        text = f"is {message.tells_encoding!r}; 'SETTING in FIELD: FIELD' is expected"
    elif name not in texts or value not in texts:
        wrong = value if name in texts else name
        text = f"names {wrong!r}, which is not a text that is always present; {allowed(texts, wrong)}"
    elif not protocol.encodings:
        text = "needs the 'encodings' of the protocol"
    else:
        return
    findings.add(message.place, f"{message.name}: 'tells encoding' {text}")


def _check_printing(layout: Message | Part | Alternative, siblings: list[Alternative], findings: Findings) -> None:
    for row in layout.fields:
        printed = [
            inner.name for other in siblings if row.printed_under in other.fields[0].constants for inner in other.fields
        ]
        if row.printed_under is not None and row.name not in printed:
            text = f"no other alternative with the tag {row.printed_under!r} has such a field"
            findings.add(row.place, f"{layout.name}.{row.name}: {text}")
