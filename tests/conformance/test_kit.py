"""The kit finds logicalrep right and a wrong tool wrong, through the same contract."""

from __future__ import annotations

import sys
from pathlib import Path

from conformance.cases import read_cases
from conformance.run import Patience, Run
from conformance.tool import TOOLS, Tool
from conformance.workloads import play_cases
from tests.postgres.servers import Database

WRONG = Tool("wrong", "wrong", (sys.executable, str(Path(__file__).with_name("wrong_tool.py"))))
PATIENCE = Patience(longest=120, settled=0.5)


def test_logicalrep_is_right_in_every_case(db18: Database, tmp_path: Path) -> None:
    cases = read_cases()
    local = next(tool for tool in TOOLS if tool.key == "local")
    outcome = play_cases(Run(local, db18.dsn, tmp_path / "run", PATIENCE), cases)
    assert {table: str(verdict) for table, verdict in outcome.verdicts.items()} == {
        f"public.{case.table}": "right" for case in cases
    }
    assert outcome.exits == 0


def test_a_wrong_tool_is_wrong(db18: Database, tmp_path: Path) -> None:
    cases = [case for case in read_cases() if case.table in ("deleted", "saved")]
    outcome = play_cases(Run(WRONG, db18.dsn, tmp_path / "run", PATIENCE), cases)
    assert {table: str(verdict) for table, verdict in outcome.verdicts.items()} == {
        "public.deleted": "wrong: `v` is `v1`, not `back`; 2 such rows; 2 rows too many",
        "public.saved": "wrong: `v` is `v2`, not `kept`",
    }
