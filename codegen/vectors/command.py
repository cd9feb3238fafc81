"""`python -m codegen vectors DIR`: a file for each protocol version, captured messages, sequences, and the schema."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from codegen.lowering.rows import lower
from codegen.model.layouts import Message
from codegen.model.model import Protocol
from codegen.model.reader import load_either
from codegen.model.versions import View, view, views
from codegen.shared import ROOT, add_spec
from codegen.vectors.captured import captured, vector
from codegen.vectors.codec import Reader, RefusedError, awaited, facts_of, write
from codegen.vectors.conversations import CONVERSATIONS, conversations
from codegen.vectors.samples import Samples, damaged
from codegen.vectors.sequences import sequences

SCHEMA = Path(__file__).parent / "vectors.schema.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="DIR", help="the folder that the files are written to")
    add_spec(parser)
    parser.add_argument("--captures", type=Path, default=ROOT / "tests" / "captures", help="the folder of the captures")
    parser.add_argument(
        "--conversations", type=Path, default=CONVERSATIONS, help="the folder of the conversations of two sides"
    )


def run(options: argparse.Namespace) -> int:
    """Write the files and return the exit code. Raises SpecError for a faulty spec."""
    protocols = load_either(options.spec, options.project)
    options.directory.mkdir(parents=True, exist_ok=True)
    for protocol in protocols:
        for version in protocol.versions:
            name = protocol.name if len(protocol.versions) == 1 else f"{protocol.name}-{version.module}"
            _write(options.directory / f"{name}.json", protocol, list(vectors(view(protocol, version.number))))
        if protocol.has_decoder:
            entries = list(captured(protocol, options.captures))
            _write(options.directory / f"{protocol.name}-captured.json", protocol, entries)
            entries = list(sequences(protocol, views(protocol)))
            _write(options.directory / f"{protocol.name}-sequences.json", protocol, entries, "sequences")
        elif entries := list(conversations(protocol, options.conversations)):
            _write(options.directory / f"{protocol.name}-sequences.json", protocol, entries, "sequences")
    shutil.copyfile(SCHEMA, options.directory / SCHEMA.name)
    print(f"wrote {options.directory / SCHEMA.name}")
    return 0


def vectors(view: View) -> Iterator[dict[str, Any]]:
    """Yield a version's vectors: each message with usual values, with each other value, and damaged."""
    for message in view.messages:
        yield from _of_message(view, message)
    for what, data in (("empty", b""), ("an unknown tag", b"\0")):
        yield from _refused(f"Nothing: {what}", view, None, awaited(view, None), data)


def _of_message(view: View, message: Message) -> Iterator[dict[str, Any]]:
    usual, facts = {}, {}
    names = facts_of(view, message, dict.fromkeys((fact.name for fact in view.protocol.session), True))
    awaits = awaited(view, message)
    for values in product((False, True), repeat=len(names)):
        facts = dict(zip(names, values, strict=True)) | awaits
        session = "".join(f", {name}" for name, value in facts.items() if value is True)
        usual = Samples(view, facts).usual(lower(view, message.fields))
        yield _accepted(f"{message.name}{session}", view, message, facts, usual)
    fullest = usual
    for what, fields in Samples(view, facts).others(lower(view, message.fields), usual):
        yield _accepted(f"{message.name}, {what}", view, message, facts, fields)
        # Includes optional rows, so that each row is refused once.
        fullest = max(fullest, fields, key=len)
    for data, what in damaged(view, message, fullest).items():
        yield from _refused(f"{message.name}, {what}", view, message, facts, data)


def _accepted(name: str, view: View, message: Message, facts: dict[str, bool], values: Any) -> dict[str, Any]:
    data, _ = write(view, message, values)
    assert Reader(view, data, facts).message(message.senders[0]) == (message, values)
    return vector(name, view, message, facts, data) | {"fields": values}


def _refused(
    name: str, view: View, message: Message | None, facts: dict[str, bool], data: bytes
) -> Iterator[dict[str, Any]]:
    """Yield a vector of refused bytes; nothing if the bytes are a message."""
    try:
        Reader(view, data, facts).message("server" if message is None else message.senders[0])
    except RefusedError as error:
        place = {"field": error.field, "offset": error.offset, "reason": error.reason}
        strict = {"strict": True} if error.is_strict else {}
        yield vector(name, view, message, facts, data) | {"refused": place} | strict


def _write(path: Path, protocol: Protocol, entries: list[dict[str, Any]], kind: str = "vectors") -> None:
    """Write a file with a vector or a sequence on each line, for readers and for diffs."""
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    head = json.dumps({"protocol": protocol.name, "page": protocol.page})[:-1]
    path.write_text(f'{head}, "{kind}": [\n{lines}\n]}}\n', encoding="utf-8")
    print(f"wrote {path}: {len(entries)} {kind}")
