"""No name and no number of the spec is known outside of it: with all of them changed, all decoders still agree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codegen.lowering.rows import lower
from codegen.model.layouts import Message
from codegen.model.names import class_name
from codegen.model.reader import load
from codegen.model.versions import View, views
from codegen.vectors.codec import write
from codegen.vectors.samples import Samples
from logicalrep_runtime.errors import DecodeError
from logicalrep_runtime.layout_walk import walk
from tests.codegen.model.generation import WALKS, generate_from, run_generated
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

_ROW = re.compile(r"^(\s+- )([a-z_]+)(: )", re.MULTILINE)
_REFERENCE = re.compile(r"^(\s+(?:size|repeat|when|describes): )([a-z_]+)$", re.MULTILINE)
_LETTER = re.compile(r"'([A-Za-z])'")
_VALUE = re.compile(r"^(        )([a-z])(: [a-z]+)$", re.MULTILINE)
_FACTS = {"streaming", "parallel", "two_phase", "rest"}


def _turned(letter: str) -> str:
    """Another letter for each letter."""
    first = ord("a") if letter.islower() else ord("A")
    return chr(first + (ord(letter) - first + 7) % 26)


def _other(match: re.Match[str]) -> str:
    name = match[2]
    is_known = name in _FACTS or name == "tag"
    return f"{match[1]}{name if is_known else f'{name}_again'}{match[3] if match.re is _ROW else ''}"


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the spec with another name or number for each message, part, row, tag, mask and value."""
    folder = tmp_path_factory.mktemp("renamed")
    names = {
        title
        for path in (ROOT / "spec" / "logicalrep").glob("*.yaml")
        for title in re.findall(r"^([A-Z][A-Za-z ]*):$|^    ([A-Z][A-Za-z]*):$", path.read_text("utf-8"), re.MULTILINE)
        for title in title
        if title
    }
    whole = "|".join(sorted(names, key=len, reverse=True))
    for path in (ROOT / "spec").rglob("*.yaml"):
        text = path.read_text("utf-8")
        if path.parent.name == "logicalrep":
            text = _REFERENCE.sub(_other, _ROW.sub(_other, text))
            text = _LETTER.sub(lambda match: f"'{_turned(match[1])}'", text)
            text = _VALUE.sub(lambda match: f"{match[1]}{_turned(match[2])}{match[3]}", text)
            text = re.sub(r"printed under: (\w)", lambda match: f"printed under: {_turned(match[1])}", text)
            text = re.sub(rf"^(|    )({whole}):$", lambda match: f"{match[1]}{match[2]}Anew:", text, flags=re.MULTILINE)
            text = re.sub(
                r"^(  part of: |      looks up: |    - \w+: )(.*)$",
                lambda match: match[1] + re.sub(rf"\b({whole})\b(?!\))", r"\1Anew", match[2]),
                text,
                flags=re.MULTILINE,
            )
            text = text.replace("        1: ", "        64: ").replace("        2: ", "        32: ")
        target = folder / "spec" / path.relative_to(ROOT / "spec")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    return folder / "spec"


def _samples(spec: Path) -> Iterator[tuple[View, Message, dict[str, bool], bytes]]:
    """Messages of every version, made by the plain writer."""
    protocol = next(protocol for protocol in load(spec) if protocol.has_decoder)
    for protocol_view in views(protocol):
        for streaming in (False, True):
            facts = {"streaming": streaming, "parallel": streaming}
            for message in protocol_view.messages:
                samples = Samples(protocol_view, facts)
                operations = lower(protocol_view, message.fields)
                usual = samples.usual(operations)
                for values in (usual, *(fields for _, fields in samples.others(operations, usual))):
                    yield protocol_view, message, facts, write(protocol_view, message, values)[0]


def test_nothing_has_the_name_or_the_number_that_it_had(spec: Path) -> None:
    old_protocol, new_protocol = (
        next(protocol for protocol in load(folder) if protocol.has_decoder) for folder in (ROOT / "spec", spec)
    )
    for old, new in zip(old_protocol.layouts, new_protocol.layouts, strict=True):
        assert old.name != new.name
        assert not {row.name for row in old.fields} & {row.name for row in new.fields} - {"tag"}
    assert all(old.tag != new.tag for old, new in zip(old_protocol.messages, new_protocol.messages, strict=True))
    assert all(
        old.tag != new.tag for old, new in zip(old_protocol.alternatives, new_protocol.alternatives, strict=True)
    )


def test_all_decoders_of_it_agree(spec: Path, tmp_path: Path) -> None:
    with generate_from(spec, tmp_path) as package:
        count = 0
        for protocol_view, message, facts, data in _samples(spec):
            module = getattr(package, protocol_view.module)
            arguments: dict[str, Any] = {name: facts[name] for name in package.layouts.LOGICALREP.parse_arguments[:2]}
            parsed = module.parse(data, **arguments)
            assert type(parsed).__name__ == class_name(message.name)
            assert parsed.build() == data
            assert module.message.parse(data, **arguments) == parsed
            assert module.message.build(parsed, **arguments) == data
            steps = list(walk(package.layouts.LOGICALREP, protocol_view.version, data, facts=facts))
            assert b"".join(step.data for step in steps) == data
            with pytest.raises(DecodeError):
                module.parse(data + b"\0", **arguments)
            count += 1
        assert count > 1000


COLUMNS = """
import sys, pyarrow as pa
from logicalrep_protocol.columnar import Session, decode_batch
from logicalrep_protocol.versions import PARSE
messages = [bytes.fromhex(line) for line in sys.stdin.read().split()]
session = Session(version=4)
batch, _ = decode_batch(pa.array(messages, pa.binary()), session, errors="column", values="binary")
batch.validate(full=True)
rows = batch.select(["tag", "error", "new_again"]).to_pylist()
for data, row in zip(messages, rows, strict=True):
    assert row["error"] is None and row["tag"] == chr(data[0]), row
texts, _ = decode_batch(pa.array(messages, pa.binary()), session, errors="column", values="string")
refused = [error for error in texts["error"].to_pylist() if error is not None]
assert {error.partition(": expected ")[2].partition(",")[0] for error in refused} == {"text in utf-8"}
assert any(row["new_again"] for row in rows)
print(len(refused), len(rows))
"""


@WALKS
def test_columns_of_it_have_the_same_rows(spec: Path, tmp_path: Path, walk: str) -> None:
    lines = [
        data.hex()
        for protocol_view, message, facts, data in _samples(spec)
        if protocol_view.version == 4 and not facts["streaming"] and message.sets is None
    ]
    output = run_generated(load(spec), tmp_path, COLUMNS, walk=walk, given="\n".join(lines))
    refused, count = map(int, output.split())
    assert 0 < refused < count
