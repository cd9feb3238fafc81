"""A session fact that is added to the spec is one everywhere: no code names those that there are."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.codegen.model.generation import generate_from
from tests.conftest import ROOT

FACTS = """\
session:
  urgent:
    doc: The session was started with the option urgent.
  busy:
    doc: The message lies between Begin and Commit.
"""
# What the real spec gets: a fact that a decoder is told, and one that it keeps; and fields that depend on them.
CHANGES = {
    "protocol.yaml": [("session:\n", FACTS)],
    "begin.yaml": [("  opens: transaction\n", "  opens: transaction\n  sets: busy\n")],
    "commit.yaml": [
        ("  closes: transaction\n", "  closes: transaction\n  clears: busy\n"),
        ("    - flags: Int8(0)\n", "    - grade: Int16\n      when: busy\n      doc: A grade.\n    - flags: Int8(0)\n"),
    ],
    "origin.yaml": [
        ("    - name: String\n", "    - place: Int32\n      when: urgent\n      doc: Where.\n    - name: String\n")
    ],
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("facts")
    shutil.copytree(ROOT / "spec", folder / "spec")
    for name, pairs in CHANGES.items():
        path = folder / "spec" / "logicalrep" / name
        text = path.read_text(encoding="utf-8")
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
    with generate_from(folder / "spec", folder / "out") as generated:
        yield generated


def test_parse_is_told_the_facts_that_layouts_depend_on(package: ModuleType) -> None:
    assert list(inspect.signature(package.v1.parse).parameters) == [
        "data", "urgent", "busy", "streaming", "parallel", "encoding"
    ]  # fmt: skip
    assert list(inspect.signature(package.walsender.parse).parameters) == ["data", "sender"]
    origin = package.v1.Origin(origin_lsn=1, place=7, name="a")
    data = origin.build()
    assert package.v1.parse(data, urgent=True) == origin
    assert package.v1.Origin.struct.parse(data, urgent=True).place == 7
    with pytest.raises(ValueError, match="Origin: end at offset 10: expected the end of the message"):
        package.v1.parse(data)


def test_a_decoder_takes_the_facts_that_no_message_has(package: ModuleType) -> None:
    decoder = package.Decoder(1, urgent=True)
    begin = package.v1.Begin(final_lsn=1, commit_timestamp=0, xid=1)
    commit = package.v1.Commit(grade=3, commit_lsn=1, end_lsn=2, commit_timestamp=0)
    origin = package.v1.Origin(origin_lsn=1, place=7, name="a")
    for message, busy in ((begin, True), (origin, True), (commit, False)):
        assert decoder.decode(message.build()) == message
        assert decoder.busy is busy
    assert decoder.facts == {
        "urgent": True, "busy": False, "streaming": False, "two_phase": False, "parallel": False
    }  # fmt: skip


def test_an_unknown_argument_is_an_error_that_names_the_known_arguments(package: ModuleType) -> None:
    for name in ("urgnet", "busy"):
        with pytest.raises(TypeError) as error:
            package.Decoder(1, **{name: True})
        names = "version, urgent, two_phase, parallel, encoding"
        assert str(error.value) == f"Decoder has no argument {name!r}: its arguments are {names}"
    with pytest.raises(TypeError, match="unexpected keyword argument 'urgnet'"):
        package.v1.parse(b"", urgnet=True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'encoding'"):
        package.walsender.parse(b"", encoding="utf-8")


def test_a_columnar_session_has_all_of_them(package: ModuleType) -> None:
    from logicalrep_protocol.columnar import Session

    session = Session(version=1, urgent=True)  # type: ignore[call-arg]
    assert (session.urgent, session.busy) == (True, False)  # type: ignore[attr-defined]
    with pytest.raises(TypeError) as error:
        Session(version=1, urgnet=True)  # type: ignore[call-arg]
    names = "version, encoding, urgent, busy, streaming, two_phase, parallel"
    assert str(error.value) == f"Session has no argument 'urgnet': its arguments are {names}"
