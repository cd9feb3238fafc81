"""`logicalrep decode`: a capture file as JSON lines, or at a glance."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from logicalrep import Lsn, Oid, TimestampTz, TransactionId, v2
from logicalrep.cli.main import main
from logicalrep_protocol.v4 import AnyMessage
from tests.cli.capture_files import jsonl

CAPTURES = Path(__file__).parents[1] / "captures"
MOMENT = TimestampTz(848_000_000_000_000)

RELATION = v2.Relation(
    relation_id=Oid(16384),
    namespace="public",
    name="orders",
    replica_identity=v2.ReplicaIdentity.DEFAULT,
    columns=(
        v2.Column(flags=1, name="id", type_id=Oid(23), type_modifier=-1),
        v2.Column(flags=0, name="note", type_id=Oid(25), type_modifier=-1),
    ),
)
MESSAGES: list[AnyMessage] = [
    v2.Begin(final_lsn=Lsn("0/1000"), commit_timestamp=MOMENT, xid=TransactionId(7)),
    RELATION,
    v2.Insert(relation_id=Oid(16384), new=v2.TupleData.of(v2.Text(b"1"), v2.Text("Käse".encode()))),
    v2.Update(relation_id=Oid(16384), new=v2.TupleData.of(v2.Text(b"1"), v2.UnchangedToast())),
    v2.Update(
        relation_id=Oid(16384),
        old_kind="K",
        old=v2.TupleData.of(v2.Text(b"1"), v2.NullValue()),
        new=v2.TupleData.of(v2.Binary(b"\0\0\0\2"), v2.Text(b"\xff")),
    ),
    v2.Message(flags=1, message_lsn=Lsn("0/FF0"), prefix="note", content=b"\x80"),
    v2.Truncate(options=3, relation_ids=(Oid(16384),)),
    v2.Commit(commit_lsn=Lsn("0/1000"), end_lsn=Lsn("0/1030"), commit_timestamp=MOMENT),
]
LINES = [
    {
        "lsn": "0/FF0",
        "message": "Begin",
        "final_lsn": "0/1000",
        "commit_timestamp": "2026-11-14T19:33:20Z",
        "xid": 7,
    },
    {
        "lsn": "0/FF0",
        "message": "Relation",
        "relation_id": 16384,
        "namespace": "public",
        "name": "orders",
        "replica_identity": "d",
        "columns": [
            {"flags": 1, "name": "id", "type_id": 23, "type_modifier": -1},
            {"flags": 0, "name": "note", "type_id": 25, "type_modifier": -1},
        ],
    },
    {
        "lsn": "0/FF0",
        "message": "Insert",
        "relation_id": 16384,
        "relation": "public.orders",
        "new": {"id": "1", "note": "Käse"},
    },
    {
        "lsn": "0/FF0",
        "message": "Update",
        "relation_id": 16384,
        "relation": "public.orders",
        "new": {"id": "1", "note": {"unchanged": True}},
    },
    {
        "lsn": "0/FF0",
        "message": "Update",
        "relation_id": 16384,
        "relation": "public.orders",
        "old_kind": "K",
        "old": {"id": "1", "note": None},
        "new": {"id": {"base64": "AAAAAg=="}, "note": {"base64": "/w=="}},
    },
    {
        "lsn": "0/FF0",
        "message": "Message",
        "flags": 1,
        "message_lsn": "0/FF0",
        "prefix": "note",
        "content": {"base64": "gA=="},
        "transactional": True,
    },
    {"lsn": "0/FF0", "message": "Truncate", "options": 3, "relation_ids": [16384]},
    {
        "lsn": "0/FF0",
        "message": "Commit",
        "commit_lsn": "0/1000",
        "end_lsn": "0/1030",
        "commit_timestamp": "2026-11-14T19:33:20Z",
    },
]


def frames(messages: list[bytes]) -> bytes:
    return b"".join((0xFF0).to_bytes(8, "big") + len(message).to_bytes(4, "big") + message for message in messages)


def decoded(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> list[dict[str, object]]:
    assert main(["decode", *map(str, arguments)]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("form", [jsonl, frames])
def test_each_message_is_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: Callable[[list[bytes]], bytes], compressed: bool
) -> None:
    data = form([message.build() for message in MESSAGES])
    path = tmp_path / "capture"
    path.write_bytes(gzip.compress(data) if compressed else data)
    assert decoded(capsys, path) == LINES


def test_text_is_read_in_the_encoding_of_the_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    relation = RELATION.build().replace(b"note", "größe".encode("latin-1"))
    row = v2.Insert(relation_id=Oid(16384), new=v2.TupleData.of(v2.Text(b"1"), v2.Text("Käse".encode("latin-1"))))
    path = tmp_path / "capture.jsonl"
    path.write_bytes(jsonl([MESSAGES[0].build(), relation, row.build()], client_encoding="LATIN1"))
    assert decoded(capsys, path)[2]["new"] == {"id": "1", "größe": "Käse"}


def test_options_outweigh_the_header(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "capture.jsonl"
    path.write_bytes(jsonl([bytes.fromhex("41 00000007 00000007 0000000000000000 0000000000000000")]))
    assert main(["decode", str(path)]) == 1
    assert "expected the end of the message, found 16 bytes more" in capsys.readouterr().err
    line = decoded(capsys, path, "--protocol-version", "4", "--parallel")[0]
    assert line["abort_lsn"] == "0/0"
    assert line["abort_timestamp"] == "2000-01-01T00:00:00Z"


def test_a_bad_message_ends_the_output_with_its_number_and_lsn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "capture.jsonl"
    path.write_bytes(jsonl([MESSAGES[0].build(), MESSAGES[1].build()[:-1], MESSAGES[2].build()]))
    assert main(["decode", str(path)]) == 1
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == 1
    assert output.err == (
        f"error: [DECODE_ERROR] {path}: message 2 at LSN 0/FF0: Relation: columns[1].type_modifier at offset 44: "
        "expected 4 bytes, found 3 bytes to the end of the message\n"
    )


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"{", "1: is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (b"{}", "1: the format is None; 'pgoutput-capture/1' or 'pgoutput-raw/1' is expected"),
        (jsonl([], proto_version=5), "1: proto_version is 5; 1 to 4 is expected"),
        (jsonl([], proto_version=True), "1: proto_version is True; 1 to 4 is expected"),
        (b"{" * 100_000, "1: is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (b'{"a":' * 100_000, "1: is not JSON: maximum recursion depth exceeded while decoding a JSON object from a unicode string"),
        (jsonl([]) + b'{"lsn": "0/0"}\n', "2: has no 'data'"),
        (jsonl([]) + b'{"lsn": "0/0", "data": "0"}\n', "2: non-hexadecimal number found in fromhex() arg at position 1"),
        (jsonl([]) + b'{"lsn": "x", "data": "42"}\n', "2: 'x' is not an LSN; expected two hexadecimal numbers, as in 16/B374D848"),
        (jsonl([]) + b"[]\n", "2: is not a JSON object"),
        (b"\0" * 11, " ends within a frame, at byte 0"),
        (b"\0" * 8 + b"\0\0\0\5BC", " ends within a message, at byte 12"),
        (
            b"\0" * 8 + b"\xff\0\0\0",
            " a message of 4278190080 bytes at byte 0 is longer than 268435456 bytes; "
            "is this a file of uint64 LSN, uint32 length and message?",
        ),
        (gzip.compress(b"{", mtime=0)[:-4], " is damaged: Compressed file ended before the end-of-stream marker was reached"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_capture_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes, error: str
) -> None:
    path = tmp_path / "capture"
    path.write_bytes(data)
    assert main(["decode", str(path)]) == 1
    assert capsys.readouterr().err == f"error: [CAPTURE_DAMAGED] {path}:{error}\n"


def test_a_capture_in_an_unknown_encoding_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "capture"
    path.write_bytes(jsonl([], client_encoding="EBCDIC"))
    assert main(["decode", str(path)]) == 1
    text = "client_encoding 'EBCDIC' has no Python codec; use UTF8 for the session"
    assert capsys.readouterr().err == f"error: [ENCODING_UNKNOWN] {path}:1: {text}\n"


def test_a_missing_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", str(tmp_path / "nothing")]) == 1
    assert "No such file or directory" in capsys.readouterr().err


def test_an_empty_file_holds_no_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "capture").write_bytes(b"")
    assert decoded(capsys, tmp_path / "capture") == []


def test_a_raw_conversation_holds_the_same_messages(capsys: pytest.CaptureFixture[str]) -> None:
    folder = CAPTURES / "pg14" / "messages"
    plain = decoded(capsys, folder / "v1-msg-live.walsender.jsonl.gz")
    assert decoded(capsys, folder / "v1-msg-live.walsender.raw.jsonl.gz") == plain
    assert len(plain) == 63


def test_a_reader_that_stops_early_sees_no_error() -> None:
    path = CAPTURES / "pg18" / "mixed" / "v4-late.sql.jsonl.gz"
    command = f"{sys.executable} -m logicalrep.cli.main decode {path} | head -1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout)["message"]


def test_the_summary_counts_messages_transactions_and_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "capture.jsonl"
    path.write_bytes(jsonl([message.build() for message in MESSAGES], server_version="16.1", transport="sql"))
    assert main(["decode", "--summary", str(path)]) == 0
    size = sum(len(message.build()) for message in MESSAGES)
    assert capsys.readouterr().out == (
        f"{path}\n"
        "PostgreSQL 16.1, protocol version 2, read by sql\n"
        f"8 messages, {size} bytes\n"
        "\n"
        "Messages\n"
        "  B  Begin                      1\n"
        "  M  Message                    1\n"
        "  C  Commit                     1\n"
        "  R  Relation                   1\n"
        "  I  Insert                     1\n"
        "  U  Update                     2\n"
        "  T  Truncate                   1\n"
        "\n"
        "Transactions\n"
        "  committed: 1 (1 whole, 0 streamed, 0 prepared before)\n"
        "  from 2026-11-14T19:33:20Z to 2026-11-14T19:33:20Z\n"
        "\n"
        "Tables\n"
        "                   Insert    Update    Delete  Truncate\n"
        "  public.orders         1         2                   1\n"
        "\n"
        "First rows\n"
        '  insert public.orders: new {"id": "1", "note": "Käse"}\n'
        '  update public.orders: new {"id": "1", "note": {"unchanged": true}}\n'
        '  update public.orders: old {"id": "1", "note": null}, new {"id": {"base64": "AAAAAg=="}, "note": {...\n'
    )


def test_what_pg_recvlogical_writes_is_refused_as_it_has_no_frames(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file ends each message with a newline, which messages may contain, so their ends cannot be found again."""
    path = tmp_path / "capture"
    path.write_bytes(b"".join(message.build() + b"\n" for message in MESSAGES))
    assert main(["decode", str(path)]) == 1
    error = capsys.readouterr().err
    assert "is this a file of uint64 LSN, uint32 length and message?" in error or "ends within a message" in error
