"""Conversations of real clients and servers, recorded by a proxy: read by message, built back byte for byte."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from construct import ConstructError

from logicalrep_protocol.pgwire import Session, v3_0, v3_2
from logicalrep_protocol.pgwire.layouts import PGWIRE, FormatCode
from logicalrep_runtime.errors import DecodeError
from logicalrep_runtime.layout_walk import walk
from tests.conftest import ROOT
from tests.protocol.conversation_reading import FOLDER, RECORDED, connections, decoded

NEVER_RECORDED = {
    # Kerberos, GSSAPI and SSPI need a domain; they are tested by hand below.
    "AuthenticationKerberosV5", "AuthenticationGSS", "AuthenticationGSSContinue", "AuthenticationSSPI", "GSSResponse",
    "GSSENCRequest",
}  # fmt: skip


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_a_conversation_is_read_and_built_back(path: Path) -> None:
    for chunks in connections(path):
        sent = {"server": b"", "client": b""}
        for sender, whole, message, session, facts in decoded(chunks):
            encoding = session.encoding if "simple" in path.name else "utf-8"
            built = message.build(encoding=encoding) if whole == message.build(encoding=encoding) else message.build()
            assert built == whole
            sent[sender] += whole
            steps = list(walk(PGWIRE, session.version, whole, facts=facts, sender=sender, encoding=session.encoding))
            assert b"".join(step.data for step in steps) == whole
        for sender, data in sent.items():
            assert data == b"".join(data for who, data in chunks if who == sender)


def test_pieces_of_any_size_give_the_same_messages() -> None:
    draw = random.Random(1)
    for path in RECORDED:
        for chunks in connections(path):
            whole = [(sender, data, message) for sender, data, message, *_ in decoded(chunks)]
            pieces = []
            for sender, data in chunks:
                while data:
                    size = draw.randint(1, 40)
                    pieces.append((sender, data[:size]))
                    data = data[size:]
            assert [(sender, data, message) for sender, data, message, *_ in decoded(pieces)] == whole


@pytest.mark.slow
def test_structs_read_and_build_every_message_and_refuse_alike() -> None:
    """The Struct of any message beside `parse` and the walk, on what was recorded and on damaged copies of it."""
    draw = random.Random(1)
    seen: dict[bytes, tuple[str, Any, str]] = {}
    for path in RECORDED:
        for chunks in connections(path):
            for sender, whole, _, session, facts in decoded(chunks):
                seen[whole] = (sender, v3_0 if session.version == 1 else v3_2, facts["expected"])
    taken, refused = 0, list[str]()
    for whole, (sender, module, expected) in seen.items():
        struct = getattr(module, f"{sender}_message")
        copies = [bytearray(whole) for _ in range(4)]
        for damaged in copies:
            damaged[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        for data in (whole, *map(bytes, copies), whole[: draw.randrange(1, len(whole) + 1)], whole + b"\0"):
            for waits in {expected, "messages", "startup", "encryption", "password"}:
                try:
                    message = module.parse(data, sender=sender, expected=waits)
                except DecodeError as error:
                    refused.append(str(error))
                    with pytest.raises(ConstructError):
                        struct.parse(data, expected=waits)
                else:
                    taken += 1
                    assert struct.parse(data, expected=waits) == message
                    assert struct.build(message) == data
    assert min(taken, len(refused)) > 2000
    with pytest.raises(ConstructError):
        v3_0.client_message.build(v3_0.AuthenticationOk())


def test_every_message_was_recorded_but_for_those_of_a_domain() -> None:
    seen = {
        type(message).__name__
        for path in RECORDED
        for chunks in connections(path)
        for _, _, message, *_ in decoded(chunks)
    }
    assert {message.name for message in PGWIRE.messages} - seen == NEVER_RECORDED


def test_what_cannot_be_recorded_is_read_as_the_page_has_it() -> None:
    for name, code in (("KerberosV5", 2), ("GSS", 7), ("SSPI", 9)):
        message = v3_0.parse(b"R\0\0\0\10\0\0\0" + bytes((code,)), expected="messages")
        assert message == getattr(v3_0, f"Authentication{name}")()
    data = b"R\0\0\0\13\0\0\0\10abc"
    assert v3_0.parse(data, expected="messages") == v3_0.AuthenticationGSSContinue(data=b"abc")
    assert v3_0.parse(b"p\0\0\0\7abc", sender="client", expected="gss") == v3_0.GSSResponse(data=b"abc")
    assert v3_0.parse(bytes.fromhex("0000000804d21630"), sender="client") == v3_0.GSSENCRequest()
    session = Session()
    session.decode(bytes.fromhex("0000000804d21630"), sender="client")
    assert session.decode(b"N", sender="server") == v3_0.EncryptionResponse(answer="N")
    assert session.facts == {"expected": "startup"}


def test_a_session_follows_both_sides() -> None:
    (chunks,) = connections(FOLDER / "pg18-scram.jsonl.gz")
    names = [type(message).__name__ for _, _, message, *_ in decoded(chunks)]
    assert names[:9] == [
        "StartupMessage", "AuthenticationSASL", "SASLInitialResponse", "AuthenticationSASLContinue", "SASLResponse",
        "AuthenticationSASLFinal", "AuthenticationOk", "ParameterStatus", "ParameterStatus",
    ]  # fmt: skip
    (chunks,) = connections(FOLDER / "pg18-md5.jsonl.gz")
    assert "PasswordMessage" in [type(message).__name__ for _, _, message, *_ in decoded(chunks)]


NOTICE = v3_0.NoticeResponse(fields=()).build()
STATUS = v3_0.ParameterStatus(name="TimeZone", setting="UTC").build()
NOTIFICATION = v3_0.NotificationResponse(process_id=1, channel="c", payload="").build()


def test_notices_settings_and_notifications_may_come_anywhere() -> None:
    places = set()
    for path in RECORDED:
        for chunks in connections(path):
            session = Session()
            for sender, data in chunks:
                for _ in session.receive(data, sender=sender):
                    if session.facts["expected"] == "messages":
                        places.add(session.block)
                        for more in (NOTICE, STATUS, NOTIFICATION):
                            state = (session.block, session.facts.copy())
                            session.decode(more, sender="server")
                            assert (session.block, session.facts) == state
    assert places == {"outside", "session start", "copy to the server", "copy to the client", "copy both ways"}


def test_what_a_server_sends_in_another_place_is_refused() -> None:
    """Each message that the server sent in a conversation, at each place where the spec has it not."""
    by_name = {layout.name: layout for layout in PGWIRE.messages}
    sent: dict[str, bytes] = {}
    blocks: dict[str, set[str]] = defaultdict(set)
    for path in RECORDED:
        for chunks in connections(path):
            for sender, whole, message, session, _ in decoded(chunks):
                name = type(message).__name__
                # The keys of 3.0 are read in both versions.
                if sender == "server" and by_name[name].tag and (session.version == 1 or name not in sent):
                    sent[name] = whole
    for path in RECORDED:
        for chunks in connections(path):
            session = Session()
            for sender, data in chunks:
                for _ in session.receive(data, sender=sender):
                    for name, whole in sent.items():
                        is_new = session.block not in blocks[name] and session.facts["expected"] == "messages"
                        if is_new and session.block not in by_name[name].places:
                            blocks[name].add(session.block)
                            state = (session.block, session.facts.copy(), session.version)
                            with pytest.raises(DecodeError, match=f"^{name}: tag at offset 0: expected {name} "):
                                session.decode(whole, sender="server")
                            assert (session.block, session.facts, session.version) == state
    everywhere = {"outside", *(layout.opens for layout in PGWIRE.messages if layout.opens)}
    assert {name: everywhere - set(by_name[name].places) for name in sent} == {name: blocks[name] for name in sent}
    assert blocks["CopyData"] == {"outside", "session start", "copy to the server"}
    assert blocks["ErrorResponse"] == set()


def test_a_client_may_be_ahead_of_the_server() -> None:
    session = Session()
    session.decode(STARTUP.build(), sender="client")
    session.decode(v3_0.AuthenticationOk().build(), sender="server")
    session.decode(v3_0.ReadyForQuery(transaction_status=v3_0.TransactionStatus.IDLE).build(), sender="server")
    session.decode(v3_0.Query(query="copy t from stdin").build(), sender="client")
    session.decode(v3_0.CopyInResponse(overall_format=0, column_formats=()).build(), sender="server")
    session.decode(v3_0.ErrorResponse(fields=()).build(), sender="server")
    assert session.block == "outside"
    # What the client has sent before it reads the error; the server drops it.
    assert session.decode(v3_0.CopyData(data=b"1").build(), sender="client") == v3_0.CopyData(data=b"1")
    session.decode(v3_0.CopyDone().build(), sender="client")
    error = (
        "CopyDone: tag at offset 0: expected CopyDone inside a copy to the client or inside a copy both ways, found it"
    )
    with pytest.raises(DecodeError, match=error):
        session.decode(v3_0.CopyDone().build(), sender="server")


def test_versions_differ_in_their_keys() -> None:
    for file, version, size in (("pg18-cancel_3_0", 1, 4), ("pg18-cancel_3_2", 2, 32)):
        keys, versions = set(), set()
        for chunks in connections(FOLDER / f"{file}.jsonl.gz"):
            for _, _, message, session, _ in decoded(chunks):
                if type(message).__name__ in ("BackendKeyData", "CancelRequest"):
                    keys.add(message.secret_key)
                    versions |= {session.version} if type(message).__name__ == "BackendKeyData" else set()
        assert len(keys) == 1
        assert {len(key) for key in keys} == {size}
        assert versions == {version}
    server_of_16 = [
        message for chunks in connections(FOLDER / "pg16-version_3_2.jsonl.gz") for _, _, message, *_ in decoded(chunks)
    ]
    assert v3_0.NegotiateProtocolVersion(newest_version=196608, options=()) in server_of_16


def test_texts_follow_client_encoding() -> None:
    (chunks,) = connections(FOLDER / "pg18-simple.jsonl.gz")
    session = decoded(chunks)[0][3]
    assert session.encoding == "iso8859-1"


def test_every_encoding_has_a_codec_and_others_are_refused() -> None:
    for codec in PGWIRE.encodings.values():
        assert "a".encode(codec).decode(codec) == "a"
    session = Session()
    session.decode(STARTUP.build(), sender="client")
    told = v3_0.ParameterStatus(name="client_encoding", setting="EUC_JIS_2004").build()
    session.decode(told, sender="server")
    assert "が".encode("euc_jis_2004").decode(session.encoding) == "が"
    error = (
        "ParameterStatus: setting at offset 21: expected a client_encoding that Python has a codec for, found EUC_TW"
    )
    with pytest.raises(DecodeError, match=error):
        session.decode(v3_0.ParameterStatus(name="client_encoding", setting="EUC_TW").build(), sender="server")
    assert session.encoding == "euc_jis_2004"


def test_a_replication_session_carries_its_envelope() -> None:
    from logicalrep_protocol import Decoder, walsender

    (chunks,) = connections(FOLDER / "pg18-start_replication.jsonl.gz")
    decoder, names = Decoder(1), []
    for sender, _, message, *_ in decoded(chunks):
        if type(message).__name__ == "CopyData":
            inner = walsender.parse(message.data, sender=sender)
            names.append(type(inner).__name__)
            if isinstance(inner, walsender.XLogData):
                names.append(type(decoder.decode(inner.payload)).__name__)
    assert {"Begin", "Relation", "Insert", "Commit", "StandbyStatusUpdate"} <= set(names)


def test_each_field_of_an_error_that_a_server_sent_has_a_name() -> None:
    codes = {
        field.code
        for path in RECORDED
        for chunks in connections(path)
        for _, _, message, _, _ in decoded(chunks)
        if isinstance(message, v3_0.ErrorResponse | v3_0.NoticeResponse)
        for field in message.fields
    }
    assert {v3_0.Code.SEVERITY, v3_0.Code.CODE, v3_0.Code.MESSAGE, v3_0.Code.POSITION} <= codes <= set(v3_0.Code)


STARTUP = v3_2.StartupMessage(parameters=(v3_2.StartupParameter(name="user", setting="x"),))
EXPECTED: dict[str, tuple[Any, str]] = {
    "a key of 3.2": (v3_2.BackendKeyData(process_id=1, secret_key=b"k" * 5), "4b0000000d000000016b6b6b6b6b"),
    "a value of NULL": (v3_0.DataRow(columns=(v3_0.ColumnValue(value=None),)), "440000000a0001ffffffff"),
    "an error with an unknown field": (
        v3_0.ErrorResponse(fields=(v3_0.ErrorField(code="?", text="a"), v3_0.ErrorField(code="C", text=""))),
        "450000000a3f6100430000",
    ),
    "formats": (
        v3_0.CopyOutResponse(overall_format=FormatCode.BINARY, column_formats=(1, 0)),
        "480000000b010002" + "00010000",
    ),
    "a startup": (STARTUP, "00000010000300027573657200780000"),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_message_has_the_bytes_of_the_page(name: str) -> None:
    message, data = EXPECTED[name]
    assert message.build().hex() == data


@pytest.mark.parametrize(
    ("data", "sender", "expected", "text"),
    [
        ("5a0000000649", "server", "messages", "ReadyForQuery: length at offset 1: expected 5, found 6"),
        ("4b0000000c000000010000000000", "server", "messages", "BackendKeyData: length at offset 1: expected 13, found 12"),
        ("440000000a0001fffffffe", "server", "messages", "DataRow: columns[0].length at offset 7: expected -1 or more, found -2"),
        ("520000000800000063", "server", "messages", "AuthenticationOk: code at offset 5: expected 0, found 99"),
        ("4500000007530041", "server", "messages", "ErrorResponse: fields[1].text at offset 8: expected a text that a zero byte ends, found 0 bytes without one"),
        ("ff", "server", "messages", "message: tag at offset 0: expected one of the tags"),
    ],
)  # fmt: skip
def test_refused_values_are_reported_with_their_place(data: str, sender: Any, expected: Any, text: str) -> None:
    with pytest.raises(DecodeError) as error:
        v3_0.parse(bytes.fromhex(data), sender=sender, expected=expected)
    assert str(error.value).startswith(text)


def test_a_message_that_is_too_long_is_refused_before_it_is_kept() -> None:
    session = Session(most=100)
    session.facts["expected"] = "messages"
    with pytest.raises(DecodeError, match=r"CopyData: length at offset 1: expected at most 99, found 100"):
        list(session.receive(b"d\0\0\0\x64" + bytes(50), sender="server"))
    assert session.pending == {"server": 0, "client": 0}
    session = Session()
    with pytest.raises(DecodeError, match="message: length at offset 0: expected 4 or more, found -1"):
        list(session.receive(b"\xff\xff\xff\xff", sender="client"))


def test_the_page_on_it_works() -> None:
    page = (ROOT / "docs/reference/pgwire.md").read_text("utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    exec(example, {})


def test_the_package_does_not_import_it_by_itself() -> None:
    code = "import logicalrep, logicalrep_protocol, sys; print([name for name in sys.modules if 'pgwire' in name])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
