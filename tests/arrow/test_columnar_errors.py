"""Messages that are refused: raised with their row, or marked while all others are read."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from logicalrep import DecodeError, Lsn, Oid, TimestampTz, TransactionId, v1, v2
from logicalrep_protocol.columnar import RowDecodeError, Session, decode_batch
from logicalrep_protocol.v1 import Binary, NullValue, Text, TupleData
from tests.arrow.expected import rows_of

INSERT = v2.Insert(relation_id=Oid(7), new=TupleData.of(Text(b"a"), NullValue())).build()
STREAMED_INSERT = v2.Insert(xid=TransactionId(9), relation_id=Oid(7), new=TupleData.of(Text(b"b"))).build()
START = v2.StreamStart(xid=TransactionId(9), first_segment=True).build()
STOP = v2.StreamStop().build()
SESSION = Session(version=4)


def batch_of(*messages: bytes) -> pa.Array:
    return pa.array(messages, pa.binary())


def test_the_first_refused_message_is_raised_with_its_row() -> None:
    messages = batch_of(INSERT, INSERT[:-1], INSERT, b"?")
    with pytest.raises(RowDecodeError) as caught:
        decode_batch(messages, SESSION)
    with pytest.raises(DecodeError) as expected:
        v2.parse(INSERT[:-1])
    assert caught.value.row == 1
    assert str(caught.value) == str(expected.value)
    assert caught.value.__notes__ == ["in row 1 of the batch"]


def test_an_error_survives_pickling() -> None:
    with pytest.raises(RowDecodeError) as caught:
        decode_batch(batch_of(INSERT, b""), SESSION)
    unpickled = pickle.loads(pickle.dumps(caught.value))
    assert (str(unpickled), unpickled.row) == (str(caught.value), 1)


def test_a_refused_message_is_parsed_in_the_state_that_held_there() -> None:
    # In the segment the Insert without a transaction id is read as one with an id, and is too short.
    with pytest.raises(RowDecodeError) as caught:
        decode_batch(batch_of(START, STREAMED_INSERT, INSERT, STOP), SESSION)
    with pytest.raises(DecodeError) as expected:
        v2.parse(INSERT, streaming=True)
    assert (caught.value.row, str(caught.value)) == (2, str(expected.value))


def test_a_marked_message_leaves_the_others_and_the_state_alone() -> None:
    wrong_stop = STOP + b"!"
    batch, after = decode_batch(batch_of(START, wrong_stop, STREAMED_INSERT, STOP, INSERT), SESSION, errors="column")
    assert batch["tag"].to_pylist() == ["S", None, "I", "E", "I"]
    assert batch["xid"].to_pylist() == [9, None, 9, None, None]
    assert batch["error"].to_pylist() == [
        None,
        "Stream Stop: end at offset 1: expected the end of the message, found 1 byte more: 0x21",
        None,
        None,
        None,
    ]
    assert batch["data"].to_pylist() == [None, wrong_stop, None, None, None]
    assert after == SESSION


def test_a_batch_that_ends_within_a_segment_says_so() -> None:
    batch, after = decode_batch(batch_of(START, STREAMED_INSERT), SESSION)
    assert after == Session(version=4, streaming=True)
    batch, after = decode_batch(batch_of(STREAMED_INSERT, STOP, INSERT), after)
    assert batch["xid"].to_pylist() == [9, None, None]
    assert after == SESSION


@pytest.mark.parametrize(
    ("data", "field"),
    [
        pytest.param(b"", "tag", id="no bytes"),
        pytest.param(b"?", "tag", id="an unknown tag"),
        pytest.param(b"B" + bytes(20), "final_lsn", id="an LSN of zero"),
        pytest.param(b"C\1" + bytes(24), "flags", id="flags"),
        pytest.param(b"S\0\0\0\1\2", "first_segment", id="a truth value of 2"),
        pytest.param(b"R\0\0\0\1n\0t\0x\0\0", "replica_identity", id="an enumeration"),
        pytest.param(b"I\0\0\0\1K\0\0", "new_kind", id="a tag within"),
        pytest.param(b"I\0\0\0\1N\xff\xff", "new.column_count", id="a negative count"),
        pytest.param(b"I\0\0\0\1N\x7f\xff", "new.cells[0].kind", id="a count beyond the message"),
        pytest.param(b"I\0\0\0\1N\0\1x", "new.cells[0].kind", id="a kind"),
        pytest.param(b"I\0\0\0\1N\0\1t\xff\xff\xff\xff", "new.cells[0].length", id="a negative length"),
        pytest.param(b"I\0\0\0\1N\0\1t\0\0\0\1", "new.cells[0].value", id="a length beyond the message"),
        pytest.param(b"I\0\0\0\1N\0\0!", "end", id="bytes that are left"),
        pytest.param(b"T\x7f\xff\xff\xff\0", "relation_ids[0]", id="a count of OIDs beyond the message"),
        pytest.param(b"O" + bytes(8) + b"origin", "name", id="a text without an end"),
        pytest.param(b"O" + bytes(8) + b"\xc3(\0", "name", id="a text that is not UTF-8"),
        pytest.param(b"M\0" + bytes(8) + b"p\0\xff\xff\xff\xff", "content_length", id="a negative size"),
    ],
)
def test_each_kind_of_fault_is_found(data: bytes, field: str) -> None:
    with pytest.raises(RowDecodeError) as caught:
        decode_batch(batch_of(INSERT, data), SESSION)
    assert (caught.value.field, caught.value.row) == (field, 1)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"\x80", id="a continuation alone"),
        pytest.param(b"\xc0\xaf", id="two bytes for a slash"),
        pytest.param(b"\xe0\x80\xaf", id="three bytes for a slash"),
        pytest.param(b"\xed\xa0\x80", id="a surrogate"),
        pytest.param(b"\xf4\x90\x80\x80", id="beyond the last character"),
        pytest.param(b"\xf0\x9f\x98", id="the beginning of a character"),
        pytest.param(b"12345678\xff", id="after eight letters"),
    ],
)
def test_texts_are_utf8_as_python_has_it(text: bytes) -> None:
    good = "aé漢\U0001f600-\U0010ffff-12345678".encode()
    batch, _ = decode_batch(
        batch_of(*(b"O" + bytes(8) + name + b"\0" for name in (good, text))), SESSION, errors="column"
    )
    assert batch["name"].to_pylist() == [good.decode(), None]


def test_texts_in_another_encoding_are_decoded_with_its_codec() -> None:
    column = v1.Column(flags=1, name="größe", type_id=Oid(25), type_modifier=-1)
    relation = v1.Relation(
        relation_id=Oid(7),
        namespace="schön",
        name="tür",
        replica_identity=v1.ReplicaIdentity.DEFAULT,
        columns=(column,),
    )
    data = relation.build(encoding="cp1252")
    session = Session(version=1, encoding="cp1252")
    # 0x81 is undefined in this code page.
    bad = [data.replace(b"\xf6n", b"\x81n"), data.replace(b"\xf6\xdf", b"\x81\xdf")]
    batch, _ = decode_batch(batch_of(*bad, data), session, errors="column")
    assert batch["name"].to_pylist() == [None, None, "tür"]
    assert batch["namespace"].to_pylist() == [None, None, "schön"]
    assert batch["columns"].to_pylist()[2] == [{"flags": 1, "name": "größe", "type_id": 25, "type_modifier": -1}]
    assert ["namespace" in batch["error"][0].as_py(), "columns[0].name" in batch["error"][1].as_py()] == [True, True]
    with pytest.raises(RowDecodeError) as caught:
        decode_batch(batch_of(data, bad[0], b"?"), session)
    assert (caught.value.row, caught.value.field) == (1, "namespace")


def test_values_as_strings_are_checked_one_by_one() -> None:
    # Together the two halves of a character are UTF-8; neither is by itself.
    halves = v1.Insert(relation_id=Oid(1), new=TupleData.of(Text(b"\xc3"), Text(b"\xa9"))).build()
    update = v1.Update(
        relation_id=Oid(1),
        old_kind="O",
        old=TupleData.of(Text("é".encode())),
        new=TupleData.of(Text(b""), NullValue(), Text(b"ok")),
    ).build()
    binary = v1.Insert(relation_id=Oid(1), new=TupleData.of(Text(b"x"), Binary(b"x"))).build()
    session = Session(version=1)
    batch, _ = decode_batch(batch_of(update, halves, binary), session, errors="column", values="string")
    assert rows_of(batch) == [
        {
            "tag": "U",
            "relation_id": 1,
            "old_kind": "O",
            "old": [{"kind": 116, "value": "é"}],
            "new": [{"kind": 116, "value": ""}, {"kind": 110, "value": None}, {"kind": 116, "value": "ok"}],
        },
        {
            "error": "Insert: new.cells[0].value at offset 13: expected text in utf-8, found 0xc3",
            "data": halves,
        },
        {
            "error": "Insert: new.cells[1].value at offset 19: expected a value in text format, found 0x78",
            "data": binary,
        },
    ]
    with pytest.raises(RowDecodeError) as caught:
        decode_batch(batch_of(update, halves, b"?"), session, values="string")
    assert (caught.value.row, caught.value.field) == (1, "new.cells[0].value")
    with pytest.raises(RowDecodeError) as caught:
        decode_batch(batch_of(update, b"?", halves), session, values="string")
    assert (caught.value.row, caught.value.field) == (1, "tag")


def test_messages_of_two_phase_commit_come_in_version_1_only_with_two_phase() -> None:
    from logicalrep import v3

    prepare = v3.Prepare(
        prepare_lsn=Lsn(1),
        end_lsn=Lsn(2),
        prepare_timestamp=TimestampTz(0),
        xid=TransactionId(3),
        gid="g",
    ).build()
    batch, _ = decode_batch(batch_of(prepare), Session(version=1, two_phase=True))
    assert rows_of(batch) == [
        {
            "tag": "P",
            "prepare_lsn": 1,
            "end_lsn": 2,
            "prepare_timestamp": 946684800000000,
            "xid": 3,
            "gid": "g",
        }
    ]
    with pytest.raises(RowDecodeError, match="protocol version 1"):
        decode_batch(batch_of(prepare), Session(version=1))
