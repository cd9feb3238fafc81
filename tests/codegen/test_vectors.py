"""The test vectors for other implementations, read by ours: two readers of one spec agree on every byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codegen.__main__ import main
from logicalrep_protocol import walsender
from logicalrep_protocol.layouts import LOGICALREP, WALSENDER
from logicalrep_protocol.versions import PARSE
from logicalrep_runtime.errors import DecodeError
from logicalrep_runtime.layout_walk import walk
from tests.conftest import ROOT

_LAYOUTS = {"logicalrep": LOGICALREP, "walsender": WALSENDER}
_CAPTURES = ROOT / "tests" / "captures" / "pg16" / "stream"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The vectors, of some captures only."""
    made = tmp_path_factory.mktemp("vectors")
    assert main(["vectors", str(made), "--captures", str(_CAPTURES)]) == 0
    return made


def vectors(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every vector, with the name of its protocol."""
    for path in sorted(folder.iterdir()):
        content = json.loads(path.read_text(encoding="utf-8"))
        yield from ((content["protocol"], vector) for vector in content["vectors"])


def parsed(protocol: str, vector: dict[str, Any]) -> Any:
    """Parse a vector's bytes with the package."""
    data = bytes.fromhex(vector["bytes"])
    if protocol == "walsender":
        return walsender.parse(data, sender=vector.get("from", "server"))
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
    field, value = step.field, step.value
    if field.kind == "bytes":
        return step.data.hex()
    if field.characters or field.kind == "string":
        return str(value)
    return str(int(value)) if field.width == 8 else int(value)


def test_the_package_reads_every_vector(folder: Path) -> None:
    found = 0
    for protocol, vector in vectors(folder):
        if "refused" in vector:
            continue
        message = parsed(protocol, vector)
        data = bytes.fromhex(vector["bytes"])
        assert message.build() == data, vector["name"]
        arguments = {"sender": "client"} if vector.get("from") == "client" else {}
        steps = walk(_LAYOUTS[protocol], vector["version"], data, facts=vector.get("session", {}), **arguments)
        assert [(step.path, plain(step)) for step in steps] == list(leaves(vector["fields"])), vector["name"]
        found += 1
    assert found > 700


def test_the_package_refuses_what_vectors_refuse_at_the_same_byte(folder: Path) -> None:
    found = 0
    for protocol, vector in vectors(folder):
        if "refused" in vector:
            with pytest.raises(DecodeError) as error:
                parsed(protocol, vector)
            place = vector["refused"]
            assert (error.value.field, error.value.offset) == (place["field"], place["offset"]), vector
            found += 1
    assert found > 500


def test_each_message_part_and_alternative_of_each_version_has_vectors(folder: Path) -> None:
    seen = {
        (protocol, vector["version"], vector["message"]): set()
        for protocol, vector in vectors(folder)
        if "fields" in vector
    }
    for protocol, vector in vectors(folder):
        if "fields" in vector:
            seen[protocol, vector["version"], vector["message"]] |= {path for path, _ in leaves(vector["fields"])}
    for protocol, layouts in _LAYOUTS.items():
        for version in PARSE if protocol == "logicalrep" else (1,):
            for layout in layouts.messages:
                if layout.since <= version:
                    named = {path.partition("[")[0].partition(".")[0] for path in seen[protocol, version, layout.name]}
                    assert {field.name for field in layout.fields if field.since <= version} <= named
    kinds = {
        cell["kind"]
        for _, vector in vectors(folder)
        for cell in vector.get("fields", {}).get("new", {}).get("cells", [])
    }
    assert kinds == {"n", "u", "t", "b"}


def test_a_megabyte_at_most(folder: Path) -> None:
    assert sum(path.stat().st_size for path in folder.iterdir()) < 1_000_000
