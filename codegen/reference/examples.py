"""An example of each message, row by row: recorded bytes, or else generated ones."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from codegen.lowering.operations import Bytes, Integer, Text
from codegen.lowering.rows import lower
from codegen.model.layouts import Message
from codegen.model.model import Protocol
from codegen.model.versions import View, view, views
from codegen.shared import ROOT
from codegen.vectors.captured import messages_of
from codegen.vectors.codec import Fields, Reader, RefusedError, Written, write
from codegen.vectors.conversations import CONVERSATIONS, connections
from codegen.vectors.samples import Samples

CAPTURE = ROOT / "tests/captures/pg18/twophase/v4-live.walsender.jsonl.gz"
"""A capture with every message of the newest version."""
_LONGEST = 16


@dataclass(frozen=True)
class Line:
    """A row's bytes."""

    data: str
    """Hexadecimal, truncated if long."""
    path: str
    value: str


@dataclass(frozen=True)
class Example:
    """A message's bytes."""

    origin: str
    """The message's origin, as the beginning of a sentence."""
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class _Sent:
    origin: str
    server: int
    view: View
    message: Message
    data: bytes
    fields: Fields

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """The sort key: the newest layout first, then the newest server, the most rows, the fewest bytes."""
        written = write(self.view, self.message, self.fields)[1]
        rows = {re.sub(r"\d+", "", row.path) for row in written if row.end > row.start}
        return (-self.view.defined_in(self.message), -self.server, -len(rows), len(self.data))


def examples(protocol: Protocol, capture: Path = CAPTURE, conversations: Path = CONVERSATIONS) -> dict[str, Example]:
    """Return an example of each message of the newest version, by name."""
    newest = view(protocol, len(protocol.versions))
    generated = {message.name: _made(newest, message) for message in newest.messages}
    best: dict[str, _Sent] = {}
    captured = _captured(protocol, capture) if protocol.has_decoder and capture.is_file() else ()
    for sent in (*captured, *_sent_messages(protocol, conversations)):
        best[sent.message.name] = min(best.get(sent.message.name, sent), sent, key=lambda candidate: candidate.rank)
    return generated | {
        name: Example(sent.origin, tuple(_lines(sent.data, write(sent.view, sent.message, sent.fields)[1])))
        for name, sent in best.items()
    }


def _made(view: View, message: Message) -> Example:
    facts = dict.fromkeys((fact.name for fact in view.protocol.session), False)
    data, written = write(view, message, Samples(view, facts).usual(lower(view, message.fields)))
    return Example("Made up", tuple(_lines(data, written)))


def _captured(protocol: Protocol, capture: Path) -> Iterator[_Sent]:
    """Yield a capture's messages that the spec covers."""
    with gzip.open(capture, "rt", encoding="utf-8") as lines:
        header = json.loads(next(lines))
        server = int(header["server_version"].split(".")[0])
        for _, data, view, facts in messages_of(protocol, views(protocol), header, lines):
            try:
                message, fields = Reader(view, data, facts).message()
            except RefusedError:
                continue  # A spec under work may know other layouts than the server.
            yield _Sent(f"As PostgreSQL {server} sent it", server, view, message, data, fields)


def _sent_messages(protocol: Protocol, folder: Path) -> Iterator[_Sent]:
    """Yield the messages of recorded conversations, up to each connection's first message outside of the spec."""
    for connection in connections(protocol, folder):
        origins = {
            "server": f"As PostgreSQL {connection.server} sent it",
            "client": f"As a client sent it to PostgreSQL {connection.server}",
        }
        try:
            for sent in connection.messages:
                yield _Sent(origins[sent.sender], connection.server, sent.view, sent.message, sent.data, sent.fields)
        except RefusedError:
            continue  # The rest of the connection follows from what was not read.


def _lines(data: bytes, written: list[Written]) -> Iterator[Line]:
    for row in written:
        own = data[row.start : row.end]
        shown = own[:_LONGEST].hex(" ") + (" …" if len(own) > _LONGEST else "")
        yield Line(shown, row.path, _value(row, own))


def _value(row: Written, own: bytes) -> str:
    if isinstance(row.operation, Bytes):
        text = own.decode("utf-8", "replace")
        return json.dumps(text, ensure_ascii=False) if text.isprintable() and len(own) <= 2 * _LONGEST else ""
    if isinstance(row.operation, Text):
        return json.dumps(row.value, ensure_ascii=False)
    return f"'{row.value}'" if isinstance(row.operation, Integer) and row.operation.is_character else str(row.value)
