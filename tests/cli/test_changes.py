"""`logicalrep changes`: the committed changes of a capture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from logicalrep import Lsn, Oid, TimestampTz, TransactionId, v2
from logicalrep.cli.main import main
from logicalrep_protocol.v2 import AnyMessage

MOMENT = TimestampTz(848_000_000_000_000)
TABLE = Oid(16384)
TOP, SUB = TransactionId(9), TransactionId(10)


def column(name: str, flags: int) -> v2.Column:
    return v2.Column(flags=flags, name=name, type_id=Oid(25), type_modifier=-1)


def relation(xid: TransactionId | None = None) -> v2.Relation:
    return v2.Relation(
        xid=xid,
        relation_id=TABLE,
        namespace="",
        name="orders",
        replica_identity=v2.ReplicaIdentity.DEFAULT,
        columns=(column("id", 1), column("note", 0)),
    )


def row(*cells: v2.Cell) -> v2.TupleData:
    return v2.TupleData.of(*cells)


ONE, TWO = v2.Text(b"1"), v2.Text(b"2")
MESSAGES: list[AnyMessage] = [
    v2.StreamStart(xid=TOP, first_segment=True),
    relation(TOP),
    v2.Insert(xid=TOP, relation_id=TABLE, new=row(ONE, v2.Text(b"kept"))),
    v2.Insert(xid=SUB, relation_id=TABLE, new=row(TWO, v2.Text(b"rolled back"))),
    v2.StreamStop(),
    v2.Message(flags=0, message_lsn=Lsn("0/900"), prefix="note", content=b"outside"),
    v2.StreamAbort(xid=TOP, subxid=SUB),
    v2.Begin(final_lsn=Lsn("0/1000"), commit_timestamp=MOMENT, xid=TransactionId(7)),
    v2.Origin(origin_lsn=Lsn("0/1"), name="other"),
    relation(),
    v2.Update(relation_id=TABLE, old_kind="K", old=row(ONE, v2.NullValue()), new=row(TWO, v2.UnchangedToast())),
    v2.Truncate(options=0, relation_ids=(TABLE,)),
    v2.Commit(commit_lsn=Lsn("0/1000"), end_lsn=Lsn("0/1030"), commit_timestamp=MOMENT),
    v2.StreamCommit(xid=TOP, commit_lsn=Lsn("0/2000"), end_lsn=Lsn("0/2030"), commit_timestamp=MOMENT),
    v2.Begin(final_lsn=Lsn("0/3000"), commit_timestamp=MOMENT, xid=TransactionId(11)),
    v2.Delete(relation_id=TABLE, old_kind="K", old=row(ONE, v2.NullValue())),
]


@pytest.fixture
def capture(tmp_path: Path) -> str:
    path = tmp_path / "capture.jsonl"
    lines: list[dict[str, object]] = [{"format": "pgoutput-capture/1", "proto_version": 2, "options": {}}]
    lines += [{"lsn": "0/FF0", "data": message.build().hex()} for message in MESSAGES]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def test_committed_changes_are_delivered_in_commit_order(capsys: pytest.CaptureFixture[str], capture: str) -> None:
    assert main(["changes", capture]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(item["op"], item["commit_lsn"], item["ordinal"]) for item in rows] == [
        ("message", None, None),
        ("update", "0/1000", 0),
        ("truncate", "0/1000", 1),
        ("insert", "0/2000", 0),
    ]
    assert rows[1] == {
        "op": "update",
        "schema": "pg_catalog",
        "table": "orders",
        "relation_id": 16384,
        "before": {"id": "1"},
        "after": {"id": "2"},
        "key": ["id"],
        "unchanged": ["note"],
        "lsn": "0/FF0",
        "commit_lsn": "0/1000",
        "commit_timestamp": "2026-11-14T19:33:20Z",
        "xid": 7,
        "ordinal": 0,
        "origin": "other",
        "gid": None,
    }


@pytest.mark.parametrize(("table", "count"), [("orders", 3), ("pg_catalog.orders", 3), ("public.orders", 0)])
def test_one_table_only(capsys: pytest.CaptureFixture[str], capture: str, table: str, count: int) -> None:
    assert main(["changes", "--table", table, capture]) == 0
    assert len(capsys.readouterr().out.splitlines()) == count


def test_a_table_that_is_not_written_as_in_sql(capsys: pytest.CaptureFixture[str], capture: str) -> None:
    with pytest.raises(SystemExit):
        main(["changes", "--table", "public.Orders", capture])
    assert 'write public."Orders"' in capsys.readouterr().err


def test_a_table_for_people(capsys: pytest.CaptureFixture[str], capture: str) -> None:
    assert main(["changes", "--format", "table", capture]) == 0
    assert capsys.readouterr().out == (
        "outside of transactions, at 0/FF0\n"
        '        message   prefix="note", content="outside"\n'
        "transaction 7, committed at 0/1000, 2026-11-14T19:33:20Z, from origin 'other'\n"
        '     0  update    pg_catalog.orders  id="1" -> id="2", note unchanged\n'
        "     1  truncate  pg_catalog.orders\n"
        "transaction 9, committed at 0/2000, 2026-11-14T19:33:20Z\n"
        '     0  insert    pg_catalog.orders  id="1", note="kept"\n'
    )


def test_messages_that_make_no_sense_are_refused(capsys: pytest.CaptureFixture[str], capture: str) -> None:
    lines = Path(capture).read_text().splitlines()
    Path(capture).write_text("\n".join([lines[0], lines[-3]]))
    assert main(["changes", capture]) == 1
    assert "Stream Commit" in capsys.readouterr().err
