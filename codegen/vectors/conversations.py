"""Recorded conversations of real clients and servers: both sides' messages, and the state after each.

Like the readers of single messages, this code follows only the model and shares no code with the generated session.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codegen.lowering.operations import Constant, Integer, Measure
from codegen.lowering.rows import lower
from codegen.model.layouts import OUTSIDE, Message
from codegen.model.model import Protocol
from codegen.model.versions import View, views
from codegen.shared import ROOT
from codegen.vectors.codec import Fields, Reader, RefusedError
from codegen.vectors.sequences import follow

CONVERSATIONS = ROOT / "tests" / "protocol" / "conversations"
"""The folder of the recorded conversations."""


@dataclass(frozen=True)
class SentMessage:
    """A message of a conversation, and the state for the next message."""

    sender: str
    data: bytes
    view: View
    message: Message
    fields: Fields
    state: dict[str, Any]


@dataclass(frozen=True)
class Connection:
    """A connection of a client and a server."""

    name: str
    server: int
    """The release of the server."""
    messages: Iterator[SentMessage]
    """The messages in the order of completion, up to a change of the encoding to other than UTF-8. Raises RefusedError
    for bytes outside of the spec."""


def connections(protocol: Protocol, folder: Path) -> Iterator[Connection]:
    """Yield the connections below a folder, in the order of the files."""
    for path in sorted(folder.rglob("*.jsonl.gz")):
        pieces: dict[int, list[tuple[str, bytes]]] = defaultdict(list)
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            header = json.loads(next(lines))
            if header.get("format") != f"{protocol.name}-conversation/1":
                continue
            for piece in map(json.loads, lines):
                pieces[piece["connection"]].append((piece["from"], bytes.fromhex(piece["data"])))
        for number, chunks in enumerate(pieces.values(), start=1):
            name = f"{path.name.removesuffix('.jsonl.gz')}, connection {number}"
            yield Connection(name, header["server"], _messages(protocol, chunks, name))


def conversations(protocol: Protocol, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield each connection as a sequence."""
    for connection in connections(protocol, folder):
        entries = [
            {"message": sent.message.name}
            | ({"from": "client"} if sent.sender == "client" else {})
            | {"bytes": sent.data.hex(), "fields": sent.fields, "state": sent.state}
            for sent in connection.messages
        ]
        yield {"name": connection.name, "version": len(protocol.versions), "session": {}, "messages": entries}


def _messages(protocol: Protocol, chunks: list[tuple[str, bytes]], name: str) -> Iterator[SentMessage]:
    shown = views(protocol)
    view, block = shown[-1], OUTSIDE
    facts: dict[str, Any] = {fact.name: next(iter(fact.values), False) for fact in protocol.session}
    pending = {sender: b"" for sender, _ in chunks}
    for sender, piece in chunks:
        pending[sender] += piece
        while (framed := _framed(view, shown, pending[sender], facts, sender)) is not None:
            view, size = framed
            data, pending[sender] = pending[sender][:size], pending[sender][size:]
            message, fields = Reader(view, data, facts).message(sender)
            setting, encoding, value = message.encoding_fields
            if message.tells_encoding and fields[setting] == encoding and fields[value] != "UTF8":
                return
            # A client may be ahead of the server, so only the server's messages open and close blocks.
            if message.sender != "both" or sender == "server":
                block = follow(message, block, facts)
            yield SentMessage(sender, data, view, message, fields, {"block": block, "version": view.version} | facts)
    if any(pending.values()):
        raise RefusedError("tag", 0, f"no whole message at the end of {name}")


def _framed(
    view: View, shown: tuple[View, ...], data: bytes, facts: dict[str, Any], sender: str
) -> tuple[View, int] | None:
    """Return the version and the size of the message that begins with the bytes; None if it is incomplete.

    A constant in the message may decide the version.
    """
    if not data:
        return None
    for version_view in (view, *reversed(shown)):
        message = Reader(version_view, data, facts).candidate(sender)
        if message is not None:
            size = _size(version_view, message, data)
            return (version_view, size) if size <= len(data) else None
    return None


def _size(view: View, message: Message, data: bytes) -> int:
    offset = 0
    for operation in lower(view, message.fields):
        assert isinstance(operation, Integer)
        if (isinstance(operation, Measure) and not operation.of) or (
            isinstance(operation, Constant) and operation.is_length
        ):
            length_bytes = data[offset : offset + operation.width]
            return offset + (
                int.from_bytes(length_bytes, operation.order) if len(length_bytes) == operation.width else len(data) + 1
            )
        offset += operation.width
    return offset
