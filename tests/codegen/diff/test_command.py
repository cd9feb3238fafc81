"""The command: which sides it takes, what it prints in each format, and its exit code."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.codegen.diff.conftest import Diff
from tests.codegen.diff.specs import DATA, SPEC, Repository, write_edited, write_small
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

STREAM_ABORT = "logicalrep/stream_abort.yaml"
WITHOUT_PARALLEL = {
    STREAM_ABORT: [
        ("      since: 4\n      when: parallel\n      doc: The position", "      since: 4\n      doc: The position")
    ]
}
LINE = (SPEC / STREAM_ABORT).read_text(encoding="utf-8").splitlines().index("    - abort_lsn: Int64 (XLogRecPtr)") + 1
FINDING = "wire field-condition: Stream Abort.abort_lsn is present always, was present when parallel [v4]"
SUMMARY = """\
1 wire, 0 api, 0 added, 0 doc
basebackup: v1 unchanged
copy_binary: v1 unchanged
logicalrep: v1 v2 v3 unchanged, v4 changed
pgwire: v3.0 v3.2 unchanged
walsender: v1 unchanged
"""

CASES = {case["name"]: case.get("edit", "") for case in DATA["cases"]}
UNTRACED = CASES["when a field is there"]
PRINTED = """\
spec/demo/ping.yaml:30:7: wire field-condition: Ping.trace_id is present always, was present when traced [v1 v2]
1 wire, 0 api, 0 added, 0 doc
demo: v1 v2 changed
other: v1 unchanged
"""


@pytest.fixture
def old_spec(tmp_path: Path) -> Path:
    """The small spec."""
    return write_small(tmp_path / "before")


@pytest.fixture
def new_spec(tmp_path: Path) -> Path:
    """The small spec, one of its conditions lost."""
    return write_small(tmp_path / "after", UNTRACED)


def test_a_condition_that_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, diff: Diff) -> None:
    """Paths are relative to the current folder, so that a terminal opens them."""
    new = write_edited(tmp_path / "spec", WITHOUT_PARALLEL)
    outcome = diff(SPEC, new)
    printed = f"{new}/logicalrep/stream_abort.yaml:{LINE}:7: {FINDING}\n{SUMMARY}"
    assert (outcome.code, outcome.out, outcome.err) == (1, printed, "")
    monkeypatch.chdir(tmp_path)
    shown = diff(SPEC, new).out
    assert shown == printed.replace(f"{tmp_path}/", "")
    assert f"```\n{shown.splitlines()[0]}\n```\n" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_a_folder_may_be_a_spec_or_hold_one(tmp_path: Path, diff: Diff) -> None:
    new = write_edited(tmp_path / "spec", WITHOUT_PARALLEL)
    assert diff(ROOT, tmp_path).out == diff(SPEC, new).out == diff(SPEC, tmp_path).out


def test_removals_are_reported_for_their_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old_spec: Path, diff: Diff
) -> None:
    monkeypatch.chdir(tmp_path)
    old = write_small(tmp_path / "old", CASES["a field of a version that existed"])
    finding = "wire field-gone: Ping.sent_at is removed: Int64, since 2 [v2]"
    assert diff(old, old_spec).out.splitlines()[0] == (
        f"before/demo/ping.yaml:1:1: {finding} (was old/demo/ping.yaml:14:7)"
    )


@pytest.mark.parametrize(
    ("name", "fail_on", "code"),
    [
        ("the type of a field", "wire", 1),
        ("the type of a field", "api", 1),
        ("the type of a field", "none", 0),
        ("a field has another name", "wire", 0),
        ("a field has another name", "api", 1),
        ("a field has another name", "none", 0),
        ("a field of a new version", "api", 0),
        ("a note", "api", 0),
    ],
)
def test_the_exit_code(name: str, fail_on: str, code: int, tmp_path: Path, old_spec: Path, diff: Diff) -> None:
    new = write_small(tmp_path / "new", CASES[name])
    assert diff(old_spec, new, "--fail-on", fail_on).code == code
    if fail_on == "wire":
        assert diff(old_spec, new).code == code


def test_revisions(repository: Repository, old_spec: Path, new_spec: Path, diff: Diff) -> None:
    first, second = repository.commit(old_spec), repository.commit(new_spec)
    repository.git("tag", "v1.0", first)
    for old, new in ((first, second), ("v1.0", "main"), ("HEAD~1", "HEAD"), (first[:8], repository.folder)):
        outcome = diff(old, new, "--repository", repository.folder)
        assert (outcome.code, outcome.out, outcome.err) == (1, PRINTED, "")


def test_the_working_tree_is_the_new_side_by_default(
    repository: Repository, old_spec: Path, new_spec: Path, diff: Diff
) -> None:
    repository.commit(old_spec)
    assert diff("HEAD", "--repository", repository.folder).code == 0
    shutil.copytree(new_spec, repository.folder / "spec", dirs_exist_ok=True)
    assert diff("HEAD", "--repository", repository.folder).out == PRINTED


def test_a_repository_may_be_a_folder_of_a_larger_one(repository: Repository, old_spec: Path, diff: Diff) -> None:
    inner = repository.folder / "inner"
    shutil.copytree(old_spec, inner / "spec")
    revision = repository.commit(None)
    assert diff(revision, "--repository", inner).code == 0
    assert "has no spec" in diff(revision, "--repository", repository.folder).err


def test_files_are_read_as_git_has_them(repository: Repository, old_spec: Path, new_spec: Path, diff: Diff) -> None:
    """What attributes leave out of archives, or change in them, is part of the revision all the same."""
    (repository.folder / ".gitattributes").write_text(
        "spec/** export-ignore\nspec/** text eol=crlf\n", encoding="utf-8"
    )
    repository.commit(new_spec)
    outcome = diff(old_spec, "HEAD", "--repository", repository.folder)
    assert (outcome.code, outcome.out) == (1, PRINTED)


def test_a_revision_without_a_spec(repository: Repository, old_spec: Path, diff: Diff) -> None:
    first, second = repository.commit(None), repository.commit(old_spec)
    repository.git("mv", "spec", "moved")
    repository.git("commit", "--quiet", "--message", "Move the spec")
    for revision in (first, "HEAD"):
        outcome = diff(revision, second, "--repository", repository.folder)
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err == f"old revision {revision!r} has no spec: there are no YAML files in spec/\n"


@pytest.mark.parametrize("name", ["nothing", "--all", "HEAD:spec", "", "HEAD\nHEAD"])
def test_a_side_that_is_nothing(name: str, repository: Repository, old_spec: Path, diff: Diff) -> None:
    repository.commit(old_spec)
    outcome = diff("--repository", repository.folder, "--", "HEAD", name)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == f"new {name!r} is neither a folder nor a git revision in {repository.folder}\n"


def test_a_revision_without_a_repository(tmp_path: Path, diff: Diff) -> None:
    outcome = diff("HEAD", SPEC, "--repository", tmp_path)
    assert (outcome.code, outcome.err) == (2, f"old 'HEAD' is neither a folder nor a git revision in {tmp_path}\n")


def test_a_folder_without_a_spec(tmp_path: Path, diff: Diff) -> None:
    outcome = diff(tmp_path, SPEC)
    text = f"old folder '{tmp_path}' is not a spec and contains none: it has neither types.yaml nor spec/\n"
    assert (outcome.code, outcome.out, outcome.err) == (2, "", text)


def test_a_name_that_is_a_folder_and_a_revision(repository: Repository, old_spec: Path, diff: Diff) -> None:
    repository.commit(old_spec)
    repository.git("branch", "spec")
    outcome = diff("spec", "--repository", repository.folder)
    assert outcome.err == "old 'spec' is both a folder and a git revision; write ./spec or spec^0\n"
    for name in ("./spec", "spec^0"):
        assert diff(name, "--repository", repository.folder).code == 0


def test_mistakes_of_both_sides_are_printed(tmp_path: Path, repository: Repository, old_spec: Path, diff: Diff) -> None:
    mistakes = tmp_path / "spec"
    shutil.copytree(old_spec, mistakes)
    ping = mistakes / "demo/ping.yaml"
    ping.write_text(ping.read_text(encoding="utf-8").replace("Int32", "Int33").replace("ref:", "reference:"))
    repository.commit(mistakes)
    outcome = diff("HEAD", mistakes, "--repository", repository.folder)
    assert (outcome.code, outcome.out) == (2, "")
    lines = outcome.err.splitlines()
    half = len(lines) // 2
    assert half >= 3
    assert [f"new {tmp_path}/{line.removeprefix('old ')}" for line in lines[:half]] == lines[half:]
    assert all(line.startswith("old spec/demo/ping.yaml:") for line in lines[:half])


def test_files_that_mistakes_name_are_those_of_the_spec(repository: Repository, old_spec: Path, diff: Diff) -> None:
    repository.commit(old_spec)
    (repository.folder / "spec/demo/more.yaml").write_text("More:\n  ref: MORE\n", encoding="utf-8")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message", "More")
    outcome = diff("HEAD", old_spec, "--repository", repository.folder)
    assert outcome.code == 2
    assert outcome.err == "old spec/demo/more.yaml:1:1: is not listed under 'files' in spec/demo/protocol.yaml\n"


def test_markdown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old_spec: Path, diff: Diff) -> None:
    monkeypatch.chdir(tmp_path)
    write_small(tmp_path / "new", DATA["markdown"]["edit"])
    assert diff("before", "new", "--format", "markdown").out == DATA["markdown"]["text"]


def test_annotations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old_spec: Path, diff: Diff) -> None:
    """Colons, commas and percent signs are written so that GitHub's runner takes them for text."""
    monkeypatch.chdir(tmp_path)
    write_small(tmp_path / "a, b: 100%", DATA["markdown"]["edit"])
    lines = diff(old_spec, "a, b: 100%", "--format", "github").out.splitlines()
    file = "file=a%2C b%3A 100%25/demo"
    assert lines[0] == (
        f"::warning {file}/ping.yaml,line=1,col=1,title=wire field-gone::"
        "Ping.trace_id is removed: Int32, when traced [v1 v2] (was before/demo/ping.yaml:30:7)"
    )
    assert lines[11] == (
        f"::notice {file}/talk.yaml,line=47,col=1,title=added message-added::"
        "Sing is added, with the tag 'I': Sings `la` | <la>, 100%25. [v3]"
    )
    assert len(lines) == 13 + 3
    assert lines[13] == "6 wire, 3 api, 3 added, 1 doc"


def test_json(old_spec: Path, new_spec: Path, diff: Diff) -> None:
    report = json.loads(diff(old_spec, new_spec, "--format", "json").out)
    (finding,) = report["findings"]
    assert (finding["severity"], finding["rule"], finding["was"]) == ("wire", "field-condition", None)
    assert Path(finding["path"]).is_relative_to(new_spec)
    assert (report["counts"]["wire"], report["versions"]["other"]) == (1, {"v1": "unchanged"})


def test_markdown_of_no_change(repository: Repository, old_spec: Path, diff: Diff) -> None:
    revision = repository.commit(old_spec)
    assert diff("HEAD", "--format", "markdown", "--repository", repository.folder).out == (
        "### Spec diff\n"
        "\n"
        f"From HEAD ({revision[:12]}) to working tree: 0 wire, 0 api, 0 added, 0 doc.\n"
        "\n"
        "- demo: v1 v2 unchanged\n"
        "- other: v1 unchanged\n"
    )


def test_the_output_is_the_same_every_time(tmp_path: Path, old_spec: Path) -> None:
    """In other processes too, where sets have another order."""
    new = write_small(tmp_path / "new", DATA["markdown"]["edit"])
    script = (
        "import argparse\nfrom codegen.diff import add_arguments, run\nparser = argparse.ArgumentParser()\n"
        "add_arguments(parser)\nfor name in ('text', 'markdown', 'github', 'json'):\n"
        f"    run(parser.parse_args([{str(old_spec)!r}, {str(new)!r}, '--format', name]))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script], cwd=ROOT, env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert all(outputs)
