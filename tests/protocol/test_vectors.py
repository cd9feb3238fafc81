"""Literal bytes of every message, and what they mean."""

from __future__ import annotations

from typing import Any

import pytest

from logicalrep import DecodeError, Lsn, TimestampTz, v1, v2, v3, v4, walsender
from logicalrep_protocol.v1 import Binary, Column, NullValue, ReplicaIdentity, Text, TupleData, UnchangedToast
from tests.protocol.agreement import VERSIONS, agree

NEWEST = max(VERSIONS)
STREAMING = {"streaming": True}
PARALLEL = {"parallel": True}

# 2026-11-21 08:00:00 UTC
MOMENT = TimestampTz(848_563_200_000_000)

ONE_TEXT = TupleData(kinds=b"t", values=(b"1",))
MIXED = TupleData.of(Text(b"1"), NullValue(), UnchangedToast(), Binary(b"\0\0\0\7"))

# The bytes in hex, field by field; the first version that has them, and the last; the session's state; the message.
VECTORS: dict[str, tuple[str, int, int, dict[str, bool], Any]] = {
    "Begin": (
        "42 00000016b374d848 000303c3841b0000 000002e5",
        1, NEWEST, {},
        v1.Begin(final_lsn=Lsn("16/B374D848"), commit_timestamp=MOMENT, xid=741),
    ),
    "Begin of the largest numbers": (
        "42 ffffffffffffffff 7fffffffffffffff ffffffff",
        1, NEWEST, {},
        v1.Begin(final_lsn=Lsn("FFFFFFFF/FFFFFFFF"), commit_timestamp=TimestampTz(2**63 - 1), xid=4294967295),
    ),
    "Begin before 2000": (
        "42 0000000000000001 ffffffffffffffff 00000000",
        1, NEWEST, {},
        v1.Begin(final_lsn=Lsn("0/1"), commit_timestamp=TimestampTz(-1), xid=0),
    ),
    "Message, version 1": (
        "4d 01 0000000001a2b3c8 6a6f6200 00000005 01 00 ff 68 69",
        1, 1, {},
        v1.Message(flags=1, message_lsn=Lsn("0/1A2B3C8"), prefix="job", content=b"\x01\x00\xffhi"),
    ),
    "Message, not transactional": (
        "4d 00 0000000001a2b3c8 00 00000000",
        2, NEWEST, {},
        v2.Message(flags=0, message_lsn=Lsn("0/1A2B3C8"), prefix="", content=b""),
    ),
    "Message in a stream": (
        "4d 000002e5 01 0000000001a2b3c8 6a6f6200 00000002 6869",
        2, NEWEST, STREAMING,
        v2.Message(xid=741, flags=1, message_lsn=Lsn("0/1A2B3C8"), prefix="job", content=b"hi"),
    ),
    "Commit": (
        "43 00 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000",
        1, NEWEST, {},
        v1.Commit(commit_lsn=Lsn("0/1A2B3C8"), end_lsn=Lsn("0/1A2B3F8"), commit_timestamp=MOMENT),
    ),
    "Origin": (
        "4f 00000000deadbeef 6e6f646520c3a400",
        1, NEWEST, {},
        v1.Origin(origin_lsn=Lsn("0/DEADBEEF"), name="node ä"),
    ),
    "Origin in a stream": (
        "4f 0000000000000000 6e6f646500",
        2, NEWEST, STREAMING,
        v1.Origin(origin_lsn=Lsn(0), name="node"),
    ),
    "Relation, version 1": (
        "52 00004003 7075626c696300 6f726465727300 64 0002  01 696400 00000014 ffffffff  00 6e6f746500 00000413 00000024",
        1, 1, {},
        v1.Relation(
            relation_id=16387,
            namespace="public",
            name="orders",
            replica_identity=ReplicaIdentity.DEFAULT,
            columns=(
                Column(flags=1, name="id", type_id=20, type_modifier=-1),
                Column(flags=0, name="note", type_id=1043, type_modifier=36),
            ),
        ),
    ),
    "Relation": (
        "52 fffffffe 00 7400 66 0000",
        2, NEWEST, {},
        v2.Relation(
            relation_id=4294967294, namespace="", name="t", replica_identity=v2.ReplicaIdentity.FULL, columns=()
        ),
    ),
    "Relation in a stream": (
        "52 000002e6 00004003 7300 7400 69 0001  00 6100 00000017 ffffffff",
        2, NEWEST, STREAMING,
        v2.Relation(
            xid=742,
            relation_id=16387,
            namespace="s",
            name="t",
            replica_identity=v2.ReplicaIdentity.INDEX,
            columns=(Column(flags=0, name="a", type_id=23, type_modifier=-1),),
        ),
    ),
    "Type, version 1": (
        "59 00004010 7300 6d6f6f6400",
        1, 1, {},
        v1.Type(type_id=16400, namespace="s", name="mood"),
    ),
    "Type": (
        "59 00004010 7300 6d6f6f6400",
        2, NEWEST, {},
        v2.Type(type_id=16400, namespace="s", name="mood"),
    ),
    "Type in a stream": (
        "59 000002e6 00004010 00 76617263686172 00",
        2, NEWEST, STREAMING,
        v2.Type(xid=742, type_id=16400, namespace="", name="varchar"),
    ),
    "Insert, version 1": (
        "49 00004003 4e 0004  74 00000001 31  6e  75  62 00000004 00000007",
        1, 1, {},
        v1.Insert(relation_id=16387, new=MIXED),
    ),
    "Insert": (
        "49 00004003 4e 0001 74 00000001 31",
        2, NEWEST, {},
        v2.Insert(relation_id=16387, new=ONE_TEXT),
    ),
    "Insert in a stream": (
        "49 000002e6 00004003 4e 0001 74 00000001 31",
        2, NEWEST, STREAMING,
        v2.Insert(xid=742, relation_id=16387, new=ONE_TEXT),
    ),
    "Insert of no columns": (
        "49 00004003 4e 0000",
        1, 1, {},
        v1.Insert(relation_id=16387, new=TupleData(kinds=b"", values=())),
    ),
    "Insert of an empty text and an empty binary value": (
        "49 00004003 4e 0002 74 00000000 62 00000000",
        1, 1, {},
        v1.Insert(relation_id=16387, new=TupleData(kinds=b"tb", values=(b"", b""))),
    ),
    "Update, version 1": (
        "55 00004003 4e 0001 74 00000001 31",
        1, 1, {},
        v1.Update(relation_id=16387, new=ONE_TEXT),
    ),
    "Update of a key, version 1": (
        "55 00004003 4b 0002 74 00000001 31 6e 4e 0001 74 00000001 31",
        1, 1, {},
        v1.Update(
            relation_id=16387, old_kind="K", old=TupleData(kinds=b"tn", values=(b"1", None)), new=ONE_TEXT
        ),
    ),
    "Update with the old row": (
        "55 00004003 4f 0001 74 00000001 31 4e 0001 75",
        2, NEWEST, {},
        v2.Update(relation_id=16387, old_kind="O", old=ONE_TEXT, new=TupleData(kinds=b"u", values=(None,))),
    ),
    "Update in a stream": (
        "55 000002e6 00004003 4e 0001 74 00000001 31",
        2, NEWEST, STREAMING,
        v2.Update(xid=742, relation_id=16387, new=ONE_TEXT),
    ),
    "Update of a key in a stream": (
        "55 000002e6 00004003 4b 0000 4e 0000",
        2, NEWEST, STREAMING,
        v2.Update(
            xid=742,
            relation_id=16387,
            old_kind="K",
            old=TupleData(kinds=b"", values=()),
            new=TupleData(kinds=b"", values=()),
        ),
    ),
    "Delete by key, version 1": (
        "44 00004003 4b 0001 74 00000001 31",
        1, 1, {},
        v1.Delete(relation_id=16387, old_kind="K", old=ONE_TEXT),
    ),
    "Delete with the old row": (
        "44 00004003 4f 0001 74 00000001 31",
        2, NEWEST, {},
        v2.Delete(relation_id=16387, old_kind="O", old=ONE_TEXT),
    ),
    "Delete in a stream": (
        "44 000002e6 00004003 4b 0001 74 00000001 31",
        2, NEWEST, STREAMING,
        v2.Delete(xid=742, relation_id=16387, old_kind="K", old=ONE_TEXT),
    ),
    "Truncate, version 1": (
        "54 00000002 03 00004003 80000001",
        1, 1, {},
        v1.Truncate(options=3, relation_ids=(16387, 2147483649)),
    ),
    "Truncate": (
        "54 00000001 00 00004003",
        2, NEWEST, {},
        v2.Truncate(options=0, relation_ids=(16387,)),
    ),
    "Truncate in a stream": (
        "54 000002e6 00000001 01 00004003",
        2, NEWEST, STREAMING,
        v2.Truncate(xid=742, options=1, relation_ids=(16387,)),
    ),
    "Truncate of nothing": (
        "54 00000000 02",
        1, 1, {},
        v1.Truncate(options=2, relation_ids=()),
    ),
    "Stream Start, first segment": (
        "53 000002e5 01",
        2, NEWEST, {},
        v2.StreamStart(xid=741, first_segment=True),
    ),
    "Stream Start, later segment": (
        "53 ffffffff 00",
        2, NEWEST, {},
        v2.StreamStart(xid=4294967295, first_segment=False),
    ),
    "Stream Stop": ("45", 2, NEWEST, STREAMING, v2.StreamStop()),
    "Stream Commit": (
        "63 000002e5 00 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000",
        2, NEWEST, {},
        v2.StreamCommit(
            xid=741, commit_lsn=Lsn("0/1A2B3C8"), end_lsn=Lsn("0/1A2B3F8"), commit_timestamp=MOMENT
        ),
    ),
    "Stream Abort, versions 2 and 3": (
        "41 000002e5 000002e6",
        2, 3, {},
        v2.StreamAbort(xid=741, subxid=742),
    ),
    "Stream Abort, version 4": (
        "41 000002e5 000002e6",
        4, NEWEST, {},
        v4.StreamAbort(xid=741, subxid=742),
    ),
    "Stream Abort, parallel": (
        "41 000002e5 000002e5 0000000001a2b3c8 000303c3841b0000",
        4, NEWEST, PARALLEL,
        v4.StreamAbort(xid=741, subxid=741, abort_lsn=Lsn("0/1A2B3C8"), abort_timestamp=MOMENT),
    ),
    "Stream Abort, parallel, after a crash": (
        "41 000002e5 000002e5 0000000000000000 0000000000000000",
        4, NEWEST, PARALLEL,
        v4.StreamAbort(xid=741, subxid=741, abort_lsn=Lsn(0), abort_timestamp=TimestampTz(0)),
    ),
    "Begin Prepare": (
        "62 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000 000002e5 67696400",
        3, NEWEST, {},
        v3.BeginPrepare(
            prepare_lsn=Lsn("0/1A2B3C8"), end_lsn=Lsn("0/1A2B3F8"), prepare_timestamp=MOMENT, xid=741, gid="gid"
        ),
    ),
    "Prepare": (
        "50 00 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000 000002e5 67696400",
        3, NEWEST, {},
        v3.Prepare(
            prepare_lsn=Lsn("0/1A2B3C8"), end_lsn=Lsn("0/1A2B3F8"), prepare_timestamp=MOMENT, xid=741, gid="gid"
        ),
    ),
    "Commit Prepared": (
        "4b 00 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000 000002e5 67696400",
        3, NEWEST, {},
        v3.CommitPrepared(
            commit_lsn=Lsn("0/1A2B3C8"), end_lsn=Lsn("0/1A2B3F8"), commit_timestamp=MOMENT, xid=741, gid="gid"
        ),
    ),
    "Rollback Prepared": (
        "72 00 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000 000303c3841b0001 000002e5 67696400",
        3, NEWEST, {},
        v3.RollbackPrepared(
            prepare_end_lsn=Lsn("0/1A2B3C8"),
            rollback_end_lsn=Lsn("0/1A2B3F8"),
            prepare_timestamp=MOMENT,
            rollback_timestamp=TimestampTz(MOMENT + 1),
            xid=741,
            gid="gid",
        ),
    ),
    "Stream Prepare": (
        "70 00 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000 000002e5 67696400",
        3, NEWEST, {},
        v3.StreamPrepare(
            prepare_lsn=Lsn("0/1A2B3C8"), end_lsn=Lsn("0/1A2B3F8"), prepare_timestamp=MOMENT, xid=741, gid="gid"
        ),
    ),
}  # fmt: skip

ENVELOPES = {
    "XLogData": (
        "77 0000000001a2b3c8 0000000001a2b3c8 000303c3841b0000 45",
        "server",
        walsender.XLogData(start_lsn=Lsn("0/1A2B3C8"), end_lsn=Lsn("0/1A2B3C8"), send_timestamp=MOMENT, payload=b"E"),
    ),
    "XLogData of nothing": (
        "77 0000000000000000 ffffffffffffffff ffffffffffffffff",
        "server",
        walsender.XLogData(
            start_lsn=Lsn(0), end_lsn=Lsn("FFFFFFFF/FFFFFFFF"), send_timestamp=TimestampTz(-1), payload=b""
        ),
    ),
    "Primary keepalive": (
        "6b 0000000001a2b3c8 000303c3841b0000 01",
        "server",
        walsender.PrimaryKeepaliveMessage(end_lsn=Lsn("0/1A2B3C8"), send_timestamp=MOMENT, reply_requested=True),
    ),
    "Standby status update": (
        "72 0000000001a2b3c8 0000000001a2b3c7 0000000001a2b3c6 000303c3841b0000 00",
        "client",
        walsender.StandbyStatusUpdate(
            written_lsn=Lsn("0/1A2B3C8"),
            flushed_lsn=Lsn("0/1A2B3C7"),
            applied_lsn=Lsn("0/1A2B3C6"),
            send_timestamp=MOMENT,
            reply_requested=False,
        ),
    ),
    "Hot standby feedback": (
        "68 000303c3841b0000 000002e5 00000001 ffffffff ffffffff",
        "client",
        walsender.HotStandbyFeedbackMessage(
            send_timestamp=MOMENT,
            xmin=741,
            xmin_epoch=1,
            catalog_xmin=4294967295,
            catalog_xmin_epoch=4294967295,
        ),
    ),
    "Primary status update": (
        "73 0000000001a2b3c8 00000001000002e5 ffffffffffffffff 000303c3841b0000",
        "server",
        walsender.PrimaryStatusUpdate(
            end_lsn=Lsn("0/1A2B3C8"),
            oldest_committing_xid=(1 << 32) + 741,
            next_xid=(1 << 64) - 1,
            send_timestamp=MOMENT,
        ),
    ),
    "Request primary status update": (
        "70 000303c3841b0000",
        "client",
        walsender.RequestPrimaryStatusUpdate(send_timestamp=MOMENT),
    ),
}


@pytest.mark.parametrize(("text", "first", "last", "state", "message"), VECTORS.values(), ids=VECTORS.keys())
def test_bytes_are_read_and_written(text: str, first: int, last: int, state: dict[str, bool], message: Any) -> None:
    data = bytes.fromhex(text)
    assert message.build() == data
    assert message.tag == chr(data[0])
    for version in range(first, last + 1):
        parsed = VERSIONS[version].parse(data, **state)
        assert parsed == message
        assert type(parsed) is type(message)
        assert agree(data, version, **state) == message


@pytest.mark.parametrize(("text", "sender", "message"), ENVELOPES.values(), ids=ENVELOPES.keys())
def test_envelopes_are_read_and_written(text: str, sender: Any, message: Any) -> None:
    data = bytes.fromhex(text)
    assert message.build() == data
    assert walsender.parse(data, sender=sender) == message
    assert message.struct.parse(data) == message
    assert message.struct.build(message) == data


def test_every_message_has_a_vector_in_every_version_that_has_the_message() -> None:
    covered = {(type(message).__name__, version) for _, first, last, _, message in VECTORS.values()
               for version in range(first, last + 1)}  # fmt: skip
    for version, module in VERSIONS.items():
        messages = {name for name in module.__all__ if hasattr(getattr(module, name), "tag")}
        assert {name for name, number in covered if number == version} == messages
    assert {type(message).__name__ for _, _, message in ENVELOPES.values()} == {
        name for name in walsender.__all__ if hasattr(getattr(walsender, name), "tag")
    }


def test_a_row_can_be_made_from_cells_and_taken_apart() -> None:
    assert MIXED.kinds == b"tnub"
    assert MIXED.values == (b"1", None, None, b"\0\0\0\7")
    assert MIXED.cells == (Text(b"1"), NullValue(), UnchangedToast(), Binary(b"\0\0\0\7"))
    assert TupleData.of(*MIXED.cells) == MIXED


def test_a_row_is_indexed_and_iterated_by_its_cells() -> None:
    assert len(MIXED) == 4
    assert (MIXED[0], MIXED[-1]) == (Text(b"1"), Binary(b"\0\0\0\7"))
    assert tuple(MIXED) == MIXED.cells
    assert [cell.value for cell in MIXED if isinstance(cell, Text)] == [b"1"]
    assert NullValue() in MIXED
    with pytest.raises(IndexError):
        MIXED[4]


def test_a_row_without_values_is_true_as_only_an_absent_row_is_false() -> None:
    empty = TupleData(kinds=b"", values=())
    assert (len(empty), list(empty), bool(empty)) == (0, [], True)


def test_bits_have_names() -> None:
    assert v1.Message(flags=1, message_lsn=Lsn(0), prefix="", content=b"").transactional is True
    assert v1.Message(flags=2, message_lsn=Lsn(0), prefix="", content=b"").transactional is False
    assert Column(flags=1, name="a", type_id=23, type_modifier=-1).key is True
    assert Column(flags=0, name="a", type_id=23, type_modifier=-1).key is False
    truncate = v1.Truncate(options=2, relation_ids=())
    assert (truncate.cascade, truncate.restart_identity) == (False, True)


def test_bits_that_have_no_name_are_kept() -> None:
    data = bytes.fromhex("54 00000000 fe")
    assert v1.parse(data).build() == data


def test_messages_are_frozen_and_compare_by_value() -> None:
    message = v1.Begin(final_lsn=Lsn(1), commit_timestamp=TimestampTz(0), xid=1)
    with pytest.raises(AttributeError):
        message.xid = 2  # type: ignore[assignment,misc]
    assert message == v1.parse(message.build())
    assert len({message, v1.parse(message.build())}) == 1


def test_an_xid_is_written_only_where_there_is_one() -> None:
    outside = v2.Insert(relation_id=16387, new=ONE_TEXT)
    inside = v2.Insert(xid=742, relation_id=16387, new=ONE_TEXT)
    assert inside.build() == outside.build()[:1] + bytes.fromhex("000002e6") + outside.build()[1:]
    with pytest.raises(DecodeError):
        v2.parse(inside.build())
    with pytest.raises(DecodeError):
        v2.parse(outside.build(), streaming=True)
