"""The dissector for Wireshark: tshark shows of messages within PostgreSQL's protocol what our readers read."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from codegen.__main__ import main
from codegen.model.reader import load
from codegen.model.versions import view, views
from codegen.vectors.captured import messages_of
from codegen.vectors.codec import Reader
from codegen.vectors.command import vectors
from tests.codegen.weather import write_files
from tests.codegen.wireshark.capturing import NEEDS_TSHARK, dissected, pcap, tshark
from tests.conftest import ROOT
from tests.documents import example
from tests.protocol.captured import collected, selected

pytestmark = NEEDS_TSHARK

LOGICALREP, WALSENDER = (protocol for protocol in load(ROOT / "spec") if protocol.name in ("logicalrep", "walsender"))
BEGIN = bytes.fromhex("4200000016b374d8480000000000000000000002db")
RELATION = bytes.fromhex("52000040007075626c6963006f7264657273006400010169640000000017ffffffff")
INSERT = bytes.fromhex("49000040004e0001740000000137")
START, STOP = bytes.fromhex("53000002e601"), b"E"


@pytest.fixture(scope="module")
def dissector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wireshark") / "logicalrep.lua"
    assert main(["lua", str(path)]) == 0
    return path


def framed(tag: bytes, body: bytes) -> bytes:
    return tag + (len(body) + 4).to_bytes(4, "big") + body


def replication(version: int, *, parallel: bool = False) -> tuple[str, bytes]:
    streaming = "parallel" if parallel else "on"
    options = f"(proto_version '{version}', \"streaming\" '{streaming}', publication_names '\"p\"')"
    return "client", framed(b"Q", f'START_REPLICATION SLOT "logical" LOGICAL 0/0 {options}\0'.encode())


def copied(data: bytes, sender: str = "server") -> tuple[str, bytes]:
    return sender, framed(b"d", data)


def logged(message: bytes) -> tuple[str, bytes]:
    """A message of the plugin within XLogData."""
    return copied(b"w" + bytes(24) + message)


def expected(fields: Mapping[str, Any]) -> dict[str, list[str]]:
    """The values of a message by the name of their row, without empty ones. Texts of columns are text."""
    values: dict[str, list[str]] = {}
    for name, field in fields.items():
        for item in field if isinstance(field, list) else [field]:
            if isinstance(item, dict):
                for inner, inner_values in expected(item).items():
                    values.setdefault(inner, []).extend(inner_values)
            elif item not in (None, ""):
                is_text = name == "value" and fields.get("kind") == "t"
                values.setdefault(name, []).append(bytes.fromhex(item).decode() if is_text else str(item))
    return {name: sorted(items) for name, items in values.items()}


def shown(layer: Mapping[str, Any]) -> dict[str, list[str]]:
    """The values of a layer of tshark in the same form, without the bits of flags."""
    values: dict[str, list[str]] = {}
    for key, items in layer.items():
        for item in items if isinstance(items, list) else [items]:
            if isinstance(item, dict) and not key.endswith("_tree"):
                for inner, inner_values in shown(item).items():
                    values.setdefault(inner, []).extend(inner_values)
            elif isinstance(item, str) and key.partition(".")[0] in ("logicalrep", "walsender") and item:
                is_character = len(item) == 3 and item[0] == item[2] == "'"
                is_bytes = re.fullmatch("[0-9a-f]{2}(:[0-9a-f]{2})*", item) and not key.endswith("text.value")
                value = item[1] if is_character else item.replace(":", "") if is_bytes else item
                values.setdefault(key.rpartition(".")[2], []).append(value)
    return {name: sorted(items) for name, items in values.items()}


def of_vectors(*, is_refused: bool) -> Iterator[tuple[tuple[str, bytes], dict[str, Any] | None]]:
    """Sessions of the oldest and the newest version: packets, with the vector of a packet that has one."""
    for shown_version in (view(LOGICALREP, 1), view(LOGICALREP, 4)):
        for parallel in (False, True):
            yield replication(shown_version.version, parallel=parallel), None
            for vector in vectors(shown_version):
                session = {"streaming": False, "parallel": parallel} | vector.get("session", {})
                if ("refused" in vector) == is_refused and session["parallel"] == parallel:
                    if session["streaming"]:
                        yield logged(START), None
                    yield logged(bytes.fromhex(vector["bytes"])), vector
                    if session["streaming"]:
                        yield logged(STOP), None


def test_tshark_shows_of_every_vector_what_we_read(dissector: Path) -> None:
    packets = list(of_vectors(is_refused=False))
    layers = dissected(dissector, pcap([packet for packet, _ in packets]))
    count = 0
    for frame, (_, vector) in zip(layers, packets, strict=True):
        if vector is not None and "00ff41" not in vector["bytes"]:  # A text that is not UTF-8.
            assert shown(frame["logicalrep"]) == expected(vector["fields"]), vector["name"]
            count += 1
    assert count > 100


def test_tshark_marks_what_vectors_refuse(dissector: Path) -> None:
    pairs = list(of_vectors(is_refused=True))
    layers = dissected(dissector, pcap([packet for packet, _ in pairs]))
    accepted = [
        vector["name"]
        for frame, (_, vector) in zip(layers, pairs, strict=True)
        if vector is not None and "logicalrep.malformed" not in json.dumps(frame) and "UTF-8" not in vector["name"]
    ]
    assert accepted == []
    assert len(pairs) > 150


def _batches(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while batch := list(islice(items, size)):
        yield batch


def _paths() -> list[pytest.ParameterSet]:
    """A few sessions, and all sessions of each server as thorough tests."""
    few = [
        path for path in selected() if path.parts[-3] == "pg18" and path.parts[-2] in ("stream", "twophase", "types")
    ]
    servers = sorted({path.parts[-3] for path in collected()})
    return [
        pytest.param(few, id="few"),
        *(
            pytest.param(
                [path for path in collected() if path.parts[-3] == server], id=server, marks=pytest.mark.thorough
            )
            for server in servers
        ),
    ]


@pytest.mark.parametrize("paths", _paths())
def test_tshark_shows_recorded_sessions_as_we_read_them(dissector: Path, paths: list[Path]) -> None:
    """Each session is a connection. tshark reads captures of a few sessions, and twice, as Wireshark shows packets in
    any order."""
    count = 0
    for sessions in _batches(filter(None, map(_session, paths)), 15):
        sent = [message for _, messages in sessions for message in (None, *messages)]
        packets = [[start, *(logged(data) for _, data, *_ in messages)] for start, messages in sessions]
        layers = dissected(dissector, pcap(*packets), "-2")
        for frame, message in zip(layers, sent, strict=True):
            if message is not None:
                _, data, shown_version, facts = message
                assert shown(frame["logicalrep"]) == expected(Reader(shown_version, data, facts).message()[1])
        count += len(sent)
    assert count > 500


def _session(path: Path) -> tuple[tuple[str, bytes], list[Any]] | None:
    """The packet that starts the replication of a capture, and the messages; None for other files and encodings."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        header = json.loads(next(lines))
        if header.get("format") != "pgoutput-capture/1" or header["client_encoding"] != "UTF8":
            return None
        start = replication(header["proto_version"], parallel=header["options"].get("streaming") == "parallel")
        return start, list(messages_of(LOGICALREP, views(LOGICALREP), header, lines))


def test_messages_of_both_sides_around_the_plugins_are_shown(dissector: Path) -> None:
    entries = [vector for vector in vectors(view(WALSENDER, 1)) if "fields" in vector]
    packets = [copied(bytes.fromhex(vector["bytes"]), vector.get("from", "server")) for vector in entries]
    physical = ("client", framed(b"Q", b"START_REPLICATION SLOT logical PHYSICAL 0/0\0"))
    _, *layers = dissected(dissector, pcap([physical, *packets]))
    for frame, vector in zip(layers, entries, strict=True):
        assert shown(frame["walsender"]) == expected(vector["fields"])
        assert "logicalrep" not in frame
    assert len(entries) > 10


def test_pieces_of_messages_are_joined_and_tables_have_names(dissector: Path) -> None:
    data = b"".join(payload for _, payload in map(logged, (BEGIN, RELATION, INSERT)))
    pieces = [("server", data[:70]), ("server", data[70:100]), ("server", data[100:])]
    capture = pcap([replication(4), *pieces])
    *_, last = dissected(dissector, capture)
    assert [shown(layer)["tag"] for layer in last["logicalrep"]] == [["R"], ["I"]]
    text = tshark(dissector, capture, "-V")
    assert "relation_id: 16384 (public.orders)" in text
    assert "final_lsn: 97500059720 (16/B374D848)" in text
    assert "commit_timestamp: 0 (2000-01-01 00:00:00 UTC)" in text
    assert "Relation, Insert" in tshark(dissector, capture)
    (dissector.parent / "capture.pcap").write_bytes(capture)
    command = example("docs/reference/other-languages.md", "tshark -X").split()
    text = subprocess.run(command, cwd=dissector.parent, capture_output=True, encoding="utf-8", check=True).stdout
    assert "Logical Replication Message Formats, Insert" in text


def test_only_replication_is_read(dissector: Path) -> None:
    copy = ("client", framed(b"Q", b"COPY t TO STDOUT\0"))
    layers = dissected(dissector, pcap([copy, logged(BEGIN)], [replication(4), logged(BEGIN), copy, logged(BEGIN)]))
    assert ["logicalrep" in frame for frame in layers] == [False, False, False, True, False, False]


def test_an_unknown_version_is_not_guessed(dissector: Path) -> None:
    _, frame = dissected(dissector, pcap([replication(5), logged(BEGIN)]))
    assert "logicalrep" not in frame
    assert "version 5 is unknown" in json.dumps(frame)


def test_a_capture_may_begin_later(dissector: Path) -> None:
    (layers,) = dissected(dissector, pcap([logged(BEGIN)]), "-o", "walsender.version:4")
    assert shown(layers["logicalrep"])["xid"] == ["731"]


def test_another_projects_protocol_has_a_dissector_too(tmp_path: Path) -> None:
    write_files(tmp_path)
    assert main(["lua", str(tmp_path / "weather.lua"), "--project", str(tmp_path / "weather")]) == 0
    question, reading = bytes.fromhex("51060000000700"), bytes.fromhex("52160000000700ddff5153c3a46e74697300010011006e")
    capture = pcap([("client", question), ("server", reading + reading[:9]), ("server", reading[9:])], port=9000)
    text = tshark(tmp_path / "weather.lua", capture, "-V", "-d", "tcp.port==9000,weather")
    assert text.count("temperature: -35") == 2
    assert text.count("place: Säntis") == 2
    assert text.count("direction: north ('n')") == 2
    assert text.count("Weather stations, Question") == 1
    assert "Malformed" not in text


def test_constants_end_lists_and_are_checked(tmp_path: Path) -> None:
    for path in (ROOT / "spec" / "copy_binary").iterdir():
        text = path.read_text().replace("protocol: ", "package: copies\nprotocol: ").replace("is: FormatFlags", "")
        (tmp_path / path.name).write_text(text)
    assert main(["lua", str(tmp_path / "copy.lua"), "--project", str(tmp_path)]) == 0
    rows = "0001 00000002 6162 0001 ffffffff"
    whole = bytes.fromhex(f"5047434f50590aff0d0a00 00000000 00000000 {rows} ffff")
    text, broken = (
        tshark(tmp_path / "copy.lua", pcap([("server", data)], port=9000), "-V", "-d", "tcp.port==9000,copy_binary")
        for data in (whole, b"p" + whole[1:])
    )
    assert text.count("column_count: 1") == 2
    assert "trailer: -1" in text
    assert "Malformed" not in text
    assert "signature: the value is not legal here at byte 0" in broken
