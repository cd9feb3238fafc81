"""Messages that real servers sent: all parse, build back to the same bytes, and are refused a byte short or long."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from logicalrep import DecodeError, walsender
from logicalrep_protocol import versions
from logicalrep_protocol.walsender import PrimaryKeepaliveMessage, StandbyStatusUpdate, XLogData
from tests.protocol.agreement import VERSIONS, agree
from tests.protocol.captured import COLLECTION, Capture, collected, collected_raw, read, rows, selected, selected_raw
from tests.protocol.hand_decoder import SINCE

# The tags that servers of each major sent, by protocol version and transport. 15-high is a 15 with transaction ids and
# OIDs above 2^31 and LSNs above 2^63. PostgreSQL 10 sends no Truncate, nor Message before 14.
SENT = {
    ("pg10", 1, "sql"): "BCDIORUY",
    ("pg10", 1, "walsender"): "BCDIORUY",
    ("pg12", 1, "sql"): "BCDIORTUY",
    ("pg12", 1, "walsender"): "BCDIORTUY",
    ("pg14", 1, "sql"): "BCDIMORTUY",
    ("pg14", 1, "walsender"): "BCDIMORTUY",
    ("pg14", 2, "sql"): "ABCDEIMORSTUYc",
    ("pg14", 2, "walsender"): "ABCDEIMORSTUYc",
    ("pg15", 1, "sql"): "BCDIKMOPRTUYbr",
    ("pg15", 1, "walsender"): "BCDIMORTUY",
    ("pg15", 2, "sql"): "ABCDEIMORSTUYc",
    ("pg15", 2, "walsender"): "ABCDEIMORSTUYc",
    ("pg15", 3, "sql"): "BCDIMRTUY",
    ("pg15", 3, "walsender"): "ABCDEIKMOPRSTUYbcpr",
    ("pg15-high", 1, "sql"): "BCDIMORTUY",
    ("pg15-high", 1, "walsender"): "BCDIRTU",
    ("pg15-high", 2, "sql"): "ABCDEIMORSTUYc",
    ("pg15-high", 2, "walsender"): "ABCDEIMORSTUYc",
    ("pg15-high", 3, "sql"): "BCDIRTU",
    ("pg15-high", 3, "walsender"): "ABCDEIMORSTUYc",
    ("pg16", 1, "sql"): "BCDIKMOPRTUYbr",
    ("pg16", 1, "walsender"): "BCDIMORTUY",
    ("pg16", 2, "sql"): "ABCDEIMORSTUYc",
    ("pg16", 2, "walsender"): "ABCDEIMORSTUYc",
    ("pg16", 3, "sql"): "ABCDEIKMOPRSTUYbcpr",
    ("pg16", 3, "walsender"): "ABCDEIKMOPRSTUYbcpr",
    ("pg16", 4, "sql"): "ABCDEIKMRSTUYcpr",
    ("pg16", 4, "walsender"): "ABCDEIKMOPRSTUYbcpr",
    ("pg17", 1, "sql"): "BCDIKMOPRTUYbr",
    ("pg17", 1, "walsender"): "BCDIMORTUY",
    ("pg17", 2, "sql"): "ABCDEIMORSTUYc",
    ("pg17", 2, "walsender"): "ABCDEIMORSTUYc",
    ("pg17", 3, "sql"): "ABCDEIKMOPRSTUYbcpr",
    ("pg17", 3, "walsender"): "ABCDEIKMOPRSTUYbcpr",
    ("pg17", 4, "sql"): "BCDIRTUY",
    ("pg17", 4, "walsender"): "ABCDEIKMOPRSTUYbcpr",
    ("pg18", 1, "sql"): "BCDIKMOPRTUYbr",
    ("pg18", 1, "walsender"): "BCDIMORTUY",
    ("pg18", 2, "sql"): "ABCDEIKMOPRSTUYbcpr",
    ("pg18", 2, "walsender"): "ABCDEIMORSTUYc",
    ("pg18", 3, "sql"): "BCDIMORTUY",
    ("pg18", 3, "walsender"): "ABCDEIKMOPRSTUYbcpr",
    ("pg18", 4, "sql"): "ABCDEIKMPRSTUYbcpr",
    ("pg18", 4, "walsender"): "ABCDEIKMOPRSTUYbcpr",
}

# The majors whose captures have each kind of session.
SESSIONS = {
    "a slot with two_phase": "pg14 pg15 pg15-high pg16 pg17 pg18",
    "a slot with two_phase, version 1": "pg14 pg15 pg16 pg17 pg18",
    "streaming": "pg14 pg15 pg15-high pg16 pg17 pg18",
    "streaming = parallel": "pg16 pg17 pg18",
    "binary": "pg14 pg15 pg15-high pg16 pg17 pg18",
    "client_encoding LATIN1": "pg10 pg12 pg14 pg15 pg16 pg17 pg18",
}


# What has an xid between Stream Start and Stream Stop; Origin has none even there.
STREAMED = "MRYIUDT"


def _workloads(files: list[Path]) -> list[list[Path]]:
    by_folder = defaultdict(list)
    for path in files:
        by_folder[path.parent].append(path)
    return list(by_folder.values())


def _name(files: list[Path]) -> str:
    return "-".join(files[0].parent.parts[-2:])


def _tags_sent(files: list[Path]) -> dict[tuple[str, int, str], str]:
    sent: dict[tuple[str, int, str], set[str]] = defaultdict(set)
    for path in files:
        capture = read(path)
        key = (path.parent.parent.name, capture.version, capture.header["transport"])
        sent[key] |= {chr(data[0]) for data in capture.messages}
    return {key: "".join(sorted(tags)) for key, tags in sent.items()}


def _sessions(files: list[Path]) -> dict[str, str]:
    majors_by_kind: dict[str, set[str]] = defaultdict(set)
    for path in files:
        capture = read(path)
        options = capture.header["options"]
        kinds = {
            "a slot with two_phase": capture.two_phase,
            "a slot with two_phase, version 1": capture.two_phase and capture.version == 1,
            "streaming": options.get("streaming") in ("on", "true", "parallel"),
            "streaming = parallel": capture.parallel,
            "binary": options.get("binary") in ("on", "true"),
            "client_encoding LATIN1": capture.header["client_encoding"] == "LATIN1",
        }
        for kind, is_present in kinds.items():
            if is_present:
                majors_by_kind[kind].add(path.parent.parent.name)
    return {kind: " ".join(sorted(majors)) for kind, majors in majors_by_kind.items()}


def test_the_selection_has_every_tag_of_every_major_version_and_transport() -> None:
    assert _tags_sent(selected()) == SENT


def test_the_selection_has_every_kind_of_session_of_every_major() -> None:
    assert _sessions(selected()) == SESSIONS


def test_the_selection_is_small() -> None:
    assert sum(path.stat().st_size for path in selected()) < 900_000


@pytest.mark.thorough
def test_the_selection_leaves_nothing_out_that_servers_send() -> None:
    assert _tags_sent(collected()) == SENT
    assert _sessions(collected()) == SESSIONS


@pytest.mark.thorough
def test_the_collection_is_whole() -> None:
    assert sum(len(read(path).messages) for path in collected()) == 263_582


@pytest.mark.slow
@pytest.mark.parametrize("files", _workloads(selected()), ids=_name)
def test_messages_parse_build_back_and_agree(files: list[Path]) -> None:
    _check_messages(files)


@pytest.mark.thorough
@pytest.mark.parametrize("files", _workloads(collected()), ids=_name)
def test_all_messages_parse_build_back_and_agree(files: list[Path]) -> None:
    _check_messages(files)


def _check_messages(files: list[Path]) -> None:
    """The captures of a workload read the same log, so many messages recur; each is looked at once in each state."""
    seen = set()
    for capture in map(read, files):
        session = {"parallel": capture.parallel, "encoding": capture.encoding}
        for streaming, data in capture.with_state():
            name, since = SINCE[chr(data[0])]
            version = max(capture.version, since) if capture.two_phase else capture.version
            key = (getattr(VERSIONS[version], name), streaming, *session.values(), data)
            if key in seen:
                continue
            seen.add(key)
            message = agree(data, version, streaming=streaming, **session)
            assert not isinstance(message, DecodeError), message
            for wrong in (data[:-1], data + b"\0"):
                with pytest.raises(DecodeError):
                    VERSIONS[version].parse(wrong, streaming=streaming, **session)


@pytest.mark.parametrize("files", _workloads(selected()), ids=_name)
def test_a_decoder_follows_a_session(files: list[Path]) -> None:
    for capture in map(read, files):
        _check_session(capture)


@pytest.mark.thorough
@pytest.mark.parametrize("files", _workloads(collected()), ids=_name)
def test_a_decoder_follows_every_session(files: list[Path]) -> None:
    for capture in map(read, files):
        _check_session(capture)


def _check_session(capture: Capture) -> None:
    decoder = capture.decoder()
    relations, types = {}, {}
    blocks = {"B": "transaction", "b": "prepared transaction", "S": "stream"} | dict.fromkeys("CPE", "outside")
    block = "outside"
    for streaming, data in capture.with_state():
        assert (decoder.streaming, decoder.block) == (streaming, block)
        message = decoder.decode(data)
        assert message.tag == chr(data[0])
        assert (getattr(message, "xid", None) is not None) == (message.tag in (STREAMED if streaming else "BSAcbPKrp"))
        if isinstance(message, versions.Relation):
            relations[message.relation_id] = message
        elif isinstance(message, versions.Type):
            types[message.type_id] = message
        block = blocks.get(message.tag, block)
    assert decoder.relations == relations
    assert decoder.types == types


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("v1-latin1.walsender.jsonl.gz", [b"ge\xe4ndert \xdf", b"\xc6r\xf8sk\xf8bing"]),
        ("v3-latin1.sql.jsonl.gz", [b"ge\xe4ndert \xdf", b"\xc6r\xf8sk\xf8bing"]),
        ("v1-utf8-bin.sql.jsonl.gz", [b"ge\xc3\xa4ndert \xc3\x9f", b"\xc3\x86r\xc3\xb8sk\xc3\xb8bing"]),
    ],
)
def test_names_are_decoded_from_the_client_encoding_and_values_stay_bytes(name: str, texts: list[bytes]) -> None:
    capture = read(COLLECTION / "pg18" / "latin1" / name)
    decoder = capture.decoder()
    messages = [decoder.decode(data) for data in capture.messages]
    relations = [message for message in messages if isinstance(message, versions.Relation)]
    assert [relation.name for relation in relations] == ["täble", "l_full"]
    assert relations[0].columns[1].name == "spälte"
    assert [message.name for message in messages if isinstance(message, versions.Type)] == ["stimmüng"]
    changes = [message for message in messages if isinstance(message, versions.Insert | versions.Update)]
    values = {value for change in changes for value in change.new.values}
    assert values >= set(texts)


def test_the_prefix_of_a_message_is_decoded_and_its_content_is_not() -> None:
    for name in ("v3-latin1.sql.jsonl.gz", "v1-utf8-bin.sql.jsonl.gz"):
        capture = read(COLLECTION / "pg18" / "latin1" / name)
        decoder = capture.decoder()
        messages = [decoder.decode(data) for data in capture.messages]
        contents = [(message.prefix, message.content) for message in messages if isinstance(message, versions.Message)]
        assert contents == [("präfix", b"n\xe4chricht"), ("präfix", b"\xe4\x00\xff")]


@pytest.mark.parametrize("path", selected_raw(), ids=lambda path: path.name)
def test_an_envelope_parses_and_builds_back(path: Path) -> None:
    assert _check_conversation(path) == {XLogData, PrimaryKeepaliveMessage, StandbyStatusUpdate}


@pytest.mark.thorough
def test_every_envelope_parses_and_builds_back() -> None:
    kinds = set()
    for path in collected_raw():
        kinds |= _check_conversation(path)
    assert kinds == {XLogData, PrimaryKeepaliveMessage, StandbyStatusUpdate}


def _check_conversation(path: Path) -> set[type]:
    header, *lines = rows(path)
    payloads = []
    kinds = set()
    for line in lines:
        if line["type"] != "d":
            continue
        sender = {"s": "server", "c": "client"}[line["dir"]]
        data = bytes.fromhex(line["data"])
        message = walsender.parse(data, sender=sender)
        kinds.add(type(message))
        assert message.build() == data
        struct = getattr(walsender, f"{sender}_message")
        assert repr(struct.parse(data)) == repr(message)
        assert struct.build(message) == data
        if isinstance(message, XLogData):
            payloads.append(message.payload)
            # No XLogData is too short or too long as such: its payload takes what is left.
            longer = walsender.parse(data + b"\0")
            assert isinstance(longer, XLogData)
            assert longer.payload == message.payload + b"\0"
            wrong = [data[:24]]
        else:
            wrong = [data[:-1], data + b"\0"]
        for refused in wrong:
            with pytest.raises(DecodeError):
                walsender.parse(refused, sender=sender)
    assert tuple(payloads) == read(path.parent / header["capture"]).messages
    return kinds
