"""The descriptions for Kaitai Struct: readers in other languages read what ours read, with the same values."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codegen.__main__ import main
from codegen.model.reader import load, load_project
from codegen.model.versions import view, views
from codegen.vectors.captured import messages_of
from codegen.vectors.codec import Reader, awaited
from codegen.vectors.conversations import CONVERSATIONS, connections
from tests.codegen.kaitai.readers import (
    NEEDS_NODE,
    Answer,
    Sent,
    compile_all,
    expected,
    node,
    of_vectors,
    read_in_javascript,
    read_in_python,
)
from tests.codegen.weather import write_files
from tests.conftest import ROOT
from tests.documents import example
from tests.protocol.captured import COLLECTION, selected

pytestmark = NEEDS_NODE

PROTOCOLS = {protocol.name: protocol for protocol in load(ROOT / "spec")}


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the classes of each language."""
    path = tmp_path_factory.mktemp("kaitai")
    assert main(["ksy", str(path / "ksy")]) == 0
    compile_all(path / "ksy", path, "python", "javascript")
    return path


def of_captures(paths: list[Path]) -> Iterator[Sent]:
    protocol = PROTOCOLS["logicalrep"]
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            header = json.loads(next(lines))
            if header.get("format") == "pgoutput-capture/1" and header["client_encoding"] == "UTF8":
                for _, data, shown, facts in messages_of(protocol, views(protocol), header, lines):
                    message, fields = Reader(shown, data, facts).message()
                    yield Sent(shown, "server", facts, data, message, fields)


def of_conversations() -> Iterator[Sent]:
    """Recorded messages of clients and servers. CopyData is not read further."""
    protocol = PROTOCOLS["pgwire"]
    for connection in connections(protocol, CONVERSATIONS):
        facts: dict[str, Any] = awaited(view(protocol, 1), None) | {"expected": "startup"}
        for sent in connection.messages:
            yield Sent(sent.view, sent.sender, facts, sent.data, sent.message, sent.fields)
            facts = sent.state


def differences(messages: list[Sent], classes: Path) -> Iterator[tuple[Sent, Answer, Answer]]:
    """Yield what is read otherwise than by us in a language: the message, ours, theirs."""
    for sent, answer in zip(messages, read_in_python(classes / "python", messages), strict=True):
        if answer != expected(sent):
            yield sent, expected(sent), answer
    for sent, answer in zip(messages, read_in_javascript(classes / "javascript", messages), strict=True):
        if answer != expected(sent):
            yield sent, expected(sent), answer


def test_every_vector_is_read_with_our_values(classes: Path) -> None:
    messages = [sent for sent in of_vectors(PROTOCOLS.values()) if sent.fields is not None]
    assert next(differences(messages, classes), None) is None
    assert len(messages) > 700


def test_recorded_messages_are_read_with_our_values(classes: Path) -> None:
    paths = [path for path in selected() if path.parts[-3] in ("pg10", "pg15-high", "pg18")]
    messages = [*of_captures(paths), *of_conversations()]
    assert next(differences(messages, classes), None) is None
    assert {sent.sender for sent in messages} == {"server", "client"}
    assert len(messages) > 1000


@pytest.mark.thorough
def test_all_captures_are_read_with_our_values(classes: Path) -> None:
    paths = sorted(COLLECTION.rglob("*.jsonl.gz"))
    messages = list(of_captures(paths))
    assert next(differences(messages, classes), None) is None
    assert len(messages) > 50_000


def test_what_vectors_refuse_is_refused(classes: Path) -> None:
    messages = [sent for sent in of_vectors(PROTOCOLS.values()) if sent.fields is None]
    for read, folder in ((read_in_python, "python"), (read_in_javascript, "javascript")):
        accepted = [
            sent
            for sent, answer in zip(messages, read(classes / folder, messages), strict=True)
            if "refused" not in answer
        ]
        assert accepted == []
    assert len(messages) > 500


def test_another_projects_protocol_has_readers_too(tmp_path: Path) -> None:
    write_files(tmp_path)
    assert main(["ksy", str(tmp_path / "ksy"), "--project", str(tmp_path / "weather")]) == 0
    compile_all(tmp_path / "ksy", tmp_path, "python")
    messages = [sent for sent in of_vectors([load_project(tmp_path / "weather")]) if sent.fields is not None]
    read = read_in_python(tmp_path / "python", messages)
    assert list(read) == list(map(expected, messages))


def test_the_page_reads_a_message_in_each_language(classes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes.fromhex("4200000016b374d8480000000000000000000002db")
    monkeypatch.syspath_prepend(str(classes / "python"))
    names: dict[str, Any] = {}
    exec(example("docs/reference/other-languages.md", "from kaitaistruct"), names)
    assert names["read"](data, False).message.xid == 731
    program = example("docs/reference/other-languages.md", 'require("./LogicalrepV4")')
    bytes_of = f"Uint8Array.from(Buffer.from('{data.hex()}', 'hex')).buffer"
    (classes / "javascript" / "page.cjs").write_text(f"{program}\nconsole.log(read({bytes_of}, false).message.xid);")
    assert node(classes / "javascript" / "page.cjs") == "731\n"


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["ksy", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err == f"{tmp_path / 'file'}: File exists\n"


@pytest.mark.thorough
def test_the_descriptions_compile_for_the_other_languages(classes: Path) -> None:
    languages = ("cpp_stl", "csharp", "go", "java", "lua", "perl", "php", "ruby")
    compile_all(classes / "ksy", classes, *languages)
    files = {language: sum(path.is_file() for path in (classes / language).rglob("*")) for language in languages}
    count = len([*(classes / "ksy").iterdir()])
    assert files == dict.fromkeys(languages, count) | {"cpp_stl": 2 * count}  # C++ has headers too.
