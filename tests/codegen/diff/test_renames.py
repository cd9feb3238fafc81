"""Renames are recognised as renames, and what only looks like one is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.diff import compare
from codegen.model.reader import load
from codegen.shared import out_of_order
from tests.codegen.diff.lines import printed_line
from tests.codegen.diff.specs import PROTOCOLS, Edits, write_edited

pytestmark = pytest.mark.slow

UPDATE = "logicalrep/update.yaml"
RELATION = "logicalrep/relation.yaml"
TRUNCATE = "logicalrep/truncate.yaml"
STREAM_ABORT = "logicalrep/stream_abort.yaml"
COMMIT = "logicalrep/commit.yaml"
TUPLE = "logicalrep/tuple_data.yaml"
PROTOCOL = "logicalrep/protocol.yaml"

CASES: dict[str, tuple[Edits, list[str]]] = {
    "a field that others depend on": (
        {UPDATE: [("old_kind", "before_kind")]},
        ["api field-renamed: Update.before_kind was called old_kind [v1 v2 v3 v4]"],
    ),
    "a count together with what it counts": (
        {TRUNCATE: [("relation_count", "table_count"), ("relation_ids", "table_ids")]},
        [
            "api field-renamed: Truncate.table_count was called relation_count [v1 v2 v3 v4]",
            "api field-renamed: Truncate.table_ids was called relation_ids [v1 v2 v3 v4]",
        ],
    ),
    "two neighbours of the same type": (
        {STREAM_ABORT: [("- xid:", "- top_xid:"), ("- subxid:", "- own_xid:")]},
        [
            "api field-renamed: Stream Abort.top_xid was called xid [v1 v2 v3 v4]",
            "api field-renamed: Stream Abort.own_xid was called subxid [v1 v2 v3 v4]",
        ],
    ),
    "names that change places are an order, as the fields mean something else": (
        {COMMIT: [("- commit_lsn:", "- lsn:"), ("- end_lsn:", "- commit_lsn:"), ("- lsn:", "- end_lsn:")]},
        [
            "wire field-order: Commit.commit_lsn comes after end_lsn, came after flags [v1 v2 v3 v4]",
            "doc doc-wording: Commit.end_lsn 'doc' says",
            "doc doc-wording: Commit.commit_lsn 'doc' says",
        ],
    ),
    "a new field before a rename, told apart by what they say": (
        {
            STREAM_ABORT: [
                (
                    "    - subxid: Int32 (TransactionId)\n",
                    "    - parent: Int32 (TransactionId)\n      doc: The parent.\n    - own_xid: Int32 (TransactionId)\n",
                )
            ]
        },
        [
            "wire field-added: Stream Abort.parent is added: Int32 (TransactionId) [v1 v2 v3 v4]",
            "api field-renamed: Stream Abort.own_xid was called subxid [v1 v2 v3 v4]",
        ],
    ),
    "another name and another type is another field": (
        {COMMIT: [("- commit_timestamp: Int64 (TimestampTz)", "- committed: Int32")]},
        [
            "wire field-gone: Commit.commit_timestamp is removed: Int64 (TimestampTz) [v1 v2 v3 v4]",
            "wire field-added: Commit.committed is added: Int32 [v1 v2 v3 v4]",
        ],
    ),
    "a message, with a row that changed too": (
        {STREAM_ABORT: [("Stream Abort:", "Stream Rollback:"), ("- subxid: Int32 (TransactionId)", "- subxid: Int64")]},
        [
            "wire field-type: Stream Rollback.subxid is Int64, was Int32 (TransactionId) [v1 v2 v3 v4]",
            "api message-renamed: Stream Rollback was called Stream Abort [v1 v2 v3 v4]",
        ],
    ),
    "a tag that another message takes over": (
        {"logicalrep/stream_start.yaml": [("Stream Start:", "Schedule:"), ("xid: Int32 (TransactionId)", "at: Int64"),
         ("- first_segment: Int8\n      boolean: true", "- name: String")]},
        [
            "wire message-gone: Stream Start is removed, with the tag 'S': ",
            "wire message-added: Schedule is added, with the tag 'S': ",
        ],
    ),
    "a part and a part within it": (
        {
            TUPLE: [("TupleData:", "Row:"), ("of: TupleData", "of: Row"), ("Cell", "Value")],
            UPDATE: [("TupleData", "Row")],
            "logicalrep/insert.yaml": [("TupleData", "Row")],
            "logicalrep/delete.yaml": [("TupleData", "Row")],
        },
        [
            "api part-renamed: Row was called TupleData [v1 v2 v3 v4]",
            "api part-renamed: Value was called Cell [v1 v2 v3 v4]",
        ],
    ),
    "a session fact, known by its uses": (
        {
            PROTOCOL: [("parallel:", "in_parallel:"), ("The session was started with", "The subscriber asked for")],
            STREAM_ABORT: [("when: parallel", "when: in_parallel")],
        },
        [
            "api session-fact-renamed: session fact in_parallel was called parallel [v4]",
            "doc doc-wording: session fact in_parallel 'doc' says",
        ],
    ),
    "a session fact that is an also when": (
        {
            PROTOCOL: [("two_phase:", "prepared:")],
            **{
                f"logicalrep/{name}.yaml": [("also when: two_phase", "also when: prepared")]
                for name in ("begin_prepare", "prepare", "commit_prepared", "rollback_prepared", "stream_prepare")
            },
        },
        ["api session-fact-renamed: session fact prepared was called two_phase [v3 v4]"],
    ),
    "a named type": (
        {"types.yaml": [("Epoch:", "XidEpoch:")], "walsender/hot_standby_feedback.yaml": [("is: Epoch", "is: XidEpoch")]},
        ["doc type-renamed: type XidEpoch was called Epoch"],
    ),
    "a value": (
        {RELATION: [("d: default", "d: primary_key")]},
        ["api value-renamed: Relation.replica_identity value d is primary_key, was default [v1 v2 v3 v4]"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", list(CASES))
def test_renames(case: str, tmp_path: Path) -> None:
    edits, expected = CASES[case]
    comparison = compare(PROTOCOLS, load(write_edited(tmp_path / "spec", edits)))
    findings = [printed_line(change) for change in comparison.changes]
    assert len(findings) == len(expected), findings
    for finding, start in zip(findings, expected, strict=True):
        assert finding.startswith(start)


@pytest.mark.parametrize(
    ("old", "new", "moved"),
    [
        ("abcd", "abcd", ""),
        ("abcd", "bcda", "a"),
        ("abcd", "dabc", "d"),
        ("abcd", "acbd", "b"),
        ("abcd", "dcba", "cba"),
        ("abcdef", "aebcdf", "e"),
        ("abcdef", "bacdfe", "ae"),
        ("", "", ""),
    ],
)
def test_the_fewest_fields_that_must_have_moved(old: str, new: str, moved: str) -> None:
    assert "".join(out_of_order(old, new)) == moved
