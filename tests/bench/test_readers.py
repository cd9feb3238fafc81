"""The command that compares readers: a failure costs one table, and wrong rows are results."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pytest

from bench.readers.conditions import Condition, matching_ids
from bench.readers.examining import examine
from bench.readers.feed import changes_between
from bench.readers.page import measured_text
from bench.readers.reading import ExpressionReader, Table
from bench.readers.running import run_program

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "v": pa.array([1.0, None, float("nan")])})
CRASHING = """
import os
from bench.readers.examining import run
from tests.bench.test_readers import ArrowReader

class Crashing(ArrowReader):
    def open(self, table):
        if table.name == "b":
            os.abort()
        return super().open(table)

run(Crashing)
"""


class ArrowReader(ExpressionReader):
    """Reads the file of the expected rows: it has no faults of its own."""

    name, version = "Arrow", pa.__version__

    def open(self, table: Table) -> pa.Table:
        return table.expected()

    def scan(self, opened: pa.Table, columns: Sequence[str]) -> pa.Table:
        return opened.select(columns)

    def keep(self, opened: Any, rows: pa.Table) -> pa.Table:
        return rows

    def ids(self, opened: pa.Table, condition: Condition) -> list[int]:
        return matching_ids(opened, condition)


class FailingReader(ArrowReader):
    def keep(self, opened: Any, rows: pa.Table) -> pa.Table:
        raise OSError("no memory")


class SkippingReader(ArrowReader):
    def ids(self, opened: pa.Table, condition: Condition) -> list[int]:
        ids = super().ids(opened, condition)
        return ids[1:] if condition.operator == "IS NULL" and opened.schema.metadata else ids

    def open(self, table: Table) -> pa.Table:
        return table.expected().replace_schema_metadata({"is": "stored"})

    def scan(self, opened: pa.Table, columns: Sequence[str]) -> pa.Table:
        return super().scan(opened, columns).replace_schema_metadata()


def table(folder: Path, name: str = "a", rows: pa.Table = ROWS, feature: str = "types") -> Table:
    path = folder / f"{name}.feather"
    feather.write_feather(rows, path)
    return Table(name, feature, "delta", "", str(path), 1, is_last=True)


def test_a_reader_without_faults_has_none(tmp_path: Path) -> None:
    result = examine(ArrowReader(), table(tmp_path))
    assert result.filters > 5
    assert (result.error, result.wrong_rows, result.wrong_columns, result.wrong_filters) == ("", "", {}, [])


def test_skipped_rows_are_wrong(tmp_path: Path) -> None:
    result = examine(SkippingReader(), table(tmp_path))
    assert result.wrong_filters == ["v IS NULL: ids [], of a full scan [2]"]


def test_an_error_after_the_scan_is_a_result(tmp_path: Path) -> None:
    assert examine(FailingReader(), table(tmp_path)).error == "OSError: no memory"


def test_a_reader_without_a_change_feed_refuses_it(tmp_path: Path) -> None:
    result = examine(ArrowReader(), table(tmp_path, feature="changes"))
    assert result.error == "NotImplementedError: Arrow has no call for the change data feed"


def test_changes_are_the_rows_before_and_after() -> None:
    new = pa.table({"id": pa.array([1, 3, 4], pa.int32()), "v": [-0.0, float("nan"), 4.0]})
    old = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "v": [0.0, 2.0, float("nan")]})
    rows = changes_between(old, new, 7).to_pylist()
    assert {row["_commit_version"] for row in rows} == {7}
    assert [(row["_change_type"], row["id"], repr(row["v"])) for row in rows] == [
        ("insert", 4, "4.0"),
        ("delete", 2, "2.0"),
        ("update_preimage", 1, "0.0"),
        ("update_postimage", 1, "-0.0"),
    ]


@pytest.mark.slow
def test_a_crash_costs_one_table(tmp_path: Path) -> None:
    request, program, answer = (tmp_path / name for name in ("tables.json", "crashing.py", "answer.json"))
    request.write_text(json.dumps([asdict(table(tmp_path, name)) for name in "abc"]))
    program.write_text(CRASHING)
    content = run_program("arrow", [sys.executable, str(program), str(request), str(answer)], answer)
    assert [(result["table"], result["ended"]) for result in content["results"]] == [
        ("a", ""),
        ("b", "the process ended with the code -6"),
        ("c", ""),
    ]
    assert "- Arrow, Delta: **crash** in the table `b` (every type): the process ended" in measured_text([content])


@pytest.mark.slow
def test_a_program_that_does_not_start_ends_the_run(tmp_path: Path) -> None:
    content = run_program("arrow", [sys.executable, "-c", "raise SystemExit(3)"], tmp_path / "answer.json")
    assert (content["ended"], content["results"]) == ("the process ended with the code 3", [])
