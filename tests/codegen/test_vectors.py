"""The test vectors for other implementations, read by ours: two readers of one spec agree on every byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from codegen.__main__ import main
from codegen.model.reader import load
from logicalrep_protocol import Decoder, basebackup, copy_binary, walsender
from logicalrep_protocol.basebackup.layouts import BASEBACKUP
from logicalrep_protocol.layouts import COPY_BINARY, LOGICALREP, WALSENDER
from logicalrep_protocol.pgwire import Session, v3_0, v3_2
from logicalrep_protocol.pgwire.layouts import PGWIRE
from logicalrep_protocol.versions import PARSE
from logicalrep_runtime.errors import DecodeError
from logicalrep_runtime.layout_walk import walk
from tests.codegen.model.generation import imported_from
from tests.codegen.vector_reading import misread
from tests.conftest import ROOT

_LAYOUTS = {
    "basebackup": BASEBACKUP,
    "copy_binary": COPY_BINARY,
    "logicalrep": LOGICALREP,
    "pgwire": PGWIRE,
    "walsender": WALSENDER,
}
_VERSIONS = {"basebackup": (1,), "copy_binary": (1,), "logicalrep": tuple(PARSE), "pgwire": (1, 2), "walsender": (1,)}
_CAPTURES = ROOT / "tests" / "captures" / "pg16" / "stream"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The vectors, of some captures only."""
    path = tmp_path_factory.mktemp("vectors")
    assert main(["vectors", str(path), "--captures", str(_CAPTURES)]) == 0
    return path


def vectors(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every vector, with the name of its protocol."""
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        yield from ((content["protocol"], vector) for vector in content.get("vectors", ()))


def parsed(protocol: str, vector: dict[str, Any]) -> Any:
    """Parse a vector's bytes with the package."""
    data = bytes.fromhex(vector["bytes"])
    if protocol == "walsender":
        return walsender.parse(data, sender=vector.get("from", "server"))
    if protocol in ("basebackup", "copy_binary"):
        return {"basebackup": basebackup.v1, "copy_binary": copy_binary}[protocol].parse(data)
    if protocol == "pgwire":
        module = (v3_0, v3_2)[vector["version"] - 1]
        return module.parse(data, sender=vector.get("from", "server"), **vector["session"])
    return PARSE[vector["version"]](data, **vector.get("session", {}))


def leaves(fields: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The paths of a vector's fields, and what each holds."""
    for name, value in fields.items():
        for index, item in enumerate(value if isinstance(value, list) else [value]):
            path = f"{prefix}{name}[{index}]" if isinstance(value, list) else prefix + name
            if isinstance(item, dict):
                yield from leaves(item, f"{path}.")
            else:
                yield path, item


def plain(step: Any) -> Any:
    """A step's value as vectors have it."""
    operation, value = step.operation, step.value
    if operation.kind == "bytes":
        return None if value is None else step.data.hex()
    if operation.kind == "text" or operation.is_character:
        return str(value)
    return str(int(value)) if operation.width == 8 else int(value)


@pytest.mark.slow
def test_the_package_reads_every_vector(folder: Path) -> None:
    count = 0
    for protocol, vector in vectors(folder):
        if "refused" in vector:
            continue
        message = parsed(protocol, vector)
        data = bytes.fromhex(vector["bytes"])
        assert message.build() == data, vector["name"]
        assert type(message).struct.parse(data, **vector.get("session", {})) == message, vector["name"]
        assert type(message).struct.build(message, **vector.get("session", {})) == data, vector["name"]
        arguments = {"sender": "client"} if vector.get("from") == "client" else {}
        steps = walk(_LAYOUTS[protocol], vector["version"], data, facts=vector.get("session", {}), **arguments)
        read = [(step.path, plain(step)) for step in steps if step.operation.kind != "repeat"]
        assert read == list(leaves(vector["fields"])), vector["name"]
        count += 1
    assert count > 700


@pytest.mark.parametrize("is_native", [True, False], ids=["native", "Python"])
def test_each_reader_of_the_package_reads_every_vector(is_native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_native:
        monkeypatch.setattr("logicalrep_runtime.native.reader", lambda *arguments: None)
    with imported_from(ROOT / "generated") as package:
        assert list(misread(package, load(ROOT / "spec"))) == []


def test_the_package_refuses_what_vectors_refuse_at_the_same_byte(folder: Path) -> None:
    count = 0
    for protocol, vector in vectors(folder):
        if "refused" in vector:
            with pytest.raises(DecodeError) as error:
                parsed(protocol, vector)
            place = vector["refused"]
            assert (error.value.field, error.value.offset) == (place["field"], place["offset"]), vector
            count += 1
    assert count > 500


def test_a_refusal_is_strict_where_the_page_does_not_ask_for_it(folder: Path) -> None:
    """The page prints constants; what else a byte may not be follows from servers, or from what the rows mean."""
    strict = set()
    for protocol, vector in vectors(folder):
        if "strict" in vector and protocol != "pgwire":
            assert vector["refused"]["reason"] == "the value is not legal here"
            strict.add(vector["refused"]["field"])
    assert strict == {
        "final_lsn", "prepare_lsn", "end_lsn", "commit_lsn", "prepare_end_lsn", "rollback_end_lsn", "first_segment",
        "replica_identity", "reply_requested",
    }  # fmt: skip


def test_the_decoder_reads_every_sequence(folder: Path) -> None:
    content = json.loads((folder / "logicalrep-sequences.json").read_text(encoding="utf-8"))
    accepted = refused = 0
    for sequence in content["sequences"]:
        decoder = Decoder(sequence["version"], **sequence["session"])
        for entry in sequence["messages"]:
            data = bytes.fromhex(entry["bytes"])
            old_state = (decoder.block, dict(decoder.facts))
            if "refused" in entry:
                with pytest.raises(DecodeError) as error:
                    decoder.decode(data)
                place = entry["refused"]
                assert (error.value.field, error.value.offset) == (place["field"], place["offset"]), entry
                assert (decoder.block, decoder.facts) == old_state
                refused += 1
                continue
            message = decoder.decode(data)
            assert message.build() == data
            layout = _LAYOUTS["logicalrep"].message(data[0])
            assert layout is not None
            assert layout.name == entry["message"]
            assert {"block": decoder.block, **decoder.facts} == entry["state"], (sequence["name"], entry)
            accepted += 1
    assert min(accepted, refused) > 200
    blocks = {
        entry["state"]["block"] for steps in content["sequences"] for entry in steps["messages"] if "state" in entry
    }
    assert blocks == {"outside", "transaction", "prepared transaction", "stream"}


def test_a_session_reads_every_sequence_of_both_sides(folder: Path) -> None:
    content = json.loads((folder / "pgwire-sequences.json").read_text(encoding="utf-8"))
    names, blocks, versions = set(), set(), set()
    for sequence in content["sequences"]:
        session = Session(sequence["version"], **sequence["session"])
        for entry in sequence["messages"]:
            data, sender = bytes.fromhex(entry["bytes"]), entry.get("from", "server")
            facts = dict(session.facts)
            message = session.decode(data, sender=sender)
            assert type(message).__name__ == entry["message"]
            assert message.build() == data
            assert {"block": session.block, "version": session.version, **session.facts} == entry["state"], entry
            steps = walk(PGWIRE, session.version, data, facts=facts, sender=sender)
            read = [(step.path, plain(step)) for step in steps if step.operation.kind != "repeat"]
            assert read == list(leaves(entry["fields"])), entry
            names.add(entry["message"])
            blocks.add(session.block)
            versions.add(session.version)
    assert len(names) == len(PGWIRE.messages) - 6  # Those that need a domain were never recorded.
    assert blocks == {"outside", "session start", "copy to the server", "copy to the client", "copy both ways"}
    assert versions == {1, 2}


@pytest.mark.slow
def test_every_file_is_as_the_schema_says(folder: Path) -> None:
    schema = json.loads((folder / "vectors.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    files = [path for path in folder.glob("*.json") if path.name != "vectors.schema.json"]
    assert len(files) == 12
    for path in files:
        content = json.loads(path.read_text(encoding="utf-8"))
        validator.validate(content)
        mistakes: list[dict[str, Any]] = [
            {"protocol": 1},
            {"vectors": [{"name": "no bytes", "version": 1}]},
            {"sequences": [{}]},
        ]
        for wrong in mistakes:
            assert not validator.is_valid(content | wrong)


def test_each_message_part_and_alternative_of_each_version_has_vectors(folder: Path) -> None:
    seen: dict[tuple[str, int, str], set[str]] = {
        (protocol, vector["version"], vector["message"]): set()
        for protocol, vector in vectors(folder)
        if "fields" in vector
    }
    for protocol, vector in vectors(folder):
        if "fields" in vector:
            seen[protocol, vector["version"], vector["message"]] |= {path for path, _ in leaves(vector["fields"])}
    for protocol, layouts in _LAYOUTS.items():
        for version in _VERSIONS[protocol]:
            for layout in layouts.messages:
                if layout.since <= version:
                    named = {path.partition("[")[0].partition(".")[0] for path in seen[protocol, version, layout.name]}
                    assert {
                        field.name for field in layout.fields if field.since <= version <= (field.until or 9)
                    } <= named
    kinds = {
        cell["kind"]
        for _, vector in vectors(folder)
        for cell in vector.get("fields", {}).get("new", {}).get("cells", [])
    }
    assert kinds == {"n", "u", "t", "b"}


def test_a_few_megabytes_at_most(folder: Path) -> None:
    assert sum(path.stat().st_size for path in folder.iterdir()) < 2_000_000


OPERATIONS = {
    "take", "constant", "measure of a value", "measure of an item count", "measure of the message", "text",
    "bytes by a measure", "bytes or null", "bytes of a fixed size", "bytes to the end", "group",
    "choose", "repeat take", "repeat group", "repeat group until zero", "repeat text", "repeat text until zero",
    "repeat choose", "conditional by a fact", "conditional by the next byte",
}  # fmt: skip
"""Every operation in each of its forms: vectors of each are read by `parse`, the Structs, the walk and the plain reader."""


def _form(operation: Any, operations: tuple[Any, ...]) -> str:
    """An operation and what is special about it."""
    match operation.kind:
        case "measure" if not operation.of:
            return "measure of the message"
        case "measure":
            measured = next(other for other in operations if other.name == operation.of)
            return "measure of an item count" if measured.kind == "repeat" else "measure of a value"
        case "bytes":
            forms = (("fixed size", operation.size), ("null", operation.nullable), ("measure", operation.count))
            form = next((form for form, applies in forms if applies), "end")
            return {
                "fixed size": "bytes of a fixed size",
                "null": "bytes or null",
                "measure": "bytes by a measure",
            }.get(form, "bytes to the end")
        case "repeat":
            return f"repeat {operation.body.kind}{'' if operation.count else ' until zero'}"
        case "conditional":
            return "conditional by a fact" if operation.fact else "conditional by the next byte"
    return str(operation.kind)


def test_each_operation_is_read_by_each_reader(folder: Path) -> None:
    """Together with the tests above, which read every vector with each of them."""
    read = {(protocol, vector["message"]) for protocol, vector in vectors(folder) if "fields" in vector}
    forms: set[str] = set()

    def visit(protocol: Any, operations: tuple[Any, ...]) -> None:
        for operation in operations:
            forms.add(_form(operation, operations))
            inner = operation.body if operation.kind == "repeat" else operation
            forms.add(inner.kind) if inner.kind in ("group", "choose") else None
            if operation.kind == "conditional":
                visit(protocol, operation.body)
            elif inner.kind in ("group", "choose"):
                part = protocol.parts[inner.part]
                for layout in part.alternatives or (part,):
                    visit(protocol, layout.operations)

    for name, protocol in _LAYOUTS.items():
        for message in protocol.messages:
            assert (name, message.name) in read
            visit(protocol, message.operations)
    assert forms == OPERATIONS
