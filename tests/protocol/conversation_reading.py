"""The recorded conversations of clients and servers, by connection and by message."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from logicalrep_protocol.pgwire import Session

FOLDER = Path(__file__).parent / "conversations"
RECORDED = sorted(FOLDER.glob("*.jsonl.gz"))

Chunks = list[tuple[Any, bytes]]
"""The bytes of each piece that came, and the side that sent it."""


def connections(path: Path) -> Iterator[Chunks]:
    """The connections of a file, each as it was recorded."""
    chunks: dict[int, Chunks] = defaultdict(list)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        header = json.loads(next(lines))
        assert header["format"] == "pgwire-conversation/1"
        for line in lines:
            piece = json.loads(line)
            chunks[piece["connection"]].append((piece["from"], bytes.fromhex(piece["data"])))
    yield from chunks.values()


def decoded(chunks: Chunks) -> list[tuple[str, bytes, Any, Session, dict[str, Any]]]:
    """Each message with its sender, its bytes, and the session's facts when it came."""
    session, messages = Session(), []
    for sender, data in chunks:
        facts = dict(session.facts)
        for whole, message in session.receive(data, sender=sender):
            messages.append((sender, whole, message, session, facts))
            facts = dict(session.facts)
    assert session.pending == {"server": 0, "client": 0}
    return messages
