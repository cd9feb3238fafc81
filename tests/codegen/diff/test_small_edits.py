"""Small edits of a small spec and what the comparison says of them: cases.yaml has them all."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from codegen.diff import RULES, compare, rule_rows
from codegen.diff.change import Change
from codegen.diff.rules import rules_of
from codegen.model import model
from codegen.model.reader import load
from tests.codegen.diff.lines import printed_line
from tests.codegen.diff.specs import DATA, SPEC, write_small

CASES: dict[str, dict[str, Any]] = {case["name"]: case for case in DATA["cases"]}


def rules(lines: str) -> list[list[str]]:
    """The severities and rules of findings."""
    return sorted(line.split()[:2] for line in lines.splitlines())


@pytest.fixture(scope="module")
def old_protocols(tmp_path_factory: pytest.TempPathFactory) -> tuple[model.Protocol, ...]:
    return load(write_small(tmp_path_factory.mktemp("before")))


@pytest.mark.parametrize("name", CASES)
def test_an_edit_has_its_findings_there_and_back(
    name: str, old_protocols: tuple[model.Protocol, ...], tmp_path: Path
) -> None:
    case = CASES[name]
    new_protocols = load(write_small(tmp_path / "after", case.get("edit", ""), case.get("without", "-")))
    changes, back = compare(old_protocols, new_protocols).changes, compare(new_protocols, old_protocols).changes
    assert [printed_line(change) for change in changes] == case["lines"].splitlines()
    lines_back = "\n".join(map(printed_line, back))
    if "back" in case:
        assert lines_back.splitlines() == case["back"].splitlines()
    else:
        assert rules(lines_back) == rules(case["lines"])
    for change in (*changes, *back):
        assert_place_is_of_the_subject(change)


def assert_place_is_of_the_subject(change: Change) -> None:
    """A finding on what is gone has the place of what it was part of, and its own old place beside it."""
    names = change.spot.subject.split(".")
    places = {change.spot.place: names[-1]}
    if change.spot.old_place is not None:
        places = {change.spot.place: names[-2] if len(names) > 1 else "", change.spot.old_place: names[-1]}
    for place, name in places.items():
        text = place.path.read_text(encoding="utf-8").splitlines()[place.line - 1][place.column - 1 :]
        is_of_a_file = (place.path.name == "protocol.yaml" and place.line == 1) or not name
        assert is_of_a_file or text.startswith(name.split()[-1]), f"{place} is no place of {name}"


def test_every_rule_has_a_case() -> None:
    seen = {words[1].rstrip(":") for case in CASES.values() for words in rules(case["lines"] + case.get("back", ""))}
    assert seen == set(RULES)


NOT_COMPARED = {
    "Protocol": {"name", "place", "versions", "types", "callbacks", "is_alone", "memory"},
    "Version": {"number", "place"},
    "SessionFact": {"name", "place"},
    "NamedType": {"name", "place", "path"},
    "Message": {"name", "place", "fields"},
    "Part": {"name", "place", "fields", "part_of", "since"},
    "Alternative": {"name", "place", "fields"},
    "Field": {
        "name",
        "place",
        "any_character",
        "replaces",
        "type",
        "optional",
        "when",
        "is_named",
        "nonzero",
        "boolean",
        "bits",
    },
}
"""Names are matched; the rest is compared as part of something else: of the layouts, or by fields.py."""


@pytest.mark.parametrize("kind", NOT_COMPARED)
def test_every_attribute_of_the_model_is_compared(kind: str) -> None:
    attributes = {field.name for field in dataclasses.fields(getattr(model, kind))}
    of = {"SessionFact": "session-fact", "NamedType": "type"}.get(kind, kind.lower())
    assert attributes == NOT_COMPARED[kind] | {name for rule in rules_of(of) for name in rule.attributes} & attributes


def test_the_rows_of_the_table_of_rules() -> None:
    rows = list(rule_rows())
    assert [row[0] for row in rows] == list(RULES)
    assert {row[1] for row in rows} == {"wire", "api", "added", "doc", "wire, added", "api, added"}
    assert all(re.fullmatch(r"[A-Z].*\.", row[2]) for row in rows)
    assert len({row[2] for row in rows}) == len(rows)


def test_the_readme_has_the_table_of_rules() -> None:
    readme = (SPEC / "README.md").read_text(encoding="utf-8")
    assert "".join(f"| `{rule}` | {severity} | {text} |\n" for rule, severity, text in rule_rows()) in readme
