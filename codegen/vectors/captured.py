"""Vectors from captures of servers' messages, one message of each shape."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from codegen.model.layouts import Message
from codegen.model.model import Protocol
from codegen.model.versions import View, views
from codegen.vectors.codec import Reader, facts_of

_LONGEST = 1024
"""The length in bytes above which messages are skipped."""


def captured(protocol: Protocol, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a vector for each shape of message in the captures below a folder, in the order of the files."""
    shown = views(protocol)
    shapes: set[str] = set()
    for path in sorted(folder.rglob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            header = json.loads(next(lines))
            if header.get("format") != "pgoutput-capture/1" or header.get("client_encoding") != "UTF8":
                continue
            for number, data, view, facts in messages_of(protocol, shown, header, lines):
                if len(data) > _LONGEST:
                    continue
                message, fields = Reader(view, data, facts).message()
                used_facts = facts_of(view, message, facts)
                shape = json.dumps([view.defined_in(message), message.name, used_facts, _shape(fields)])
                if shape not in shapes:
                    shapes.add(shape)
                    name = f"{path.relative_to(folder)}, message {number}"
                    yield vector(name, view, message, used_facts, data) | {"fields": fields}


def vector(name: str, view: View, message: Message | None, facts: Mapping[str, bool], data: bytes) -> dict[str, Any]:
    """Return the keys common to all vectors."""
    session = {"session": dict(facts)} if facts else {}
    sender = {"from": "client"} if message is not None and message.sender == "client" else {}
    message_entry = {"message": message.name} if message is not None else {}
    return {"name": name, "version": view.version, **message_entry, **sender, **session, "bytes": data.hex()}


def messages_of(
    protocol: Protocol, shown: tuple[View, ...], header: Mapping[str, Any], lines: Iterator[str]
) -> Iterator[tuple[int, bytes, View, dict[str, bool]]]:
    """Yield a capture's messages, each with the version of its layout and the session's facts."""
    version = header["proto_version"]
    facts = {fact.name: False for fact in protocol.session}
    facts["parallel"] = header["options"].get("streaming") == "parallel"
    messages = {message.tag: message for message in protocol.messages}
    for number, line in enumerate(lines, start=1):
        data = bytes.fromhex(json.loads(line)["data"])
        message = messages[chr(data[0])]
        yield number, data, shown[max(version, message.since) - 1], dict(facts)
        facts |= {name: value for name, value in ((message.sets, True), (message.clears, False)) if name is not None}


def _shape(value: Any) -> Any:
    """Return a message's shape: present fields, tags, and whether lists and texts are empty."""
    if isinstance(value, dict):
        return {name: _shape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [min(len(value), 2), sorted({json.dumps(_shape(item)) for item in value})]
    if isinstance(value, str):
        return value if len(value) == 1 and value.isalpha() else min(len(value), 1)
    return 0 if value == 0 else 1
