"""Verdicts on edits of the real spec: the severity, and the versions whose bytes change."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.diff.compare import compare
from codegen.model.reader import load
from tests.codegen.diff.specs import PROTOCOLS, Edits, write_edited

XID = "    - xid: Int32 (TransactionId)\n"
DOC = "      doc: The transaction's id.\n"


@pytest.mark.parametrize(
    ("edits", "findings"),
    [
        (
            {"pgwire/function_call.yaml": [("result_format: Int16\n      is: FormatCode\n", "result_format: Int16\n")]},
            ["wire field-accepts v3.0 v3.2"],
        ),
        ({"types.yaml": [("epoch: 946684800000000", "epoch: 0")]}, ["wire type-epoch v1 v2 v3 v4", "wire type-epoch v1"]),
        ({"pgwire/protocol.yaml": [("LATIN2: iso8859-2", "LATIN2: iso8859-3")]}, ["wire protocol-encodings v3.0 v3.2"]),
        (
            {"logicalrep/begin.yaml": [(XID + DOC, f"{XID}      until: 3\n{DOC}    - xid: Int64\n      since: 4\n"
                                        f"      batch column: wide_xid\n{DOC}")]},
            ["wire field-since v4", "wire field-added v4"],
        ),
    ],
    ids=["values of a type that a row loses", "epoch", "encodings", "until"],
)  # fmt: skip
def test_an_edit_has_the_severity_and_the_versions_of_its_bytes(
    edits: Edits, findings: list[str], tmp_path: Path
) -> None:
    changes = compare(PROTOCOLS, load(write_edited(tmp_path / "spec", edits))).changes
    assert [f"{change.severity} {change.rule.id} {change.versions}" for change in changes] == findings
