"""Descriptions and dissectors of random specs: made of each, or refused at a row; readers read what ours read."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from codegen.emit.kaitai import descriptions
from codegen.emit.wireshark import dissector
from codegen.fuzz.oracle import NullError, Oracle, RefusedError
from codegen.fuzz.specs import Spec, complete, draw_spec, repaired, write
from codegen.lowering.operations import Measure, flat
from codegen.lowering.rows import lower
from codegen.model.model import Protocol
from codegen.model.places import SpecError
from codegen.model.reader import load, load_project
from codegen.model.versions import View, views
from codegen.vectors import codec
from tests.codegen.kaitai.readers import NEEDS_NODE, Sent, compile_all, expected, read_in_javascript

_REPAIRS = 15


def _specs(folder: Path, numbers: range) -> Iterator[tuple[int, Spec, tuple[Protocol, ...]]]:
    """The random specs that the checker accepts, by number."""
    for number in numbers:
        draw = random.Random(f"1.{number}")
        spec = draw_spec(draw)
        for repair in range(_REPAIRS):
            files = folder / f"{number}.{repair}"
            write(spec, files)
            whole = complete(spec)
            try:
                protocols = tuple(load(files)) if whole["columns"] else (load_project(files),)
            except SpecError as error:
                lines = {finding.place.line for finding in error.findings if finding.place.path.name == "m.yaml"}
                if not lines:
                    break
                spec = repaired(spec, lines, draw)
            else:
                yield number, whole, protocols
                break


def _emitted(emit: Callable[[tuple[Protocol, ...]], object], protocols: tuple[Protocol, ...]) -> Any:
    """What another language gets of a spec; None of a spec that it cannot describe, which is refused at a row."""
    try:
        return emit(protocols)
    except SpecError as error:
        findings = error.findings
    assert findings
    assert all(finding.place.line > 0 for finding in findings)
    return None


@pytest.mark.parametrize("numbers", [range(15), pytest.param(range(15, 300), marks=pytest.mark.thorough)], ids=str)
def test_other_languages_have_every_spec_or_refuse_a_row(tmp_path: Path, numbers: range) -> None:
    accepted = 0
    for _, _, protocols in _specs(tmp_path, numbers):
        accepted += None not in (_emitted(descriptions, protocols), _emitted(dissector, protocols))
    assert accepted > len(numbers) // 2


@NEEDS_NODE
@pytest.mark.thorough
def test_javascript_reads_the_messages_of_random_specs(tmp_path: Path) -> None:
    messages: list[tuple[int, Sent]] = []
    for number, spec, protocols in _specs(tmp_path / "specs", range(25)):
        folder = tmp_path / str(number)
        (folder / "ksy").mkdir(parents=True)
        for name, text in (_emitted(descriptions, protocols) or {}).items():
            (folder / "ksy" / name).write_text(text, encoding="utf-8")
        compile_all(folder / "ksy", folder, "javascript")
        readable = [shown for protocol in protocols for shown in views(protocol) if not _has_wide_measures(shown)]
        sent_messages = [sent for shown in readable for sent in _sent(spec, shown)]
        answers = read_in_javascript(folder / "javascript", sent_messages)
        for sent, answer in zip(sent_messages, answers, strict=True):
            assert answer == expected(sent), (number, sent.data.hex(), sent.facts)
        messages += [(number, sent) for sent in sent_messages]
    assert len(messages) > 800


def _has_wide_measures(shown: View) -> bool:
    """Whether a length or a count has 64 bits, which JavaScript reads as a BigInt, and cannot use."""
    rows = [message.fields for message in shown.messages] + [part.fields for part in shown.parts]
    rows += [alternative.fields for part in shown.parts for alternative in part.alternatives]
    operations = [operation for fields in rows for operation in flat(lower(shown, fields))]
    return any(isinstance(operation, Measure) and operation.width == 8 for operation in operations)


def _sent(spec: Spec, shown: View) -> Iterator[Sent]:
    """Random messages of a version, in each state of a session."""
    oracle, session = Oracle(spec, shown.version), spec["protocol"]["session"]
    states = [list(keys["values"]) if "values" in keys else [False, True] for keys in session.values()]
    for sender, values in product(("server", "client"), product(*states)):
        facts = dict(zip(session, values, strict=True))
        for title, number in product(oracle.messages(sender, facts), range(3)):
            try:
                data, _ = oracle.draw(title, facts, random.Random(f"{shown.version}.{sender}.{title}.{number}"))
            except (RefusedError, NullError):
                continue
            # The reader of vectors takes the bytes for another message if a state allows messages that begin alike.
            with suppress(codec.RefusedError):
                message, fields = codec.Reader(shown, data, facts).message(sender)
                yield Sent(shown, sender, facts, data, message, fields)
