"""The spec alone decides what a column of batches is called: no field renames another's, and what clashes is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from codegen.emit.columns import WalkSource, walks_of
from codegen.model.places import SpecError
from codegen.model.reader import load
from codegen.model.versions import views
from tests.codegen.model.generation import emit_unformatted
from tests.conftest import ROOT

TIMESTAMP = "    - commit_timestamp: Int64 (TimestampTz)\n"
PLANS = Path("logicalrep_protocol/columnar/plans.py")

# The file, what is replaced in it and by what, and the finding.
CLASHES: dict[str, tuple[str, str, str, str]] = {
    "another type": (
        "begin.yaml",
        TIMESTAMP,
        "    - commit_timestamp: Int32 (TransactionId)\n",
        "commit.yaml:16:7: Commit.commit_timestamp fills the column 'commit_timestamp' of batches with TimestampTz, but "
        "Begin.commit_timestamp with TransactionId",
    ),
    "the column of another field of the message": (
        "commit.yaml",
        "    - end_lsn: Int64 (XLogRecPtr)\n",
        "    - end_lsn: Int64 (XLogRecPtr)\n      batch column: commit_lsn\n",
        "commit.yaml:14:7: Commit.end_lsn fills the column 'commit_lsn' of batches, which another field of the message "
        "fills",
    ),
    "a column of every batch": (
        "origin.yaml",
        "    - name: String\n",
        "    - name: String\n      batch column: error\n",
        "origin.yaml:13:7: Origin.name fills the column 'error' of batches, which every batch has",
    ),
    "a column of the items of a list": (
        "relation.yaml",
        "    - name: String\n      doc: The column's name.\n",
        "    - name: String\n      batch column: type_id\n      doc: The column's name.\n",
        "relation.yaml:53:7: Column.type_id is named 'type_id' in the items of a column, like another field",
    ),
}


def _write_edited(folder: Path, file: str, old: str, new: str) -> Path:
    spec = Path(shutil.copytree(ROOT / "spec", folder / "spec"))
    path = spec / "logicalrep" / file
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    return spec


def _walks(spec: Path) -> list[WalkSource]:
    (protocol,) = (protocol for protocol in load(spec) if protocol.has_decoder)
    return walks_of(views(protocol))


def _numbers(walk: WalkSource) -> dict[str, dict[str, int]]:
    """Return the numbers of each message's columns."""
    return {
        source.function: {path: walk.number_of(column) for path, column in source.numbered.items()}
        for source in walk.messages
    }


@pytest.mark.parametrize("name", CLASHES)
def test_a_column_that_stands_for_two_things_is_refused(name: str, tmp_path: Path) -> None:
    *edit, finding = CLASHES[name]
    with pytest.raises(SpecError) as raised:
        emit_unformatted(load(_write_edited(tmp_path, *edit)))
    assert [str(mistake).removeprefix(f"{tmp_path}/spec/logicalrep/") for mistake in raised.value.findings] == [
        f"{finding}; give it another name with 'batch column'"
    ]


def test_renaming_one_column_keeps_the_other_columns(tmp_path: Path) -> None:
    other = "    - commit_timestamp: Int32 (TransactionId)\n      batch column: begin_time\n"
    old_lines = emit_unformatted(load(ROOT / "spec"))[PLANS].splitlines()
    new_lines = emit_unformatted(load(_write_edited(tmp_path, "begin.yaml", TIMESTAMP, other)))[PLANS].splitlines()
    added = [line.strip() for line in new_lines if line.strip() not in {line.strip() for line in old_lines}]
    assert any("name='begin_time', kind='int', width=4" in line for line in added)
    assert sum("name='commit_timestamp'" in line for line in new_lines) == sum(
        "name='commit_timestamp'" in line for line in old_lines
    )


def test_a_new_row_of_the_newest_version_renumbers_no_column_of_older_versions(tmp_path: Path) -> None:
    row = "    - weather: Int32\n      since: 4\n      doc: The weather.\n"
    spec = _write_edited(tmp_path, "begin.yaml", TIMESTAMP, f"{row}{TIMESTAMP}")
    old_numbers, new_numbers = ([_numbers(walk) for walk in _walks(folder)] for folder in (ROOT / "spec", spec))
    assert new_numbers[:3] == old_numbers[:3]
    assert new_numbers[3] != old_numbers[3]
