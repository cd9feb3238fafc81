"""The bytes of one message of each name, row by row: as a server sent it where there is a capture, else made up."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codegen.lowering.operations import Bytes, Integer, Text
from codegen.lowering.rows import lower
from codegen.shared import ROOT
from codegen.spec.layouts import Message
from codegen.spec.model import Protocol
from codegen.spec.versions import View, view, views
from codegen.vectors.captured import messages_of
from codegen.vectors.codec import Reader, RefusedError, Written, write
from codegen.vectors.samples import Samples

CAPTURE = ROOT / "tests/captures/pg18/twophase/v4-live.walsender.jsonl.gz"
"""It has every message of the newest version."""
_LONGEST = 16


@dataclass(frozen=True)
class Line:
    """A row's bytes."""

    data: str
    """In hexadecimal, cut if there are many."""
    path: str
    value: str


@dataclass(frozen=True)
class Example:
    """A message's bytes."""

    origin: str
    """The origin of the message, as the beginning of a sentence."""
    lines: tuple[Line, ...]


def examples(protocol: Protocol, capture: Path = CAPTURE) -> dict[str, Example]:
    """Return an example of each message of the newest version, by the message's name."""
    newest = view(protocol, len(protocol.versions))
    found = {message.name: _made(newest, message) for message in newest.messages}
    return found | (_sent(protocol, capture) if protocol.has_decoder and capture.is_file() else {})


def _made(now: View, message: Message) -> Example:
    facts = dict.fromkeys((fact.name for fact in now.protocol.session), False)
    data, written = write(now, message, Samples(now, facts).usual(lower(now, message.fields)))
    return Example("An example", tuple(_lines(data, written)))


def _sent(protocol: Protocol, capture: Path) -> dict[str, Example]:
    """The fullest message of each name in a capture, of these the shortest; none that the spec does not read."""
    best: dict[str, tuple[tuple[int, int], View, Message, bytes, dict[str, Any]]] = {}
    with gzip.open(capture, "rt", encoding="utf-8") as lines:
        header = json.loads(next(lines))
        for _, data, now, facts in messages_of(protocol, views(protocol), header, lines):
            try:
                message, fields = Reader(now, data, facts).message()
            except RefusedError:
                continue  # A spec under work may know other layouts than the server.
            rank = (-len(fields), len(data))
            if message.name not in best or rank < best[message.name][0]:
                best[message.name] = (rank, now, message, data, fields)
    origin = f"As PostgreSQL {header['server_version'].split('.')[0]} sent it"
    return {
        name: Example(origin, tuple(_lines(data, write(now, message, fields)[1])))
        for name, (_, now, message, data, fields) in best.items()
    }


def _lines(data: bytes, written: list[Written]) -> Iterator[Line]:
    for one in written:
        own = data[one.start : one.end]
        shown = own[:_LONGEST].hex(" ") + (" …" if len(own) > _LONGEST else "")
        yield Line(shown, one.path, _value(one, own))


def _value(one: Written, own: bytes) -> str:
    if isinstance(one.operation, Bytes):
        text = own.decode("utf-8", "replace")
        return json.dumps(text, ensure_ascii=False) if text.isprintable() and len(own) <= 2 * _LONGEST else ""
    if isinstance(one.operation, Text):
        return json.dumps(one.value, ensure_ascii=False)
    return f"'{one.value}'" if isinstance(one.operation, Integer) and one.operation.is_character else str(one.value)
