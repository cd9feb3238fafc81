"""The command: which sides it takes, what it prints in each format, and its exit code."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.codegen.diff.running import RULES, SPEC, Diff
from tests.codegen.diff.specs import Repository, edited
from tests.conftest import ROOT

STREAM_ABORT = "logicalrep/stream_abort.yaml"
WITHOUT_PARALLEL = {
    STREAM_ABORT: [("      since: 4\n      when: parallel\n      doc: Where", "      since: 4\n      doc: Where")]
}
LINE = (SPEC / STREAM_ABORT).read_text(encoding="utf-8").splitlines().index("    - abort_lsn: Int64 (XLogRecPtr)") + 1
WITHOUT_PARALLEL_PRINTED = f"""\
new spec/logicalrep/stream_abort.yaml:{LINE}: wire field-condition: Stream Abort.abort_lsn is there always, was there when parallel [v4]
1 wire, 0 api, 0 new, 0 doc
logicalrep: v1 v2 v3 unchanged, v4 changed
walsender: v1 unchanged
"""

BEFORE, AFTER = RULES / "field-condition" / "before", RULES / "field-condition" / "after"
PRINTED = (RULES / "field-condition" / "expected.txt").read_text(encoding="utf-8").replace("after/", "spec/")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A git repository without commits."""
    return Repository(tmp_path / "repository", monkeypatch)


def test_a_condition_that_is_lost(tmp_path: Path, diff: Diff) -> None:
    outcome = diff(SPEC, edited(tmp_path / "spec", WITHOUT_PARALLEL))
    assert (outcome.code, outcome.out, outcome.err) == (1, WITHOUT_PARALLEL_PRINTED, "")


def test_a_folder_may_be_a_spec_or_hold_one(tmp_path: Path, diff: Diff) -> None:
    edited(tmp_path / "spec", WITHOUT_PARALLEL)
    assert diff(ROOT, tmp_path).out == WITHOUT_PARALLEL_PRINTED
    assert diff(SPEC, tmp_path).out == WITHOUT_PARALLEL_PRINTED


def test_a_folder_is_shown_by_its_own_name(tmp_path: Path, diff: Diff) -> None:
    outcome = diff(edited(tmp_path / "mine", WITHOUT_PARALLEL), SPEC)
    assert outcome.out.startswith(f"new spec/logicalrep/stream_abort.yaml:{LINE}: wire field-condition")
    outcome = diff(SPEC, edited(tmp_path / "yours", {STREAM_ABORT: [("Stream Abort:", "Abort:"), ("'A'", "'a'")]}))
    assert "new yours/logicalrep/stream_abort.yaml:1: wire message-added: Abort" in outcome.out
    assert "old spec/logicalrep/stream_abort.yaml:1: wire message-gone: Stream Abort" in outcome.out


@pytest.mark.parametrize(
    ("rule", "fail_on", "code"),
    [
        ("field-type", "wire", 1),
        ("field-type", "api", 1),
        ("field-type", "none", 0),
        ("field-renamed", "wire", 0),
        ("field-renamed", "api", 1),
        ("field-renamed", "none", 0),
        ("field-new", "api", 0),
        ("doc-note", "api", 0),
    ],
)
def test_the_exit_code(rule: str, fail_on: str, code: int, diff: Diff) -> None:
    assert diff(RULES / rule / "before", RULES / rule / "after", "--fail-on", fail_on).code == code
    if fail_on == "wire":
        assert diff(RULES / rule / "before", RULES / rule / "after").code == code


def test_revisions(repository: Repository, diff: Diff) -> None:
    first, second = repository.commit(BEFORE), repository.commit(AFTER)
    repository.git("tag", "v1.0", first)
    for old, new in ((first, second), ("v1.0", "main"), ("HEAD~1", "HEAD"), (first[:8], repository.folder)):
        outcome = diff(old, new, "--repository", repository.folder)
        assert (outcome.code, outcome.out, outcome.err) == (1, PRINTED, "")


def test_the_working_tree_is_the_new_side_by_default(repository: Repository, diff: Diff) -> None:
    repository.commit(BEFORE)
    assert diff("HEAD", "--repository", repository.folder).code == 0
    shutil.copytree(AFTER, repository.folder / "spec", dirs_exist_ok=True)
    assert diff("HEAD", "--repository", repository.folder).out == PRINTED


def test_a_repository_may_be_a_folder_of_a_larger_one(repository: Repository, diff: Diff) -> None:
    inner = repository.folder / "inner"
    shutil.copytree(BEFORE, inner / "spec")
    revision = repository.commit(None)
    assert diff(revision, "--repository", inner).code == 0
    assert "has no spec" in diff(revision, "--repository", repository.folder).err


def test_files_are_read_as_git_has_them(repository: Repository, diff: Diff) -> None:
    """What attributes leave out of archives, or change in them, is part of the revision all the same."""
    (repository.folder / ".gitattributes").write_text(
        "spec/** export-ignore\nspec/** text eol=crlf\n", encoding="utf-8"
    )
    repository.commit(AFTER)
    outcome = diff(BEFORE, "HEAD", "--repository", repository.folder)
    assert (outcome.code, outcome.out) == (1, PRINTED)


def test_a_revision_without_a_spec(repository: Repository, diff: Diff) -> None:
    first, second = repository.commit(None), repository.commit(BEFORE)
    repository.git("mv", "spec", "moved")
    repository.git("commit", "--quiet", "--message", "Move the spec")
    for revision in (first, "HEAD"):
        outcome = diff(revision, second, "--repository", repository.folder)
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err == f"old revision {revision!r} has no spec: there are no YAML files in spec/\n"


@pytest.mark.parametrize("name", ["nothing", "--all", "HEAD:spec", "", "HEAD\nHEAD"])
def test_a_side_that_is_nothing(name: str, repository: Repository, diff: Diff) -> None:
    repository.commit(BEFORE)
    outcome = diff("--repository", repository.folder, "--", "HEAD", name)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == f"new {name!r} is neither a folder nor a git revision in {repository.folder}\n"


def test_a_revision_where_there_is_no_repository(tmp_path: Path, diff: Diff) -> None:
    outcome = diff("HEAD", SPEC, "--repository", tmp_path)
    assert (outcome.code, outcome.err) == (2, f"old 'HEAD' is neither a folder nor a git revision in {tmp_path}\n")


def test_a_folder_without_a_spec(tmp_path: Path, diff: Diff) -> None:
    outcome = diff(tmp_path, SPEC)
    text = f"old folder '{tmp_path}' is no spec and holds none: it has neither types.yaml nor spec/\n"
    assert (outcome.code, outcome.out, outcome.err) == (2, "", text)


def test_a_name_that_is_a_folder_and_a_revision(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, diff: Diff
) -> None:
    repository.commit(BEFORE)
    repository.git("branch", "spec")
    monkeypatch.chdir(repository.folder)
    outcome = diff("spec", "--repository", repository.folder)
    assert outcome.err == "old 'spec' is both a folder and a git revision; write ./spec or spec^0\n"
    for name in ("./spec", "spec^0"):
        assert diff(name, "--repository", repository.folder).code == 0


def test_mistakes_of_both_sides_are_printed(tmp_path: Path, repository: Repository, diff: Diff) -> None:
    mistakes = tmp_path / "spec"
    shutil.copytree(BEFORE, mistakes)
    ping = mistakes / "demo/ping.yaml"
    ping.write_text(ping.read_text(encoding="utf-8").replace("Int32", "Int33").replace("ref:", "reference:"))
    repository.commit(mistakes)
    outcome = diff("HEAD", mistakes, "--repository", repository.folder)
    assert (outcome.code, outcome.out) == (2, "")
    lines = outcome.err.splitlines()
    half = len(lines) // 2
    assert half >= 3
    assert [f"new {line.removeprefix('old ')}" for line in lines[:half]] == lines[half:]
    assert all(line.startswith("old spec/demo/ping.yaml:") for line in lines[:half])


def test_files_that_mistakes_name_are_those_of_the_spec(repository: Repository, diff: Diff) -> None:
    repository.commit(BEFORE)
    (repository.folder / "spec/demo/more.yaml").write_text("More:\n  ref: MORE\n", encoding="utf-8")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message", "More")
    outcome = diff("HEAD", BEFORE, "--repository", repository.folder)
    assert outcome.code == 2
    assert outcome.err == "old spec/demo/more.yaml:1:1: is not listed under 'files' in spec/demo/protocol.yaml\n"


def test_what_a_client_of_version_3_has_to_learn_for_version_4(diff: Diff) -> None:
    outcome = diff("--versions", 3, 4)
    assert outcome.code == 0
    *findings, counts, summary = outcome.out.splitlines()
    assert [finding.split(": ")[1:3:1][-1].split()[0] for finding in findings] == [
        "version",
        "session",
        "Stream",
        "Stream",
    ]
    assert [finding.split(": ")[1] for finding in findings] == [
        "new version-new",
        "new session-fact-new",
        "new field-new",
        "new field-new",
    ]
    assert findings[2].endswith("Stream Abort.abort_lsn is new: Int64 (XLogRecPtr), since 4, when parallel [v4]")
    assert counts == "0 wire, 0 api, 4 new, 0 doc"
    assert summary == "logicalrep v3 to v4: Stream Abort changed, 18 unchanged"


def test_versions_by_the_messages_that_they_bring(diff: Diff) -> None:
    prepared = "Begin Prepare, Prepare, Commit Prepared, Rollback Prepared, Stream Prepare new"
    streamed = "Message, Relation, Type, Insert, Update, Delete, Truncate changed"
    streams = "Stream Start, Stream Stop, Stream Commit, Stream Abort"
    for first, second, summary in (
        (1, 2, f"logicalrep v1 to v2: {streamed}, {streams} new, 3 unchanged"),
        (2, 3, f"logicalrep v2 to v3: {prepared}, 14 unchanged"),
        (4, 4, "logicalrep v4 to v4: 19 unchanged"),
        (2, 1, f"logicalrep v2 to v1: {streamed}, {streams} gone, 3 unchanged"),
    ):
        outcome = diff("--versions", first, second)
        assert outcome.out.splitlines()[-1] == summary
        assert outcome.code == (1 if first > second else 0)


def test_versions_of_another_spec(tmp_path: Path, diff: Diff) -> None:
    outcome = diff("--versions", 3, 4, edited(tmp_path / "spec", WITHOUT_PARALLEL))
    assert "Stream Abort.abort_lsn is new: Int64 (XLogRecPtr), since 4 [v4]" in outcome.out


def test_the_layouts_of_two_versions_side_by_side(diff: Diff) -> None:
    out = diff("--versions", 3, 4, "--format", "markdown").out
    assert out[out.index("#### ") :] == (
        "#### Stream Abort\n"
        "\n"
        "| | v3 | v4 |\n"
        "|---|---|---|\n"
        "|  | `tag: Byte1('A')` | `tag: Byte1('A')` |\n"
        "|  | `xid: Int32 (TransactionId)` | `xid: Int32 (TransactionId)` |\n"
        "|  | `subxid: Int32 (TransactionId)` | `subxid: Int32 (TransactionId)` |\n"
        "| **new** |  | `abort_lsn: Int64 (XLogRecPtr), since 4, when parallel` |\n"
        "| **new** |  | `abort_timestamp: Int64 (TimestampTz), since 4, when parallel` |\n"
        "\n"
        "- logicalrep v3 to v4: Stream Abort changed, 18 unchanged\n"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--versions", "3", "9"], "no protocol has the versions 3 and 9; logicalrep has 1 to 4, walsender has 1 to 1"),
        (["--versions", "0", "1"], "no protocol has the versions 0 and 1; logicalrep has 1 to 4, walsender has 1 to 1"),
        (["--versions", "1", "2", "a", "b"], "--versions compares versions of one spec, so there is one side at most"),
        ([], "one side is needed at least, or --versions FROM TO"),
    ],
)
def test_arguments_that_make_no_sense(arguments: list[str], text: str, diff: Diff) -> None:
    outcome = diff(*arguments)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"diff: {text}\n")


def test_markdown(monkeypatch: pytest.MonkeyPatch, diff: Diff) -> None:
    folder = Path(__file__).parent / "markdown"
    monkeypatch.chdir(folder)
    assert diff("before", "after", "--format", "markdown").out == (folder / "expected.md").read_text(encoding="utf-8")


def test_markdown_of_no_change(repository: Repository, diff: Diff) -> None:
    revision = repository.commit(BEFORE)
    assert diff("HEAD", "--format", "markdown", "--repository", repository.folder).out == (
        "### Spec diff\n"
        "\n"
        f"From HEAD ({revision[:12]}) to working tree: 0 wire, 0 api, 0 new, 0 doc.\n"
        "\n"
        "- demo: v1 v2 unchanged\n"
    )


def test_json(tmp_path: Path, diff: Diff) -> None:
    new = edited(tmp_path / "spec", WITHOUT_PARALLEL | {"logicalrep/prepare.yaml": [("- gid: String", "- gid: Int32")]})
    report = json.loads(diff(SPEC, new, "--format", "json").out)
    assert list(report) == ["old", "new", "compared_versions", "findings", "counts", "summary"]
    assert (report["old"], report["new"], report["compared_versions"]) == (str(SPEC), str(new), None)
    assert report["counts"] == {"wire": 2, "api": 0, "new": 0, "doc": 0}
    assert report["summary"] == {
        "logicalrep": {
            "1": "changed where two_phase",
            "2": "changed where two_phase",
            "3": "changed",
            "4": "changed",
        },
        "walsender": {"1": "unchanged"},
    }
    first, second = report["findings"]
    assert (first["subject"], first["versions"], first["versions_where"]) == (
        "Prepare.gid",
        [3, 4],
        {"two_phase": [1, 2]},
    )
    assert second == {
        "rule": "field-condition",
        "severity": "wire",
        "side": "new",
        "path": "spec/logicalrep/stream_abort.yaml",
        "line": LINE,
        "protocol": "logicalrep",
        "layout": "Stream Abort",
        "subject": "Stream Abort.abort_lsn",
        "text": "is there always, was there when parallel",
        "before": "when parallel",
        "after": "always",
        "versions": [4],
        "versions_where": {},
    }


def test_the_output_is_the_same_every_time() -> None:
    """In other processes too, where sets have another order."""
    markdown = Path(__file__).parent / "markdown"
    script = (
        "import argparse\nfrom codegen.diff import add_arguments, run\nparser = argparse.ArgumentParser()\n"
        "add_arguments(parser)\nfor name in ('text', 'markdown', 'json'):\n"
        f"    run(parser.parse_args([{str(markdown / 'before')!r}, {str(markdown / 'after')!r}, '--format', name]))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script], cwd=ROOT, env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert all(outputs)
