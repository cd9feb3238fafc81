"""docs/how-to/another-protocol.md, followed to the letter; and the generator's own files, which know no protocol."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from codegen.emit.package import emit_project
from codegen.model.places import SpecError
from codegen.model.reader import load_project
from tests.codegen.pagecheck.pages import HTML, draw
from tests.codegen.weather import write_files
from tests.conftest import ROOT
from tests.documents import example

NOBODY = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.org"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_files(tmp_path)
    return tmp_path


def run(folder: Path, *arguments: str, path: list[Path]) -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path)), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-P", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_page_works(folder: Path) -> None:
    program, *arguments = example("docs/how-to/another-protocol.md", "codegen regen").split()
    assert program == "python"
    assert "wrote build/weather_protocol/v2.py" in run(folder, *arguments, path=[ROOT]).splitlines()
    assert run(folder, "-m", "codegen", "check", *arguments[3:], path=[ROOT]) == ""
    use = example("docs/how-to/another-protocol.md", "Session()")
    # The runtime alone: nothing else of ours is there.
    (folder / "runtime").mkdir()
    (folder / "runtime" / "logicalrep_runtime").symlink_to(ROOT / "src" / "logicalrep_runtime")
    without = "import sys\nfor name in ('logicalrep', 'logicalrep_protocol', 'codegen'): sys.modules[name] = None\n"
    output = run(folder, "-c", without + use, path=[folder / "build", folder, folder / "runtime"])
    assert output == example("docs/how-to/another-protocol.md", "52 16 00")


def test_the_page_compares_documents_and_reviews(folder: Path) -> None:
    drawn = draw(load_project(folder / "weather"), 2, HTML).replace(
        "The length.", "Length of message contents in bytes, including self."
    )
    (folder / "weather.html").write_text(drawn, "utf-8")
    printed = []
    for line in example("docs/how-to/another-protocol.md", "codegen vectors").splitlines():
        printed += run(folder, *line.split()[1:], path=[ROOT]).splitlines()
    assert printed[0] == "wrote 5 files to build/reference; open build/reference/index.html"
    assert printed[-4:] == [
        "wrote build/ksy/weather_v2_server.ksy",
        "wrote build/ksy/weather_v2_client.ksy",
        "wrote build/weather.lua",
        "weather.html: agrees with weather at version 2 (2 messages, 12 rows)",
    ]
    texts = "".join(path.read_text("utf-8") for path in (folder / "build/reference").iterdir())
    assert _OF_POSTGRESQL.findall(texts.replace("from logicalrep_runtime", "")) == []
    for arguments in (["init", "--quiet"], ["add", "weather"], [*NOBODY, "commit", "--quiet", "--message", "Weather"]):
        subprocess.run(["git", *arguments], cwd=folder, check=True)
    reading = folder / "weather" / "reading.yaml"
    reading.write_text(reading.read_text("utf-8").replace("humidity: Int8", "humidity: Int16"), "utf-8")
    command, _, output = example("docs/how-to/another-protocol.md", "codegen diff").removeprefix("$ ").partition("\n")
    diff = [*command.split()[1:], "--fail-on"]
    assert run(folder, *diff, "none", path=[ROOT]) == output
    accepted = example("docs/how-to/another-protocol.md", "accepted:")
    (folder / "weather" / "accepted-changes.yaml").write_text(accepted, "utf-8")
    first = run(folder, *diff, "api", path=[ROOT]).splitlines()[0]
    reason = "accepted until 2099-12-31: No station of version 2 has been sold."
    assert first == f"{output.splitlines()[0]} ({reason})"


AGREE = """
import random
from struct import pack, unpack
from logicalrep_runtime.errors import DecodeError
from logicalrep_runtime.layout_walk import walk
from units import Tenths
from weather_protocol import v1, v2
from weather_protocol.layouts import WEATHER
draw = random.Random(1)
for number in range(300):
    gusts = [(draw.randrange(-2**15, 2**15), draw.choice("nesw")) for _ in range(draw.randrange(4))]
    station, tenths, humidity = draw.randrange(2**15), draw.randrange(-400, 500), draw.randrange(256)
    body = pack("<hhB", station, tenths, humidity) + b"Pic du Midi\\0" + pack("<h", len(gusts))
    body += b"".join(pack("<hc", speed, direction.encode()) for speed, direction in gusts)
    data = b"R" + pack("<i", len(body) + 4) + body
    message = v2.parse(data)
    assert (message.station, message.temperature, message.humidity) == (station, tenths, humidity)
    assert type(message.temperature) is Tenths
    assert [(gust.speed, gust.direction) for gust in message.gusts] == gusts
    assert message.build() == data == v2.Reading.struct.build(message)
    assert v2.Reading.struct.parse(data) == message
    assert b"".join(step.data for step in walk(WEATHER, 2, data, facts={})) == data
    for wrong in (data[:-1], data + b"x", data[:4] + b"\\1" + data[5:]):
        try:
            v2.parse(wrong)
        except DecodeError:
            pass
        else:
            raise AssertionError(wrong)
"""


def test_readers_and_writers_of_the_low_byte_first_agree(folder: Path) -> None:
    for path, text in emit_project(load_project(folder / "weather")).items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    run(folder, "-c", AGREE, path=[folder, ROOT / "src"])


STORMS = {
    "protocol.yaml": """
protocol: storms
package: storms
title: Storms
doc: Messages about storms.
types:
  Number: {base: Int16, signed: false, python: units.Tenths, made by: units.Tenths, doc: A number.}
versions:
  1: {module: v1, doc: The only one.}
session:
  stormy: {doc: There is a storm.}
  loud: {doc: The station was told to say how loud it is.}
outside: in calm air
blocks:
  storm: From Storm to Calm.
files: [all]
""",
    "all.yaml": """
Station:
  doc: A station.
  place: outside
  describes: number
  described as: a station
  fields:
    - tag: Byte1('D')
    - number: Int16 (Number)
      doc: Its number.
Storm:
  doc: A storm begins.
  place: outside
  opens: storm
  sets: stormy
  fields:
    - tag: Byte1('S')
Calm:
  doc: A storm ends.
  place: storm
  closes: storm
  clears: stormy
  fields:
    - tag: Byte1('C')
Reading:
  doc: A reading.
  place: anywhere
  fields:
    - tag: Byte1('R')
    - station: Int16 (Number)
      looks up: Station
      doc: The station.
    - force: Int8
      when: stormy
      doc: The force of the storm.
    - noise: Int8
      when: loud
      doc: The noise.
""",
}
FOLLOW = """
from storms import Session, v1
session = Session(loud=True)
def refused(data):
    before = (session.block, session.facts.copy(), dict(session.described))
    try:
        session.decode(data, sender="server")
    except ValueError as error:
        assert (session.block, session.facts, session.described) == before
        print(error)
    else:
        raise AssertionError(data)
def taken(data):
    return session.decode(data, sender="server")
refused(b"R\\0\\7\\5")
taken(b"D\\0\\7")
assert taken(b"R\\0\\7\\5") == v1.Reading(station=7, force=None, noise=5)
refused(b"C")
taken(b"S")
assert session.facts == {"stormy": True, "loud": True} and session.block == "storm"
assert taken(b"R\\0\\7\\6\\5") == v1.Reading(station=7, force=6, noise=5)
refused(b"D\\0\\7")
refused(b"S")
taken(b"C")
assert session.facts == {"stormy": False, "loud": True} and session.block == "outside"
assert not hasattr(session, "receive")
try:
    Session(stormy=True)
except TypeError as error:
    print(error)
"""


def test_a_session_keeps_blocks_facts_and_what_is_described(folder: Path) -> None:
    (folder / "storms").mkdir()
    for name, text in STORMS.items():
        (folder / "storms" / name).write_text(text, "utf-8")
    for path, text in emit_project(load_project(folder / "storms")).items():
        (folder / "out" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "out" / path).write_text(text, "utf-8")
    assert run(folder, "-c", FOLLOW, path=[folder / "out", folder, ROOT / "src"]).splitlines() == [
        "Reading: station at offset 1: expected a station that a Station has described, found TENTHS 0.7 °C",
        "Calm: tag at offset 0: expected Calm inside a storm, found it in calm air",
        "Station: tag at offset 0: expected Station in calm air, found it inside a storm",
        "Storm: tag at offset 0: expected Storm in calm air, found it inside a storm",
        "Session has no argument 'stormy': its arguments are version, loud, encoding",
    ]


@pytest.mark.parametrize(
    ("file", "old", "new", "finding"),
    [
        ("protocol", "byte order: little", "byte order: middle", "'byte order' is 'middle'"),
        ("protocol", "package: weather_protocol\n", "", "the protocol has no 'package'"),
        ("protocol", "versions:", "callbacks: a\nversions:", "a protocol of another project has no 'callbacks'"),
        ("protocol", "weather_protocol", "../weather", "'../weather' is not a valid name of a package"),
        ("protocol", "weather_protocol", "struct", "'struct' is the name of a package that the generated one needs"),
        ("protocol", "base: Int16", "base: Int17", "'base' is 'Int17'"),
        ("question", "Int32\n", "Int32(8)\n", ".*Question.length is always 8, but the length of the message is 6"),
        ("reading", "Int32\n", "Int32(30)\n", ".*Reading.length is always 30, .* is not always the same"),
    ],
)
def test_mistakes_have_their_places(folder: Path, file: str, old: str, new: str, finding: str) -> None:
    path = folder / "weather" / f"{file}.yaml"
    path.write_text(path.read_text("utf-8").replace(old, new, 1), "utf-8")
    with pytest.raises(SpecError, match=rf"{file}.yaml:\d+:\d+: {finding}"):
        load_project(folder / "weather")


_OF_POSTGRESQL = re.compile(r"postgres|pgoutput|\bpg_|\bwal\b|walsender|\blsn|logicalrep(?!_runtime)|replication", re.I)


@pytest.mark.parametrize("path", sorted((ROOT / "codegen/emit/templates").iterdir()), ids=lambda path: path.name)
def test_no_template_knows_a_protocol(path: Path) -> None:
    assert _OF_POSTGRESQL.findall(path.read_text("utf-8")) == []
