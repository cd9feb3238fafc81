"""Recorded conversations of real clients and servers: whole messages of both sides, and the state after each.

This follows the model alone, as the readers of single messages do, and shares nothing with the generated session.
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
from codegen.shared import ROOT
from codegen.spec.layouts import OUTSIDE, Message
from codegen.spec.model import Protocol
from codegen.spec.versions import View, views
from codegen.vectors.codec import Fields, Reader, RefusedError
from codegen.vectors.sequences import follow

CONVERSATIONS = ROOT / "tests" / "protocol" / "conversations"
"""The folder of the recorded conversations."""


@dataclass(frozen=True)
class Said:
    """A message of a conversation, and the state for the one that comes next."""

    sender: str
    data: bytes
    now: View
    message: Message
    fields: Fields
    state: dict[str, Any]


@dataclass(frozen=True)
class Connection:
    """A connection of a client and a server."""

    name: str
    server: int
    """The release of the server."""
    messages: Iterator[Said]
    """Its messages in the order in which they were complete, up to one that tells another encoding than UTF-8.

    RefusedError at bytes that the spec does not read.
    """


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
            yield Connection(name, header["server"], _said(protocol, chunks, name))


def conversations(protocol: Protocol, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield each connection in the form of a sequence."""
    for one in connections(protocol, folder):
        entries = [
            {"message": said.message.name}
            | ({"from": "client"} if said.sender == "client" else {})
            | {"bytes": said.data.hex(), "fields": said.fields, "state": said.state}
            for said in one.messages
        ]
        yield {"name": one.name, "version": len(protocol.versions), "session": {}, "messages": entries}


def _said(protocol: Protocol, chunks: list[tuple[str, bytes]], name: str) -> Iterator[Said]:
    shown = views(protocol)
    now, block = shown[-1], OUTSIDE
    facts: dict[str, Any] = {fact.name: next(iter(fact.values), False) for fact in protocol.session}
    pending = {sender: b"" for sender, _ in chunks}
    for sender, piece in chunks:
        pending[sender] += piece
        while (begun := _begun(now, shown, pending[sender], facts, sender)) is not None:
            now, size = begun
            data, pending[sender] = pending[sender][:size], pending[sender][size:]
            message, fields = Reader(now, data, facts).message(sender)
            setting, encoding, value = message.encoding_fields
            if message.tells_encoding and fields[setting] == encoding and fields[value] != "UTF8":
                return
            # A client may be ahead of what the server has read, so that blocks are the server's where both send.
            if message.sender != "both" or sender == "server":
                block = follow(message, block, facts)
            yield Said(sender, data, now, message, fields, {"block": block, "version": now.version} | facts)
    if any(pending.values()):
        raise RefusedError("tag", 0, f"no whole message at the end of {name}")


def _begun(
    now: View, shown: tuple[View, ...], data: bytes, facts: dict[str, Any], sender: str
) -> tuple[View, int] | None:
    """Return the version and the size of the message that bytes begin with; None where it is not whole.

    It is of another version than the session where a constant says so.
    """
    if not data:
        return None
    for one in (now, *reversed(shown)):
        message = Reader(one, data, facts).begun(sender)
        if message is not None:
            size = _size(one, message, data)
            return (one, size) if size <= len(data) else None
    return None


def _size(now: View, message: Message, data: bytes) -> int:
    offset = 0
    for one in lower(now, message.fields):
        assert isinstance(one, Integer)
        if (isinstance(one, Measure) and not one.of) or (isinstance(one, Constant) and one.is_length):
            told = data[offset : offset + one.width]
            return offset + (int.from_bytes(told, one.order) if len(told) == one.width else len(data) + 1)
        offset += one.width
    return offset
