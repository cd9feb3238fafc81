"""The kit finds logicalrep right and wrong tools wrong, through one contract."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from conformance.cases import read_cases
from conformance.histories.generating import history
from conformance.run import Patience, Run
from conformance.tool import TOOLS, Contents, NotAvailableError, Tool
from conformance.workloads import Outcome, play_cases, play_histories, play_kills
from tests.postgres.servers import Database
from tests.waiting import eventually

LOCAL = next(tool for tool in TOOLS if tool.key == "local")
WRONG = Tool("wrong", "wrong", (sys.executable, str(Path(__file__).with_name("wrong_tool.py"))))
PATIENCE = Patience(longest=120, settled=0.5)


def _results(outcome: Outcome) -> dict[str, str]:
    return {table: str(verdict) for table, verdict in outcome.verdicts.items()}


def test_logicalrep_is_right_in_every_case(db18: Database, tmp_path: Path) -> None:
    cases = read_cases()
    outcome = play_cases(Run(LOCAL, db18.dsn, tmp_path / "run", PATIENCE), cases)
    assert _results(outcome) == {f"public.{case.table}": "right" for case in cases}
    assert outcome.exits == 0


def test_a_wrong_tool_is_wrong(db18: Database, tmp_path: Path) -> None:
    cases = [case for case in read_cases() if case.table in ("deleted", "saved")]
    outcome = play_cases(Run(WRONG, db18.dsn, tmp_path / "run", PATIENCE), cases)
    assert _results(outcome) == {
        "public.deleted": "wrong: `v` is `v1`, not `back`; 2 such rows; 2 rows too many",
        "public.saved": "wrong: `v` is `v2`, not `kept`",
    }


def test_a_tool_that_exits_fails_with_its_last_line(db18: Database, tmp_path: Path) -> None:
    cases = [case for case in read_cases() if case.table == "moved"]
    exits = Tool("exits", "exits", ("sh", "-c", "echo no disk; exit 3"))
    outcome = play_cases(Run(exits, db18.dsn, tmp_path / "run", PATIENCE), cases)
    assert _results(outcome) == {"public.moved": "failed: `follow` exited with 3 too often: no disk"}


def test_a_tool_that_cannot_run_here_gives_the_reason() -> None:
    with pytest.raises(NotAvailableError, match=r"^mine is left out: no disk$"):
        Tool.parse("mine=sh -c 'echo no disk >&2; exit 1'").version()
    with pytest.raises(NotAvailableError, match="No such file"):
        Tool.parse("mine=/nowhere/tool").version()
    with pytest.raises(ValueError, match="is not NAME=COMMAND"):
        Tool.parse("/nowhere/tool")


def test_a_tool_reads_rows_and_reports_tables_without_current_rows(tmp_path: Path) -> None:
    lines = [
        {"table": "s.a", "row": {"id": "1"}},
        {"table": "s.b", "behind": "loading"},
        {"table": "s.c", "stopped": "no type"},
    ]
    (tmp_path / "lines").write_text("\n".join(map(json.dumps, lines)))
    contents = Tool("cat", "cat", ("sh", "-c", f"cat {tmp_path}/lines")).read(tmp_path, ["s.a", "s.b", "s.c", "s.d"])
    assert contents == {
        "s.a": Contents([{"id": "1"}]),
        "s.b": Contents(behind="loading"),
        "s.c": Contents(stopped="no type"),
        "s.d": Contents(),
    }
    failing = Tool("fails", "fails", ("sh", "-c", "echo no disk >&2; exit 1")).read(tmp_path, ["s.a"])
    assert failing == {"s.a": Contents(behind="`read` failed with 1: no disk")}


def _is_running(pid: int) -> bool:
    """Return whether a process runs: a killed one may wait for its parent to notice."""
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_a_kill_ends_every_process_of_a_tool(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    forks = Tool("forks", "forks", ("sh", "-c", f"sleep 600 & echo $! > {file}.new; mv {file}.new {file}; wait"))
    follower = forks.follow("", "", tmp_path, tmp_path / "log")
    eventually(file.is_file)
    follower.kill()
    assert follower.exit_code == -9
    assert not _is_running(int(file.read_text()))


@pytest.mark.thorough
def test_logicalrep_is_right_after_schema_changes_and_kills(db18: Database, tmp_path: Path) -> None:
    histories = [history(f"h{number}", 2, 2, with_entries=False) for number in range(10)]
    outcome = play_histories(Run(LOCAL, db18.dsn, tmp_path / "run"), histories, 2)
    assert {verdict.result for verdict in outcome.verdicts.values()} == {"right"}
    assert outcome.kills + outcome.statements > 0
    assert outcome.exits == 0


@pytest.mark.thorough
def test_logicalrep_is_right_after_kills(db18: Database, tmp_path: Path) -> None:
    outcome = play_kills(Run(LOCAL, db18.dsn, tmp_path / "run"), 1, 3)
    assert {verdict.result for verdict in outcome.verdicts.values()} == {"right"}
    assert outcome.kills == 3
