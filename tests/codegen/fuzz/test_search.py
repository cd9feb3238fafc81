"""The search reports a package that does other than the notation says, and its oracle reads what it wrote."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from codegen.emit.package import project_emitted
from codegen.fuzz.examine import examine
from codegen.fuzz.oracle import Oracle
from codegen.fuzz.specs import files, repaired

SPEC: dict[str, Any] = {
    "protocol": {
        "protocol": "x",
        "package": "x_protocol",
        "title": "X",
        "doc": "X.",
        "versions": {1: {"module": "v1", "doc": "D."}},
        "session": {},
        "files": ["m"],
    },
    "types": {},
    "layouts": {
        "Ma": {
            "doc": "D.",
            "fields": [
                {"tag": "Byte1('A')"},
                {"count": "Int16", "doc": "D."},
                {"items": "Pa", "repeat": "count", "doc": "D."},
                {"name": "String", "doc": "D."},
            ],
        },
        "Pa": {"part of": [], "doc": "D.", "fields": [{"number": "Int32", "doc": "D."}]},
    },
    "columns": False,
}


def test_the_oracle_reads_the_documented_bytes() -> None:
    data = b"A" + b"\0\2" + b"\0\0\0\7" + b"\xff\xff\xff\xff" + b"ab\0"
    wanted = {"items": ({"number": 7}, {"number": -1}), "name": "ab"}
    assert Oracle(SPEC, 1).read("Ma", data, {}) == wanted


def test_the_oracle_reads_the_bytes_that_it_wrote() -> None:
    oracle = Oracle(SPEC, 1)
    for seed in range(20):
        data, values = oracle.draw("Ma", {}, random.Random(seed))
        assert oracle.read("Ma", data, {}) == values


def test_a_right_package_has_no_fault(tmp_path: Path) -> None:
    examination = examine(SPEC, tmp_path, "1")
    assert (examination.faults, examination.refused) == ([], [])
    assert examination.messages > 0


@pytest.mark.parametrize(
    ("old", "new", "checks"),
    [
        ('_h = Format(">h")', '_h = Format("<h")', {"parse without native"}),
        ('out.append(b"\\0")', 'out.append(b"\\1")', {"build without native"}),
        ("for _ in range(count)", "for _ in range(count - 1)", {"parse without native"}),
        ('"count" / Rebuild(Int16sb', '"count" / Rebuild(Int8sb', {"Struct.build", "Struct.parse"}),
        ("def parse(", "def other(", {"import"}),
    ],
)
def test_a_wrong_package_has_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, checks: set[str]
) -> None:
    def damaged(protocol: Any) -> dict[str, str]:
        texts = project_emitted(protocol)
        assert old in texts["x_protocol/v1.py"]
        return {**texts, "x_protocol/v1.py": texts["x_protocol/v1.py"].replace(old, new)}

    monkeypatch.setattr("codegen.fuzz.examine.project_emitted", damaged)
    assert checks <= {fault.check for fault in examine(SPEC, tmp_path, "1").faults}


def test_a_traceback_of_the_generator_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(protocol: Any) -> dict[str, str]:
        raise AssertionError(protocol.name)

    monkeypatch.setattr("codegen.fuzz.examine.project_emitted", crash)
    assert [fault.check for fault in examine(SPEC, tmp_path, "1").faults] == ["generator"]


def test_a_refused_spec_is_repaired_at_its_findings(tmp_path: Path) -> None:
    rows = [*SPEC["layouts"]["Ma"]["fields"], {"rest": "Byten", "size": "nothing", "doc": "D."}]
    faulty = {**SPEC, "layouts": {**SPEC["layouts"], "Ma": {"doc": "D.", "fields": rows}}}
    examination = examine(faulty, tmp_path, "1")
    assert examination.faults == []
    lines = {finding.place.line for finding in examination.refused}
    assert [files(faulty)["m.yaml"].splitlines()[line - 1].split('"')[1] for line in lines] == ["rest"]
    remaining = [next(iter(row)) for row in repaired(faulty, lines, random.Random(3))["layouts"]["Ma"]["fields"]]
    assert remaining[:4] == ["tag", "count", "items", "name"]
