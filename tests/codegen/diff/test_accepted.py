"""Accepted changes: they do not fail the command until their day is over, and are of use, or reported."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.codegen.diff.conftest import Diff
from tests.codegen.diff.specs import Repository, write_small

ENTRY = {
    "rule": "field-condition",
    "file": "demo/ping.yaml",
    "subject": "Ping.trace_id",
    "reason": "Nobody traces yet.",
    "until": "2999-12-31",
}
EDIT = " " * 4 + "- trace_id: Int32\n"
TODAY = datetime.now(UTC).date()


def accept(spec: Path, *entries: dict[str, str]) -> Path:
    lines = [f"  - {json.dumps(entry)}\n" for entry in entries]
    (spec / "accepted-changes.yaml").write_text(f"accepted:\n{''.join(lines)}", "utf-8")
    return spec


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two specs, where the new one has a field without its condition."""
    monkeypatch.chdir(tmp_path)
    old, new = write_small(Path("old")), write_small(Path("new"))
    ping = new / "demo/ping.yaml"
    text = ping.read_text("utf-8")
    assert text.count(f"{EDIT}      when: traced\n") == 1
    ping.write_text(text.replace(f"{EDIT}      when: traced\n", EDIT), "utf-8")
    return old, new


def test_an_accepted_finding_is_listed_with_its_reason_and_does_not_fail(specs: tuple[Path, Path], diff: Diff) -> None:
    old, new = specs
    assert diff(old, new).code == 1
    accept(new, ENTRY)
    accepted = "(accepted until 2999-12-31: Nobody traces yet.)"
    for arguments in ([], ["--fail-on", "api"]):
        outcome = diff(old, new, *arguments)
        finding, counts, *_ = outcome.out.splitlines()
        assert (outcome.code, outcome.err) == (0, "")
        assert finding.endswith(f"is present always, was present when traced [v1 v2] {accepted}")
        assert counts == "1 wire (1 accepted), 0 api, 0 added, 0 doc"
    assert diff(old, new, "--format", "github").out.startswith("::notice file=new/demo/ping.yaml,line=")
    (finding,) = json.loads(diff(old, new, "--format", "json").out)["findings"]
    assert finding["accepted"] == {"reason": "Nobody traces yet.", "until": "2999-12-31"}
    assert r"Nobody traces yet.) | v1 v2 |" in diff(old, new, "--format", "markdown").out


@pytest.mark.parametrize("other", [{"rule": "field-type"}, {"file": "demo/talk.yaml"}, {"subject": "Ping.number"}])
def test_an_entry_that_accepts_nothing_is_reported(specs: tuple[Path, Path], diff: Diff, other: dict[str, str]) -> None:
    old, new = specs
    entry = ENTRY | other
    accept(new, ENTRY, entry)
    outcome = diff(old, new)
    remark = f"the acceptance of {entry['rule']} of {entry['subject']} accepts no finding; remove it"
    assert outcome.code == 0
    assert outcome.out.splitlines()[1] == f"new/accepted-changes.yaml:3:5: warning: {remark}"
    comment = diff(old, new, "--format", "markdown").out.replace("\\", "")
    assert f"- warning: new/accepted-changes.yaml:3:5: {remark}\n" in comment
    assert f"::warning file=new/accepted-changes.yaml,line=3,col=5,title=accepted change::{remark}" in (
        diff(old, new, "--format", "github").out.splitlines()
    )


@pytest.mark.parametrize(("days", "code"), [(0, 0), (1, 0), (-1, 1), (-400, 1)])
def test_an_entry_fails_after_its_last_day(specs: tuple[Path, Path], diff: Diff, days: int, code: int) -> None:
    old, new = specs
    until = str(TODAY + timedelta(days=days))
    accept(new, ENTRY | {"until": until})
    outcome = diff(old, new)
    assert outcome.code == code
    ended = f"error: the acceptance of field-condition of Ping.trace_id ended on {until}; remove it"
    assert [line.endswith(ended) for line in outcome.out.splitlines()].count(True) == code
    accept(old, ENTRY | {"until": until})
    assert diff(old, old).code == code, "an entry fails even without a finding"
    assert diff(old, new, "--fail-on", "none").code == 0


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("", "1:1: is empty; a mapping is expected"),
        ("accepted: {}\n", "1:11: 'accepted' must be a list of entries"),
        ("accepted: [x]\n", "1:12: an entry of 'accepted' must be a mapping"),
        ("changes: []\n", "1:1: the file has no 'accepted'"),
        ("accepted: [{}]\n", "1:12: the entry has no 'reason'"),
        ("accepted: [{rule: field-conditio}]\n", "1:13: 'rule' is 'field-conditio'; allowed: protocol-added, "),
        ("accepted: [{until: soon}]\n", "1:13: 'until' is 'soon'; a day is expected, such as 2027-03-31"),
        ("accepted: [{until: 2027-02-30}]\n", "1:13: 'until' is '2027-02-30'; a day is expected, such as 2027-03-31"),
        ("accepted: [{line: 3}]\n", "1:13: unknown key 'line' of the entry"),
    ],
)
def test_mistakes_have_their_places(specs: tuple[Path, Path], diff: Diff, text: str, finding: str) -> None:
    old, new = specs
    (new / "accepted-changes.yaml").write_text(text, "utf-8")
    outcome = diff(old, new)
    assert (outcome.code, outcome.out) == (2, "")
    assert any(line.startswith(f"new new/accepted-changes.yaml:{finding}") for line in outcome.err.splitlines())


def test_a_revision_has_its_own_entries(
    tmp_path: Path, specs: tuple[Path, Path], diff: Diff, repository: Repository
) -> None:
    old, new = (tmp_path / spec for spec in specs)
    accept(new, ENTRY)
    first, second = repository.commit(old), repository.commit(new)
    outcome = diff(first, second, "--repository", repository.folder)
    assert outcome.code == 0
    assert "1 wire (1 accepted)" in outcome.out
