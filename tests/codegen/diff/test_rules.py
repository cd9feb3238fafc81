"""Every rule has a folder with a spec before and after, and what the command prints for the two."""

from __future__ import annotations

import re

import pytest

from codegen.diff import RULES as KNOWN
from codegen.diff import compare, rule_rows
from codegen.spec.reader import load
from tests.codegen.diff.running import RULES, SPEC, Diff


def test_every_rule_has_a_folder_and_every_folder_a_rule() -> None:
    assert sorted(path.name for path in RULES.iterdir()) == sorted(KNOWN)


@pytest.mark.parametrize("rule", list(KNOWN))
def test_the_findings_of_a_rule(rule: str, diff: Diff) -> None:
    outcome = diff(RULES / rule / "before", RULES / rule / "after")
    assert outcome.err == ""
    assert outcome.out == (RULES / rule / "expected.txt").read_text(encoding="utf-8")
    assert f" {KNOWN[rule].severity} {rule}: " in outcome.out


@pytest.mark.parametrize("rule", list(KNOWN))
def test_a_spec_does_not_differ_from_itself(rule: str) -> None:
    for side in ("before", "after"):
        spec = load(RULES / rule / side)
        assert compare(spec, spec).changes == ()


def test_the_rows_of_the_table_of_rules() -> None:
    rows = list(rule_rows())
    assert [row[0] for row in rows] == list(KNOWN)
    assert {row[1] for row in rows} == {"wire", "api", "new", "doc"}
    assert all(re.fullmatch(r"[A-Z].*\.", row[2]) for row in rows)
    assert len({row[2] for row in rows}) == len(rows)


def test_the_readme_has_the_table_of_rules() -> None:
    readme = (SPEC / "README.md").read_text(encoding="utf-8")
    assert "".join(f"| `{rule}` | {severity} | {text} |\n" for rule, severity, text in rule_rows()) in readme
