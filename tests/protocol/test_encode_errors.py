"""Messages that have no bytes: one EncodeError each, which names the attribute, what would fit and what it holds."""

from __future__ import annotations

import array
from typing import Any

import pytest

from logicalrep import EncodeError, v1, v2, v3, v4, walsender
from logicalrep_protocol.v1 import Column, TupleData

ROW = TupleData(kinds=b"", values=())
RELATION: dict[str, Any] = {
    "relation_id": 1, "namespace": "", "name": "t", "replica_identity": v1.ReplicaIdentity.DEFAULT, "columns": (),
}  # fmt: skip
COLUMN: dict[str, Any] = {"flags": 0, "name": "a", "type_id": 23, "type_modifier": -1}


def _insert(kinds: Any, values: Any) -> v1.Insert:
    return v1.Insert(relation_id=1, new=TupleData(kinds=kinds, values=values))


REFUSED: dict[str, tuple[Any, str]] = {
    "zero where zero is refused": (
        v1.Begin(final_lsn=0, commit_timestamp=0, xid=0),
        "Begin: final_lsn: expected a whole number from 1 to 18446744073709551615, found 0",
    ),
    "an LSN that is too large": (
        v1.Begin(final_lsn=1 << 64, commit_timestamp=0, xid=0),
        "Begin: final_lsn: expected a whole number from 1 to 18446744073709551615, found 18446744073709551616",
    ),
    "a time that is too large": (
        v1.Begin(final_lsn=1, commit_timestamp=1 << 63, xid=0),
        "Begin: commit_timestamp: expected a whole number from -9223372036854775808 to 9223372036854775807, "
        "found 9223372036854775808",
    ),
    "a negative xid": (
        v1.Begin(final_lsn=1, commit_timestamp=0, xid=-1),
        "Begin: xid: expected a whole number from 0 to 4294967295, found -1",
    ),
    "an OID that is too large": (
        v1.Type(type_id=1 << 32, namespace="", name=""),
        "Type: type_id: expected a whole number from 0 to 4294967295, found 4294967296",
    ),
    "no number": (
        v1.Type(type_id=None, namespace="", name=""),
        "Type: type_id: expected a whole number from 0 to 4294967295, found None",
    ),
    "a fraction": (
        v1.Type(type_id=1.0, namespace="", name=""),
        "Type: type_id: expected a whole number from 0 to 4294967295, found 1.0",
    ),
    "flags that are too large": (
        v1.Message(flags=256, message_lsn=0, prefix="", content=b""),
        "Message: flags: expected a whole number from 0 to 255, found 256",
    ),
    "no text": (
        v1.Type(type_id=1, namespace=b"s", name=""),
        "Type: namespace: expected a str, found b's'",
    ),
    "a text with a zero byte": (
        v1.Type(type_id=1, namespace="s", name="a\0b"),
        "Type: name: expected a text without a zero byte, found 'a\\x00b'",
    ),
    "half a surrogate": (
        v1.Type(type_id=1, namespace="s", name="\ud800"),
        "Type: name: expected a text that utf-8 can write, found '\\ud800'",
    ),
    "no bytes": (
        v1.Message(flags=0, message_lsn=0, prefix="", content="hi"),
        "Message: content: expected bytes, found 'hi'",
    ),
    "no payload": (
        walsender.XLogData(start_lsn=0, end_lsn=0, send_timestamp=0, payload=None),
        "XLogData: payload: expected bytes, found None",
    ),
    "an LSN of the client that is too large": (
        walsender.StandbyStatusUpdate(
            written_lsn=0, flushed_lsn=-1, applied_lsn=0, send_timestamp=0, reply_requested=False
        ),
        "Standby status update: flushed_lsn: expected a whole number from 0 to 18446744073709551615, found -1",
    ),
    "neither yes nor no": (
        v2.StreamStart(xid=1, first_segment=2),
        "Stream Start: first_segment: expected a whole number from 0 to 1, found 2",
    ),
    "a character that is none of those": (
        v1.Relation(**RELATION | {"replica_identity": "x"}),
        "Relation: replica_identity: expected one of 'd', 'n', 'f', 'i', found 'x'",
    ),
    "two characters": (
        v1.Relation(**RELATION | {"replica_identity": "dn"}),
        "Relation: replica_identity: expected one of 'd', 'n', 'f', 'i', found 'dn'",
    ),
    "no tuple": (
        v1.Relation(**RELATION | {"columns": None}),
        "Relation: columns: expected a tuple, found None",
    ),
    "a column that is none": (
        v1.Relation(**RELATION | {"columns": (Column(**COLUMN), "b")}),
        "Relation: columns[1]: expected Column, found 'b'",
    ),
    "a fault in a column": (
        v1.Relation(**RELATION | {"columns": (Column(**COLUMN), Column(**COLUMN | {"type_modifier": 1 << 31}))}),
        "Relation: columns[1].type_modifier: expected a whole number from -2147483648 to 2147483647, found 2147483648",
    ),
    "too many columns": (
        v1.Relation(**RELATION | {"columns": (Column(**COLUMN),) * 32768}),
        "Relation: columns: expected fewer than 32768 items, found 32768",
    ),
    "a table that is none": (
        v1.Truncate(options=0, relation_ids=(1, None)),
        "Truncate: relation_ids[1]: expected a whole number from 0 to 4294967295, found None",
    ),
    "a table that is none, in a list": (
        v1.Truncate(options=0, relation_ids=[1, "a"]),
        "Truncate: relation_ids[1]: expected a whole number from 0 to 4294967295, found 'a'",
    ),
    "no row": (v1.Insert(relation_id=1, new=None), "Insert: new: expected TupleData, found None"),
    "an old row without its kind": (
        v1.Update(relation_id=1, old=ROW, new=ROW),
        "Update: old_kind: expected a value if and only if old has one, found None",
    ),
    "a kind without its old row": (
        v1.Update(relation_id=1, old_kind="K", new=ROW),
        "Update: old_kind: expected a value if and only if old has one, found 'K'",
    ),
    "a kind of old row that is none": (
        v1.Delete(relation_id=1, old_kind="N", old=ROW),
        "Delete: old_kind: expected one of 'K', 'O', found 'N'",
    ),
    "no kind of old row": (
        v1.Delete(relation_id=1, old_kind=None, old=ROW),
        "Delete: old_kind: expected one of 'K', 'O', found None",
    ),
    "an LSN of an abort without its time": (
        v4.StreamAbort(xid=1, subxid=1, abort_lsn=1),
        "Stream Abort: abort_lsn: expected a value if and only if abort_timestamp has one, found 1",
    ),
    "more kinds than values": (
        _insert(b"nn", (None,)),
        "Insert: new.cells: expected kinds as bytes and as many values in a tuple, found b'nn' and (None,)",
    ),
    "kinds that are no bytes": (
        _insert("n", (None,)),
        "Insert: new.cells: expected kinds as bytes and as many values in a tuple, found 'n' and (None,)",
    ),
    "a kind of value that is none": (
        _insert(b"nx", (None, None)),
        "Insert: new.cells[1].kind: expected one of 'n', 'u', 't', 'b', found 'x'",
    ),
    "a value in a list that is none": (
        _insert(b"tt", [b"1", 2]), "Insert: new.cells[1].value: expected bytes for the kind 't', found 2",
    ),
    "a text value that is a str": (
        _insert(b"t", ("1",)), "Insert: new.cells[0].value: expected bytes for the kind 't', found '1'",
    ),
    "a binary value without bytes": (
        _insert(b"tb", (b"1", None)), "Insert: new.cells[1].value: expected bytes for the kind 'b', found None",
    ),
    "NULL with a value": (
        _insert(b"n", (b"1",)), "Insert: new.cells[0].value: expected None for the kind 'n', found b'1'",
    ),
    "an unchanged value with a value": (
        _insert(b"u", (b"",)), "Insert: new.cells[0].value: expected None for the kind 'u', found b''",
    ),
    "too many values": (
        _insert(b"n" * 32768, (None,) * 32768), "Insert: new.cells: expected fewer than 32768 items, found 32768",
    ),
    "a fault in an old row": (
        v1.Update(relation_id=1, old_kind="O", old=TupleData(kinds=b"x", values=(None,)), new=ROW),
        "Update: old.cells[0].kind: expected one of 'n', 'u', 't', 'b', found 'x'",
    ),
    "a long value is cut": (
        v1.Type(type_id="x" * 100, namespace="", name=""),
        f"Type: type_id: expected a whole number from 0 to 4294967295, found '{'x' * 56}...",
    ),
    "a GID with a zero byte": (
        v3.Prepare(prepare_lsn=1, end_lsn=1, prepare_timestamp=0, xid=1, gid="\0"),
        "Prepare: gid: expected a text without a zero byte, found '\\x00'",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("message", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_an_error_names_the_attribute_and_what_fits(message: Any, text: str) -> None:
    with pytest.raises(EncodeError) as refusal:
        message.build()
    error = refusal.value
    assert str(error) == text
    assert text == f"{error.message}: {error.field}: expected {error.expected}, found {error.found}"
    assert isinstance(error, ValueError)


def test_a_list_is_as_good_as_a_tuple() -> None:
    assert v1.Truncate(options=0, relation_ids=[1, 2]).build() == v1.Truncate(options=0, relation_ids=(1, 2)).build()
    assert _insert(b"t", [b"1"]).build() == _insert(b"t", (b"1",)).build()


def test_a_text_that_the_encoding_cannot_write_is_refused() -> None:
    message = v1.Type(type_id=1, namespace="", name="€")
    assert message.build(encoding="iso8859-15").endswith(b"\xa4\0")
    with pytest.raises(EncodeError) as refusal:
        message.build(encoding="iso8859-1")
    assert str(refusal.value) == "Type: name: expected a text that iso8859-1 can write, found '€'"


class Index:
    """An integer by its `__index__` alone."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


class Unprintable:
    """An object whose `repr` fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


ODD = {
    "an integer too long to print": v1.Type(type_id=1 << 20_000, namespace="", name=""),
    "another part in place of a row": v1.Insert(relation_id=1, new=Column(**COLUMN)),
    "another part in place of a column": v1.Relation(**RELATION | {"columns": (ROW,)}),
    "an array of integers in place of bytes": v1.Message(
        flags=0,
        message_lsn=0,
        prefix="",
        content=array.array("i", [1, 2]),
    ),
    "an index that is too large": v1.Origin(origin_lsn=Index(1 << 70), name=""),
    "an object that cannot be printed": v1.Type(type_id=Unprintable(), namespace="", name=""),
}


@pytest.mark.parametrize("message", ODD.values(), ids=ODD.keys())
def test_odd_attributes_are_refused_too(message: Any) -> None:
    with pytest.raises(EncodeError):
        message.build()


def test_what_python_holds_to_be_the_same_is_written() -> None:
    data = bytes.fromhex("59 00000001 00 00")
    assert v1.Type(type_id=True, namespace="", name="").build() == data
    assert v1.Type(type_id=Index(1), namespace="", name="").build() == data
    assert v1.Relation(**RELATION | {"replica_identity": "d", "columns": []}).build() == v1.Relation(**RELATION).build()
