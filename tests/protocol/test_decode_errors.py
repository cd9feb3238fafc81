"""Bytes that are no message: one DecodeError each, which says where the fault lies, what may stand there and what does."""

from __future__ import annotations

from typing import Any

import pytest

from logicalrep import DecodeError, Decoder, walsender
from tests.protocol.agreement import VERSIONS, agree

INSERT = "49 00004003 4e "
RELATION = "52 00004003 7300 7400 "
STREAMING = {"streaming": True}
PARALLEL = {"parallel": True}

# The bytes, the version, the session's state, and the error's text.
REFUSED = {
    "no bytes": ("", 1, {}, "message: tag at offset 0: expected a message, found no bytes"),
    "an unknown tag": (
        "58 00", 1, {},
        "message: tag at offset 0: expected one of the tags BMCORYIUDTSEcAbPKrp, found 'X'",
    ),
    "an unknown tag that cannot be printed": (
        "00", 4, {},
        "message: tag at offset 0: expected one of the tags BMCORYIUDTSEcAbPKrp, found 0x00",
    ),
    "the tag of a later version": (
        "53 000002e5 01", 1, {},
        "Stream Start: tag at offset 0: expected a message of protocol version 1, "
        "found 'S', Stream Start of version 2",
    ),
    "the tag of two-phase commit": (
        "62 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000 000002e5 67696400", 2, {},
        "Begin Prepare: tag at offset 0: expected a message of protocol version 2, "
        "found 'b', Begin Prepare of version 3, which is sent to older versions too where two_phase: "
        "the slot was created with two_phase",
    ),
    "a tag alone": ("42", 1, {}, "Begin: final_lsn at offset 1: expected 8 bytes, found 0 bytes to the end of the message"),
    "a field cut short": (
        "42 00000016b374d8", 1, {},
        "Begin: final_lsn at offset 1: expected 8 bytes, found 7 bytes to the end of the message",
    ),
    "the last field cut short": (
        "42 00000016b374d848 000303c3841b0000 0000e5", 1, {},
        "Begin: xid at offset 17: expected 4 bytes, found 3 bytes to the end of the message",
    ),
    "one byte too many": (
        "42 00000016b374d848 000303c3841b0000 000002e5 00", 1, {},
        "Begin: end at offset 21: expected the end of the message, found 1 byte more: 0x00",
    ),
    "many bytes too many": (
        "45" + "ab" * 20, 2, STREAMING,
        "Stream Stop: end at offset 1: expected the end of the message, "
        "found 20 bytes more: 0xabababababababababababababababab...",
    ),
    "an LSN of zero": (
        "42 0000000000000000 000303c3841b0000 000002e5", 1, {},
        "Begin: final_lsn at offset 1: expected anything but zero, found 0",
    ),
    "flags": (
        "43 01 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000", 1, {},
        "Commit: flags at offset 1: expected 0, found 1",
    ),
    "a first segment that is neither yes nor no": (
        "53 000002e5 02", 2, {}, "Stream Start: first_segment at offset 5: expected 0 or 1, found 2",
    ),
    "no tag before a row": (
        "49 00004003 58 0000", 1, {}, "Insert: new_kind at offset 5: expected 'N', found 'X'",
    ),
    "no tag before an updated row": (
        "55 00004003 58 0000", 1, {}, "Update: new_kind at offset 5: expected 'N', found 'X'",
    ),
    "no tag before a deleted row": (
        "44 00004003 4e 0000", 1, {}, "Delete: old_kind at offset 5: expected one of 'K', 'O', found 'N'",
    ),
    "two old rows": (
        "55 00004003 4b 0000 4f 0000 4e 0000", 1, {}, "Update: new_kind at offset 8: expected 'N', found 'O'",
    ),
    "a kind of value that is none": (
        INSERT + "0002 6e 78", 1, {},
        "Insert: new.cells[1].kind at offset 9: expected one of 'n', 'u', 't', 'b', found 'x'",
    ),
    "a row with too few values": (
        INSERT + "0002 6e", 1, {},
        "Insert: new.cells[1].kind at offset 9: expected 1 byte, found 0 bytes to the end of the message",
    ),
    "a row with too many values": (
        INSERT + "0001 6e 6e", 1, {},
        "Insert: end at offset 9: expected the end of the message, found 1 byte more: 0x6e",
    ),
    "a negative number of values": (
        INSERT + "ffff", 1, {}, "Insert: new.column_count at offset 6: expected 0 or more, found -1",
    ),
    "a huge number of values": (
        INSERT + "7fff", 1, {},
        "Insert: new.cells[0].kind at offset 8: expected 1 byte, found 0 bytes to the end of the message",
    ),
    "a negative length": (
        INSERT + "0001 74 ffffffff", 1, {},
        "Insert: new.cells[0].length at offset 9: expected 0 or more, found -1",
    ),
    "the most negative length": (
        INSERT + "0001 62 80000000 00", 1, {},
        "Insert: new.cells[0].length at offset 9: expected 0 or more, found -2147483648",
    ),
    "a huge length": (
        INSERT + "0001 74 7fffffff 31", 1, {},
        "Insert: new.cells[0].value at offset 13: expected 2147483647 bytes, found 1 byte to the end of the message",
    ),
    "a length that takes from the next value": (
        INSERT + "0002 74 00000002 31 6e", 1, {},
        "Insert: new.cells[1].kind at offset 15: expected 1 byte, found 0 bytes to the end of the message",
    ),
    "a value without its length": (
        INSERT + "0001 74 0000", 1, {},
        "Insert: new.cells[0].length at offset 9: expected 4 bytes, found 2 bytes to the end of the message",
    ),
    "a fault in the old row": (
        "55 00004003 4f 0001 79", 1, {},
        "Update: old.cells[0].kind at offset 8: expected one of 'n', 'u', 't', 'b', found 'y'",
    ),
    "a negative content": (
        "4d 01 0000000001a2b3c8 6a6f6200 ffffffff", 1, {},
        "Message: content_length at offset 14: expected 0 or more, found -1",
    ),
    "a content cut short": (
        "4d 01 0000000001a2b3c8 6a6f6200 00000003 6869", 1, {},
        "Message: content at offset 18: expected 3 bytes, found 2 bytes to the end of the message",
    ),
    "a negative number of columns": (
        RELATION + "64 8000", 1, {}, "Relation: column_count at offset 10: expected 0 or more, found -32768",
    ),
    "a huge number of columns": (
        RELATION + "64 7fff", 1, {},
        "Relation: columns[0].flags at offset 12: expected 1 byte, found 0 bytes to the end of the message",
    ),
    "a column cut short": (
        RELATION + "64 0002 00 6100 00000017 ffffffff 01 6200 0000", 1, {},
        "Relation: columns[1].type_id at offset 26: expected 4 bytes, found 2 bytes to the end of the message",
    ),
    "a replica identity that is none": (
        RELATION + "00 0000", 1, {},
        "Relation: replica_identity at offset 9: expected one of 'd', 'n', 'f', 'i', found 0x00",
    ),
    "a negative number of tables": (
        "54 ffffffff 00", 1, {}, "Truncate: relation_count at offset 1: expected 0 or more, found -1",
    ),
    "a huge number of tables": (
        "54 7fffffff 00 00004003", 1, {},
        "Truncate: relation_ids[1] at offset 10: expected 4 bytes, found 0 bytes to the end of the message",
    ),
    "a name without its zero byte": (
        "4f 0000000000000001 6e6f6465", 1, {},
        "Origin: name at offset 9: expected a text that a zero byte ends, found 4 bytes without one",
    ),
    "no name at all": (
        "4f 0000000000000001", 1, {},
        "Origin: name at offset 9: expected a text that a zero byte ends, found 0 bytes without one",
    ),
    "a name that is no UTF-8": (
        "4f 0000000000000001 6e6f64e400", 1, {}, "Origin: name at offset 12: expected text in utf-8, found 0xe4",
    ),
    "a name that is no UTF-8 at its beginning": (
        RELATION.replace("7400", "ff66 00") + "64 0000", 1, {},
        "Relation: name at offset 7: expected text in utf-8, found 0xff66",
    ),
    "a column's name that is no UTF-8": (
        RELATION + "64 0001 00 c3 00 00000017 ffffffff", 1, {},
        "Relation: columns[0].name at offset 13: expected text in utf-8, found 0xc3",
    ),
    "a name that is no ASCII": (
        "59 00004010 7300 c3a400", 1, {"encoding": "ascii"},
        "Type: name at offset 7: expected text in ascii, found 0xc3a4",
    ),
    "a surrogate": (
        "59 00004010 7300 eda08000", 1, {}, "Type: name at offset 7: expected text in utf-8, found 0xeda080",
    ),
    "no xid in a stream": (
        "59 00004010 00 00", 2, STREAMING,
        "Type: type_id at offset 5: expected 4 bytes, found 2 bytes to the end of the message",
    ),
    "no LSN in a parallel abort": (
        "41 000002e5 000002e5", 4, PARALLEL,
        "Stream Abort: abort_lsn at offset 9: expected 8 bytes, found 0 bytes to the end of the message",
    ),
    "an LSN in an abort that is not parallel": (
        "41 000002e5 000002e5 0000000001a2b3c8 000303c3841b0000", 4, {},
        "Stream Abort: end at offset 9: expected the end of the message, "
        "found 16 bytes more: 0x0000000001a2b3c8000303c3841b0000",
    ),
    "an LSN in an abort of an older version": (
        "41 000002e5 000002e5 0000000001a2b3c8 000303c3841b0000", 3, PARALLEL,
        "Stream Abort: end at offset 9: expected the end of the message, "
        "found 16 bytes more: 0x0000000001a2b3c8000303c3841b0000",
    ),
    "a prepared transaction without end": (
        "50 00 0000000001a2b3c8 0000000000000000 000303c3841b0000 000002e5 67696400", 3, {},
        "Prepare: end_lsn at offset 10: expected anything but zero, found 0",
    ),
    "a GID without its zero byte": (
        "70 00 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000 000002e5 676964", 3, {},
        "Stream Prepare: gid at offset 30: expected a text that a zero byte ends, found 3 bytes without one",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("data", "version", "state", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_an_error_says_where_and_what(data: str, version: int, state: dict[str, bool], text: str) -> None:
    error = agree(bytes.fromhex(data), version, **state)
    assert type(error) is DecodeError
    assert str(error) == text
    assert (
        text
        == f"{error.message}: {error.field} at offset {error.offset}: expected {error.expected}, found {error.found}"
    )


@pytest.mark.parametrize(
    ("data", "sender", "text"),
    [
        ("", "server", "message: tag at offset 0: expected a message, found no bytes"),
        (
            "72",
            "server",
            "message: tag at offset 0: expected one of the tags wks, found 'r', Standby status update with sender=\"client\"",
        ),
        (
            "77",
            "client",
            "message: tag at offset 0: expected one of the tags rhp, found 'w', XLogData with sender=\"server\"",
        ),
        ("58", "client", "message: tag at offset 0: expected one of the tags rhp, found 'X'"),
        (
            "77" + "00" * 23,
            "server",
            "XLogData: send_timestamp at offset 17: expected 8 bytes, found 7 bytes to the end of the message",
        ),
        (
            "6b" + "00" * 16 + "02",
            "server",
            "Primary keepalive message: reply_requested at offset 17: expected 0 or 1, found 2",
        ),
        (
            "72" + "00" * 34,
            "client",
            "Standby status update: end at offset 34: expected the end of the message, found 1 byte more: 0x00",
        ),
        (
            "68" + "00" * 10,
            "client",
            "Hot standby feedback message: xmin at offset 9: expected 4 bytes, found 2 bytes to the end of the message",
        ),
    ],
)
def test_an_error_of_an_envelope_says_where_and_what(data: str, sender: str, text: str) -> None:
    with pytest.raises(DecodeError) as refusal:
        walsender.parse(bytes.fromhex(data), sender=sender)
    assert str(refusal.value) == text


# One of each message, with everything that can be in it, and the state it stands in.
WHOLE = {
    "Begin": ("42 00000016b374d848 000303c3841b0000 000002e5", {}),
    "Message": ("4d 000002e5 01 0000000001a2b3c8 6a6f6200 00000002 6869", STREAMING),
    "Commit": ("43 00 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000", {}),
    "Origin": ("4f 0000000000000001 6e6f646500", {}),
    "Relation": (
        "52 000002e6 00004003 7300 7400 69 0002 00 6100 00000017 ffffffff 01 6200 00000019 ffffffff",
        STREAMING,
    ),
    "Type": ("59 000002e6 00004010 7300 7400", STREAMING),
    "Insert": ("49 000002e6 00004003 4e 0004 74 00000001 31 6e 75 62 00000002 3132", STREAMING),
    "Update": ("55 000002e6 00004003 4f 0002 74 00000001 31 6e 4e 0002 62 00000001 31 75", STREAMING),
    "Delete": ("44 000002e6 00004003 4b 0002 74 00000001 31 6e", STREAMING),
    "Truncate": ("54 000002e6 00000002 03 00004003 00004004", STREAMING),
    "Stream Start": ("53 000002e5 01", {}),
    "Stream Stop": ("45", STREAMING),
    "Stream Commit": ("63 000002e5 00 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000", {}),
    "Stream Abort": ("41 000002e5 000002e6 0000000001a2b3c8 000303c3841b0000", PARALLEL),
    "Begin Prepare": ("62 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000 000002e5 67696400", {}),
    "Prepare": ("50 00 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000 000002e5 67696400", {}),
    "Commit Prepared": ("4b 00 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000 000002e5 67696400", {}),
    "Rollback Prepared": (
        "72 00 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000 000303c3841b0000 000002e5 67696400",
        {},
    ),
    "Stream Prepare": ("70 00 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000 000002e5 67696400", {}),
}


@pytest.mark.parametrize(("name", "data", "state"), [(name, *whole) for name, whole in WHOLE.items()], ids=WHOLE)
def test_a_message_cut_anywhere_is_refused(name: str, data: str, state: dict[str, bool]) -> None:
    whole = bytes.fromhex(data)
    assert not isinstance(agree(whole, 4, **state), DecodeError)
    for length in range(1, len(whole)):
        error = agree(whole[:length], 4, **state)
        assert type(error) is DecodeError, length
        assert error.message == name
        assert error.offset <= length
        assert error.field != "end"
        assert error.found in (
            f"{length - error.offset} bytes to the end of the message",
            f"{length - error.offset} bytes without one",
            "1 byte to the end of the message",
            "1 byte without one",
        )


@pytest.mark.parametrize(("name", "data", "state"), [(name, *whole) for name, whole in WHOLE.items()], ids=WHOLE)
@pytest.mark.parametrize("more", ["00", "4e", "6e", "ffffffff"])
def test_bytes_after_a_message_are_refused(name: str, data: str, state: dict[str, bool], more: str) -> None:
    whole = bytes.fromhex(data)
    error = agree(whole + bytes.fromhex(more), 4, **state)
    assert type(error) is DecodeError
    count = "1 byte" if len(more) == 2 else "4 bytes"
    assert error.args == (name, "end", len(whole), "the end of the message", f"{count} more: 0x{more}")


@pytest.mark.parametrize(("tag", "name", "since"), [
    ("S", "Stream Start", 2), ("E", "Stream Stop", 2), ("c", "Stream Commit", 2), ("A", "Stream Abort", 2),
    ("b", "Begin Prepare", 3), ("P", "Prepare", 3), ("K", "Commit Prepared", 3), ("r", "Rollback Prepared", 3),
    ("p", "Stream Prepare", 3),
])  # fmt: skip
def test_a_tag_of_a_later_version_is_refused_with_its_version(tag: str, name: str, since: int) -> None:
    also = ", which is sent to older versions too" if tag == "A" or since == 3 else ""
    if tag == "p":
        also = ", which is sent to versions from 2 on too"
    if since == 3:
        also += " where two_phase: the slot was created with two_phase"
    for version in range(1, since):
        error = agree(tag.encode(), version)
        assert type(error) is DecodeError
        reason = f"'{tag}', {name} of version {since}{also}"
        assert error.args == (name, "tag", 0, f"a message of protocol version {version}", reason)


def _decoder_after(*messages: str, version: int = 4, **options: Any) -> Decoder:
    decoder = Decoder(version, **options)
    for data in messages:
        decoder.decode(bytes.fromhex(data))
    return decoder


BEGIN = "42 00000016b374d848 000303c3841b0000 000002e5"
BEGIN_PREPARE = "62 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000 000002e5 67696400"
START = "53 000002e5 01"
STOP = "45"
COMMIT = "43 00 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000"
PREPARE = "50 00 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000 000002e5 67696400"
STREAM_COMMIT = "63 000002e5 00 0000000001a2b3c8 0000000001a2b3f8 000303c3841b0000"
OUTSIDE = "outside of transactions and streams"
INSIDE = "inside a transaction or inside a prepared transaction or inside a stream"

# What came before, the message out of place, and the error's text.
OUT_OF_PLACE = {
    "Stream Stop without Stream Start": (
        [], STOP, f"Stream Stop: tag at offset 0: expected Stream Stop inside a stream, found it {OUTSIDE}",
    ),
    "Stream Stop twice": (
        [START, STOP], STOP, f"Stream Stop: tag at offset 0: expected Stream Stop inside a stream, found it {OUTSIDE}",
    ),
    "Stream Start twice": (
        [START], START, f"Stream Start: tag at offset 0: expected Stream Start {OUTSIDE}, found it inside a stream",
    ),
    "Stream Start in a transaction": (
        [BEGIN], START,
        f"Stream Start: tag at offset 0: expected Stream Start {OUTSIDE}, found it inside a transaction",
    ),
    "Begin in a transaction": (
        [BEGIN], BEGIN, f"Begin: tag at offset 0: expected Begin {OUTSIDE}, found it inside a transaction",
    ),
    "Begin in a stream": (
        [START], BEGIN, f"Begin: tag at offset 0: expected Begin {OUTSIDE}, found it inside a stream",
    ),
    "Begin in a prepared transaction": (
        [BEGIN_PREPARE], BEGIN,
        f"Begin: tag at offset 0: expected Begin {OUTSIDE}, found it inside a prepared transaction",
    ),
    "Commit without Begin": (
        [], COMMIT, f"Commit: tag at offset 0: expected Commit inside a transaction, found it {OUTSIDE}",
    ),
    "Commit of a prepared transaction": (
        [BEGIN_PREPARE], COMMIT,
        "Commit: tag at offset 0: expected Commit inside a transaction, found it inside a prepared transaction",
    ),
    "Prepare without Begin Prepare": (
        [BEGIN], PREPARE,
        "Prepare: tag at offset 0: expected Prepare outside of transactions and streams or inside a prepared transaction, "
        "found it inside a transaction",
    ),
    "Stream Commit in a stream": (
        [START], STREAM_COMMIT,
        f"Stream Commit: tag at offset 0: expected Stream Commit {OUTSIDE}, found it inside a stream",
    ),
    "a change outside of everything": (
        [], "49 00004003 4e 0000", f"Insert: tag at offset 0: expected Insert {INSIDE}, found it {OUTSIDE}",
    ),
    "an Origin outside of everything": (
        [], "4f 0000000000000001 6e00", f"Origin: tag at offset 0: expected Origin {INSIDE}, found it {OUTSIDE}",
    ),
    "a row before its Relation": (
        [BEGIN], "49 00004003 4e 0000",
        "Insert: relation_id at offset 1: expected a table that a Relation has described, found OID 16387",
    ),
    "a row before its Relation, in a stream": (
        [START], "55 000002e5 00004003 4e 0000",
        "Update: relation_id at offset 5: expected a table that a Relation has described, found OID 16387",
    ),
    "a row before its Relation, after that of another": (
        [BEGIN, "52 00004004 7300 7400 64 0000"], "44 00004003 4b 0000",
        "Delete: relation_id at offset 1: expected a table that a Relation has described, found OID 16387",
    ),
    "a Truncate before the Relation of its second table": (
        [BEGIN, "52 00004003 7300 7400 64 0000"], "54 00000002 00 00004003 00004004",
        "Truncate: relation_ids[1] at offset 10: expected a table that a Relation has described, found OID 16388",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("previous_messages", "data", "text"), OUT_OF_PLACE.values(), ids=OUT_OF_PLACE.keys())
def test_a_message_out_of_place_is_an_error_of_the_decoder_alone(
    previous_messages: list[str], data: str, text: str
) -> None:
    decoder = _decoder_after(*previous_messages)
    state = (decoder.block, decoder.streaming, dict(decoder.relations))
    with pytest.raises(DecodeError) as refusal:
        decoder.decode(bytes.fromhex(data))
    assert str(refusal.value) == text
    assert (decoder.block, decoder.streaming, decoder.relations) == state
    VERSIONS[4].parse(bytes.fromhex(data), streaming=decoder.streaming)


def test_a_decoder_continues_after_an_error() -> None:
    decoder = _decoder_after(START)
    for wrong in (BEGIN, START, "58", "", "45 00"):
        with pytest.raises(DecodeError):
            decoder.decode(bytes.fromhex(wrong))
    assert decoder.decode(bytes.fromhex(STOP)).tag == "E"
    assert decoder.decode(bytes.fromhex(STREAM_COMMIT)).tag == "c"


def test_a_decoder_of_a_slot_with_two_phase_takes_its_messages_in_older_versions() -> None:
    for version in (1, 2):
        decoder = _decoder_after(BEGIN_PREPARE, PREPARE, version=version, two_phase=True)
        assert decoder.block == "outside"
        with pytest.raises(DecodeError) as refusal:
            decoder.decode(bytes.fromhex(BEGIN_PREPARE)[:-1])
        assert str(refusal.value) == (
            "Begin Prepare: gid at offset 29: expected a text that a zero byte ends, found 3 bytes without one"
        )
        with pytest.raises(DecodeError) as refusal:
            Decoder(version).decode(bytes.fromhex(BEGIN_PREPARE))
        assert str(refusal.value) == (
            f"Begin Prepare: tag at offset 0: expected a message of protocol version {version}, "
            "found 'b', Begin Prepare of version 3, which is sent to older versions too where two_phase: "
            "the slot was created with two_phase"
        )


def test_a_decoder_of_a_slot_with_two_phase_takes_no_streams_in_version_1() -> None:
    with pytest.raises(DecodeError) as refusal:
        Decoder(1, two_phase=True).decode(bytes.fromhex(START))
    assert str(refusal.value) == (
        "Stream Start: tag at offset 0: expected a message of protocol version 1, found 'S', Stream Start of version 2"
    )


def test_a_decoder_takes_stream_aborts_in_all_versions() -> None:
    """PostgreSQL 18 sends them without streaming too."""
    for version in VERSIONS:
        decoder = _decoder_after(BEGIN, COMMIT, version=version)
        message = decoder.decode(bytes.fromhex("41 000002e5 000002e6"))
        assert (type(message).__name__, message.xid, message.subxid) == ("StreamAbort", 741, 742)  # type: ignore[union-attr]
        assert decoder.block == "outside"
        with pytest.raises(DecodeError, match=r"^Stream Abort: subxid at offset 5: expected 4 bytes, found 0 bytes"):
            decoder.decode(bytes.fromhex("41 000002e5"))
        decoder.decode(bytes.fromhex(BEGIN))
        with pytest.raises(DecodeError, match=r"^Stream Abort: tag at offset 0: expected .* found it inside a trans"):
            decoder.decode(bytes.fromhex("41 000002e5 000002e6"))


def test_a_decoder_takes_a_prepare_without_begin_prepare() -> None:
    """PostgreSQL 18 sends it of a transaction without changes."""
    for decoder in (_decoder_after(BEGIN, COMMIT), _decoder_after(version=1, two_phase=True)):
        decoder.decode(bytes.fromhex(PREPARE))
        assert decoder.block == "outside"
        decoder.decode(bytes.fromhex(BEGIN_PREPARE))
        assert decoder.block == "prepared transaction"


def test_a_decoder_of_no_version_is_refused() -> None:
    versions = ", ".join(map(str, VERSIONS))
    for version in (0, max(VERSIONS) + 1, -1):
        with pytest.raises(ValueError, match=f"^protocol version {version} is unknown; the versions are {versions}$"):
            Decoder(version)


@pytest.mark.parametrize(("version", "kind"), [("4", "str"), (4.0, "float"), (True, "bool"), (None, "NoneType")])
def test_a_version_that_is_no_int_is_refused(version: object, kind: str) -> None:
    with pytest.raises(TypeError, match=f"^a protocol version is an int, and {version!r} is a {kind}$"):
        Decoder(version)  # type: ignore[call-overload]
