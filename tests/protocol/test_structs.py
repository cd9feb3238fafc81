"""The construct Structs of the generated classes: dataclasses from bytes and back, in the hands of who knows construct."""

from __future__ import annotations

import inspect
import pydoc
import re
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import pytest
from construct import (
    Array,
    CheckError,
    Computed,
    ConstructError,
    Int8ub,
    Int16ub,
    Int32ub,
    Prefixed,
    SizeofError,
    StreamError,
    Struct,
    SwitchError,
    Terminated,
    TerminatedError,
    ValidationError,
    this,
)

from logicalrep import Lsn, TimestampTz, v1, v2, walsender
from logicalrep_protocol import layouts
from logicalrep_protocol.v1 import Binary, Column, NullValue, ReplicaIdentity, Text, TupleData, UnchangedToast
from logicalrep_runtime.constructs import DataclassStruct
from logicalrep_runtime.layout import ProtocolLayout
from logicalrep_runtime.operations import Conditional, Integer, Operations, flat
from tests.protocol.agreement import VERSIONS

ATTRIBUTES = """
Attributes:
    xid: The id of the streamed transaction, or of the subtransaction that made the change.
    relation_id: The table, as in its Relation.
    new: The new row."""
NEWEST = VERSIONS[max(VERSIONS)]
ROW = TupleData.of(Text(b"1"), NullValue(), UnchangedToast(), Binary(b"22"))
INSERT = NEWEST.Insert(relation_id=16387, new=ROW)
STREAMED = NEWEST.Insert(xid=742, relation_id=16387, new=ROW)
ABORT = NEWEST.StreamAbort(xid=1, subxid=2, abort_lsn=Lsn(3), abort_timestamp=TimestampTz(4))


def _layouts() -> list[tuple[Any, Operations, ProtocolLayout]]:
    """Each class of each version, with the rows that it has there."""
    owned_rows = []
    for protocol, modules in ((layouts.LOGICALREP, VERSIONS), (layouts.WALSENDER, {1: walsender})):
        for version, module in modules.items():
            described: tuple[Any, ...] = (*protocol.messages, *protocol.parts.values())
            for layout in described:
                for inner in getattr(layout, "alternatives", ()) or (layout,):
                    owner = getattr(module, "".join(word[0].upper() + word[1:] for word in inner.name.split()), None)
                    rows = tuple(
                        operation
                        for operation in inner.operations
                        if all(row.since <= version for row in flat((operation,)))
                    )
                    if owner is not None:
                        owned_rows.append((owner, rows, protocol))
    return owned_rows


def test_rows_have_the_descriptions_of_the_spec() -> None:
    for owner, rows, _ in _layouts():
        assert [(row.name, row.docs) for row in owner.struct.subcons] == [(row.name, row.doc) for row in flat(rows)]


def test_a_struct_has_a_size_where_its_layout_is_fixed() -> None:
    fixed = set()
    for owner, rows, protocol in _layouts():
        if any(not isinstance(row, Integer) for row in flat(rows)) or any(
            isinstance(row, Conditional) and row.ahead for row in rows
        ):
            with pytest.raises(SizeofError):
                owner.struct.sizeof()
            continue
        fixed.add(owner.__name__)
        for facts in ({}, dict.fromkeys(protocol.session, True)):
            present_rows = [row for row in rows if not isinstance(row, Conditional) or facts.get(row.fact)]
            wanted = sum(row.width for row in flat(tuple(present_rows)) if isinstance(row, Integer))
            assert owner.struct.sizeof(**facts) == wanted
    assert fixed >= {"Begin", "Commit", "StreamStart", "StreamAbort", "NullValue", "PrimaryKeepaliveMessage"}


@pytest.mark.parametrize("part", [ROW, *ROW.cells, Column(key=True, name="ä", type_id=23, type_modifier=-1)], ids=repr)
def test_parts_are_read_and_written(part: Any) -> None:
    data = part.struct.build(part, encoding="iso8859-1")
    assert part.struct.parse(data, encoding="iso8859-1") == part
    assert type(part.struct) is DataclassStruct


def test_only_the_struct_of_whole_messages_refuses_more_bytes() -> None:
    data = INSERT.build() + b"\0"
    assert NEWEST.Insert.struct.parse(data) == NEWEST.message.subcon.parse(data) == INSERT
    with pytest.raises(TerminatedError):
        NEWEST.message.parse(data)


def test_a_message_that_is_none_is_an_error_of_construct() -> None:
    with pytest.raises(SwitchError, match=r"the tag b'x' is none of b'B[A-Za-z]+'$"):
        NEWEST.message.parse(b"x")
    with pytest.raises(StreamError):
        NEWEST.message.parse(b"")
    with pytest.raises(SwitchError, match=r"TupleData is none of Begin, "):
        NEWEST.message.build(ROW)
    with pytest.raises(SwitchError, match=r"Insert is none of Begin, "):
        NEWEST.message.build(v1.Insert(relation_id=1, new=ROW))
    with pytest.raises(ValidationError, match="expected Insert, found Begin"):
        v1.Insert.struct.build(v1.Begin(final_lsn=Lsn(1), commit_timestamp=TimestampTz(0), xid=1))
    with pytest.raises(SwitchError, match=r"the tag b'r' is none of b'w"):
        walsender.server_message.parse(b"r")


def test_every_byte_of_flags_is_kept() -> None:
    for byte in range(256):
        data = b"T\0\0\0\0" + bytes([byte])
        message = v1.Truncate.struct.parse(data)
        assert (message.options, message.cascade, message.restart_identity) == (byte, byte & 1 > 0, byte & 2 > 0)
        assert v1.Truncate.struct.build(message) == data


def test_flags_have_names() -> None:
    flags = v1.Truncate.struct.options
    assert flags.flags == {"cascade": 1, "restart_identity": 2}
    assert flags.cascade | flags.restart_identity == 3
    with pytest.raises(AttributeError, match="restart"):
        _ = flags.restart


def test_a_boolean_is_0_or_1() -> None:
    for byte in range(256):
        data = b"S\0\0\0\1" + bytes([byte])
        struct = NEWEST.StreamStart.struct
        if byte < 2:
            message = struct.parse(data)
            assert message.first_segment is bool(byte)
            assert struct.build(message) == data
            continue
        with pytest.raises(ValidationError):
            struct.parse(data)
        with pytest.raises(ValidationError):
            struct.build(NEWEST.StreamStart(xid=1, first_segment=byte))


def test_named_values_are_members_of_their_enumeration_and_no_others() -> None:
    for byte in range(256):
        data = b"R\0\0\0\1\0t\0" + bytes([byte]) + b"\0\0"
        if chr(byte) in list(ReplicaIdentity):
            message = v1.Relation.struct.parse(data)
            assert message.replica_identity is ReplicaIdentity(chr(byte))
            assert v1.Relation.struct.build(message) == data
            continue
        with pytest.raises(ValidationError):
            v1.Relation.struct.parse(data)


def test_an_optional_character_is_present_or_absent() -> None:
    for byte in range(256):
        following = b"\0\0" + b"N\0\0"
        data = b"U\0\0\0\1" + bytes([byte]) + following
        if chr(byte) in "KO":
            message = v1.Update.struct.parse(data)
            assert (message.old_kind, message.old) == (chr(byte), TupleData(kinds=b"", values=()))
            assert v1.Update.struct.build(message) == data
        elif chr(byte) == "N":
            assert v1.Update.struct.parse(data).old_kind is None
        else:
            with pytest.raises(ConstructError):
                v1.Update.struct.parse(data)


def test_positions_and_times_are_read_as_such_and_zero_is_refused() -> None:
    begin = v1.Begin(final_lsn=Lsn(7), commit_timestamp=TimestampTz(-1), xid=1)
    parsed = v1.Begin.struct.parse(begin.build())
    assert (type(parsed.final_lsn), type(parsed.commit_timestamp)) == (Lsn, TimestampTz)
    with pytest.raises(ValidationError):
        v1.Begin.struct.parse(b"B" + bytes(20))


def test_session_facts_are_keywords_to_parse_and_follow_from_the_values_to_build() -> None:
    struct = NEWEST.Insert.struct
    data = struct.build(STREAMED)
    assert data == struct.build(STREAMED, streaming=True) == STREAMED.build()
    assert struct.build(INSERT) == struct.build(INSERT, streaming=False) == INSERT.build()
    assert struct.parse(data, streaming=True) == STREAMED
    assert NEWEST.StreamAbort.struct.parse(NEWEST.message.build(ABORT), parallel=True) == ABORT


@pytest.mark.parametrize(
    ("message", "facts"),
    [
        (STREAMED, {"streaming": False}),
        (INSERT, {"streaming": True}),
        (ABORT, {"parallel": False}),
        (NEWEST.StreamAbort(xid=1, subxid=2), {"parallel": True}),
        (NEWEST.StreamAbort(xid=1, subxid=2, abort_lsn=Lsn(3)), {}),
        (NEWEST.StreamAbort(xid=1, subxid=2, abort_timestamp=TimestampTz(3)), {"parallel": True}),
        (NEWEST.Update(relation_id=1, old=ROW, new=ROW), {}),
        (NEWEST.Update(relation_id=1, old_kind="K", new=ROW), {}),
    ],
    ids=repr,
)
def test_values_that_contradict_a_fact_or_each_other_are_refused(message: Any, facts: dict[str, bool]) -> None:
    with pytest.raises(CheckError, match="expected a value if and only if"):
        message.struct.build(message, **facts)


def test_a_null_with_a_value_is_refused_and_not_written_without() -> None:
    with pytest.raises(ConstructError, match="cannot have the value"):
        TupleData.struct.build(TupleData(kinds=b"n", values=(b"1",)))


def test_messages_are_embedded_in_other_structs() -> None:
    log = Struct("count" / Int8ub, "messages" / Array(this.count, Prefixed(Int16ub, NEWEST.message)), Terminated)
    messages = [INSERT, NEWEST.StreamStop()]
    data = log.build({"count": 2, "messages": messages})
    assert log.parse(data).messages == messages
    after = Struct(
        "insert" / NEWEST.Insert.struct, "checksum" / Int32ub, "table" / Computed(lambda this: this.insert.relation_id)
    )
    data = after.build({"insert": STREAMED, "checksum": 7})
    parsed = after.parse(data, streaming=True)
    assert (parsed.insert, parsed.checksum, parsed.table) == (STREAMED, 7, 16387)


def test_a_struct_is_extended_as_any_other() -> None:
    frame = Struct(*walsender.XLogData.struct.subcons[:-1], "message" / NEWEST.message)
    data = walsender.XLogData(
        start_lsn=Lsn(1), end_lsn=Lsn(2), send_timestamp=TimestampTz(3), payload=INSERT.build()
    ).build()
    parsed = frame.parse(data)
    assert (parsed.start_lsn, parsed.message) == (Lsn(1), INSERT)
    assert frame.build(parsed) == data


def test_a_dataclass_is_extended_by_another() -> None:
    @dataclass(frozen=True)
    class Frame:
        start_lsn: Lsn
        end_lsn: Lsn
        send_timestamp: TimestampTz
        message: Any

        struct: ClassVar[DataclassStruct[Any]] = DataclassStruct(
            *walsender.XLogData.struct.subcons[1:-1], "message" / NEWEST.message
        )

    frame = Frame(Lsn(1), Lsn(2), TimestampTz(3), INSERT)
    data = Frame.struct.build(frame)
    assert repr(Frame.struct.parse(data)) == repr(frame)
    assert walsender.XLogData.struct.parse(b"w" + data).payload == INSERT.build()


def test_what_construct_compiles_gives_dataclasses_too() -> None:
    compiled = NEWEST.Insert.struct.compile()
    assert compiled.parse(STREAMED.build(), streaming=True) == STREAMED
    assert compiled.build(STREAMED) == STREAMED.build()
    assert NEWEST.message.compile().parse(INSERT.build()) == INSERT


def test_errors_name_a_field_once() -> None:
    with pytest.raises(ConstructError, match=r"path \(parsing\) -> relation_id\n"):
        NEWEST.Insert.struct.parse(b"I")
    with pytest.raises(ConstructError, match=r"path \(parsing\) -> new -> cells -> value\n"):
        NEWEST.Insert.struct.parse(b"I\0\0\0\1N\0\1t\0\0\0\1")


@pytest.mark.parametrize("module", [*VERSIONS.values(), walsender])
def test_help_of_a_class_has_a_text_for_each_attribute(module: Any) -> None:
    for name in module.__all__:
        owner = getattr(module, name)
        if hasattr(owner, "struct"):
            shown = re.findall(r"^    (\w+): \S", owner.__doc__.partition("\nAttributes:\n")[2], re.MULTILINE)
            assert sorted(shown) == sorted(field.name for field in fields(owner))


def test_help_shows_the_attributes_before_the_methods() -> None:
    assert inspect.getdoc(NEWEST.Insert).endswith(ATTRIBUTES)  # type: ignore[union-attr]
    assert pydoc.render_doc(NEWEST.Insert, renderer=pydoc.plaintext).index("new: The new row.") < 900  # type: ignore[attr-defined]
    legend = "kinds: One byte for each value: n NullValue, u UnchangedToast, t Text, b Binary."
    assert legend in (TupleData.__doc__ or "")
    assert "Attributes" not in (v1.Commit.build.__doc__ or "") + (v2.StreamStop.__doc__ or "")
