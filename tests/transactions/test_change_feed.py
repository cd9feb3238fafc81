"""Rows of the change feed: literal expectations, and their form as JSON."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from logicalrep import Decoder, Lsn, Oid, v1
from logicalrep.captures.capture import Capture
from logicalrep.transactions.assembler import Assembler
from logicalrep.transactions.change_feed import change_rows
from logicalrep.transactions.errors import TransactionError
from logicalrep.transactions.transaction import Decision
from logicalrep_protocol.versions import AnyMessage
from tests.transactions.captured import find
from tests.transactions.wire import (
    TABLE,
    U,
    begin,
    begin_prepare,
    commit,
    commit_prepared,
    insert,
    message,
    prepare,
    relation,
    rollback_prepared,
    row,
)

MICROSECOND = "2000-01-01T00:00:00.000100Z"


def rows(*messages: AnyMessage, encoding: str = "utf-8", **options: Any) -> list[dict[str, Any]]:
    """Return the rows of messages that are sent in one session."""
    sent = [(Lsn(0x1_0000_0010), message.build(encoding=encoding)) for message in messages]
    return list(change_rows(sent, Decoder(3, encoding=encoding), **options))


def test_an_insert() -> None:
    assert rows(begin(7, 100), relation("id", "v"), insert("1", None), commit(100)) == [
        {
            "op": "insert",
            "schema": "s",
            "table": "t",
            "relation_id": 16400,
            "before": None,
            "after": {"id": "1", "v": None},
            "key": ["id"],
            "unchanged": [],
            "lsn": "1/10",
            "commit_lsn": "0/64",
            "commit_timestamp": MICROSECOND,
            "xid": 7,
            "ordinal": 0,
            "origin": None,
            "gid": None,
        }
    ]


@pytest.mark.parametrize(
    ("change", "old_row", "new_row", "unchanged"),
    [
        (v1.Update(relation_id=TABLE, new=row("1", U)), None, {"id": "1"}, ["v"]),
        (
            v1.Update(relation_id=TABLE, old_kind="K", old=row("1", None), new=row("2", "")),
            {"id": "1"},
            {"id": "2", "v": ""},
            [],
        ),
        (
            v1.Update(relation_id=TABLE, old_kind="O", old=row("1", "x"), new=row("2", U)),
            {"id": "1", "v": "x"},
            {"id": "2", "v": "x"},
            [],
        ),
        (v1.Delete(relation_id=TABLE, old_kind="K", old=row("1", None)), {"id": "1"}, None, []),
        (v1.Delete(relation_id=TABLE, old_kind="O", old=row("1", None)), {"id": "1", "v": None}, None, []),
        (v1.Truncate(options=0, relation_ids=(TABLE,)), None, None, []),
    ],
)
def test_the_states_of_a_row(change: AnyMessage, old_row: Any, new_row: Any, unchanged: list[str]) -> None:
    [out] = rows(begin(7, 100), relation("id", "v"), change, commit(100))
    assert (out["before"], out["after"], out["unchanged"]) == (old_row, new_row, unchanged)


def test_with_replica_identity_full_every_column_is_of_the_key() -> None:
    [out] = rows(begin(7, 100), relation("id", "v", identity="f"), insert("1", "x"), commit(100))
    assert out["key"] == ["id", "v"]


def test_binary_values_and_bytes_that_are_no_text() -> None:
    broken = v1.Text(b"\xff")
    [out] = rows(begin(7, 100), relation("id", "v", "w"), insert("ü", b"\0\1", broken), commit(100))
    assert out["after"] == {"id": "ü", "v": {"base64": "AAE="}, "w": {"base64": "/w=="}}


def test_values_are_read_in_the_session_s_encoding() -> None:
    latin = v1.Text("ü".encode("latin-1"))
    [out] = rows(begin(7, 1), relation("id", name="ü"), insert(latin), commit(1), encoding="latin-1")
    assert (out["table"], out["after"]) == ("ü", {"id": "ü"})


def test_an_empty_namespace_is_pg_catalog() -> None:
    [out] = rows(begin(7, 1), relation("id", schema=""), insert("1"), commit(1))
    assert out["schema"] == "pg_catalog"


def test_messages_within_a_transaction_and_without_one() -> None:
    within, free = rows(begin(7, 1), message(b"a"), commit(1), message(b"\xff", transactional=False))
    assert (within["op"], within["after"]) == ("message", {"prefix": "p", "content": "a"})
    assert (within["xid"], within["ordinal"], within["commit_lsn"]) == (7, 0, "0/1")
    assert (free["op"], free["after"]) == ("message", {"prefix": "p", "content": {"base64": "/w=="}})
    assert (free["xid"], free["ordinal"], free["commit_lsn"], free["lsn"]) == (None, None, None, "1/10")
    assert list(within) == list(free)
    assert [within[name] for name in ("schema", "table", "relation_id", "before", "key")] == [
        None,
        None,
        None,
        None,
        [],
    ]


def test_a_truncate_is_a_row_for_each_table() -> None:
    truncate = v1.Truncate(options=0, relation_ids=(TABLE, Oid(5)))
    out = rows(begin(7, 1), relation("id"), relation("x", oid=5, name="o"), truncate, commit(1))
    assert [(row["table"], row["relation_id"], row["ordinal"]) for row in out] == [("t", 16400, 0), ("o", 5, 1)]


@pytest.mark.parametrize(
    ("table", "schemas"), [("t", ["s", "r"]), ("s.t", ["s"]), ("o", ["s"]), ("s", []), ("t.s", [])]
)
def test_one_table_alone(table: str, schemas: list[str]) -> None:
    out = rows(
        begin(7, 1),
        relation("id"),
        insert("1"),
        relation("id", oid=5, name="o"),
        insert("1", oid=5),
        relation("id", oid=6, schema="r"),
        insert("1", oid=6),
        message(b""),
        commit(1),
        message(b"", transactional=False),
        table=table,
    )
    assert [row["schema"] for row in out] == schemas


def test_a_prepared_transaction_is_delivered_with_its_commit_and_has_a_gid() -> None:
    [out] = rows(begin_prepare(7, "g", 9), relation("id"), insert("1"), prepare(7, "g", 9), commit_prepared(7, "g", 30))
    assert (out["gid"], out["commit_lsn"], out["ordinal"]) == ("g", "0/1E", 0)


def test_a_transaction_delivered_early_has_no_commit_yet() -> None:
    decisions: list[Decision] = []
    with Assembler(hand_on_prepared=True) as assembler:
        [out] = rows(
            begin_prepare(7, "g", 9),
            relation("id"),
            insert("1"),
            prepare(7, "g", 9),
            commit_prepared(7, "g", 30),
            assembler=assembler,
            on_decision=decisions.append,
        )
    assert (out["gid"], out["commit_lsn"], out["commit_timestamp"], out["ordinal"]) == ("g", None, None, 0)
    assert [decision.known for decision in decisions] == [True]


def test_rows_that_are_missing_are_an_error() -> None:
    with pytest.raises(TransactionError) as raised:
        rows(commit_prepared(7, "g", 30))
    assert str(raised.value) == (
        "[MESSAGE_OUT_OF_PLACE] Commit Prepared at 0/26 in transaction 7: "
        "the changes of the prepared transaction 'g' were sent before the reader started"
    )
    assert rows(rollback_prepared(7, "g", 9, 30)) == []


def test_a_capture_in_ten_lines() -> None:
    out = io.StringIO()
    with Capture.open(find("pg18/stream/v4-live.walsender.jsonl.gz")) as capture:
        for row in change_rows(capture, capture.session.decoder(), table="public.s_a"):
            print(json.dumps(row), file=out)
    lines = out.getvalue().splitlines()
    assert {json.loads(line)["table"] for line in lines} == {"s_a"}
