"""Each single edit of a row of the spec, and of single tokens of generated modules, is seen by a test.

An edit survives if neither the comparison with the documentation's pages nor the comparison of the generated package with
the transcription in `tests/protocol/documented.py` differs.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from codegen.model.layouts import Message
from codegen.model.model import Protocol
from codegen.model.names import class_name
from codegen.model.places import SpecError
from codegen.model.reader import load
from codegen.model.versions import views
from codegen.pagecheck import compare
from codegen.pagecheck.page import Page
from codegen.pagecheck.prose import compare_prose, quotes
from codegen.pagecheck.reading import read_page
from tests.codegen.model.generation import generate_from, imported_from
from tests.codegen.single_edits import SPEC, Batch, SingleEdit, alone, loadable
from tests.codegen.vector_reading import misread, module_path
from tests.conftest import ROOT
from tests.protocol.documented_differences import differences

pytestmark = pytest.mark.thorough

FILES = {
    folder: sorted(
        path.relative_to(SPEC).as_posix() for path in (SPEC / folder).glob("*.yaml") if path.name != "protocol.yaml"
    )
    for folder in ("basebackup", "copy_binary", "logicalrep", "pgwire", "walsender")
}
PAGES = {
    "basebackup": ["postgresql-15-streaming-replication-protocol.html"],
    "copy_binary": ["postgresql-15-copy.html"],
    "logicalrep": ["postgresql-18-logicalrep-message-formats.html"],
    "pgwire": ["postgresql-18-message-formats.html"],
    "walsender": ["postgresql-15-streaming-replication-protocol.html", "postgresql-19-primary-status.sgml"],
}
WITHOUT_EFFECT = re.compile(r"with since: .*since: (?P<since>\d)")
"""A row is never older than its message: `since` of the message's own version changes nothing."""
OF_DECODERS = {"without looks up", "without holds text"}
"""Modifiers with an effect on `Decoder` and columns alone; tests of both hold them."""
ON_PAGES = {"without printed under", "without printed apart", "without listed in"}
"""Modifiers that only the comparison with pages reads."""


@cache
def _pages(protocol: str) -> list[Page]:
    return [read_page(SPEC / "pages" / name, quotes=quotes(load(SPEC))) for name in PAGES[protocol]]


def _files_on_pages(protocols: tuple[Protocol, ...], folder: str) -> set[str]:
    """Return the files that differ from a page."""
    (protocol,) = (item for item in protocols if item.name == folder)
    return {
        f"{folder}/{difference.spec.path.name}"
        for page in _pages(folder)
        for difference in (
            compare_prose(page, protocol)
            if folder == "copy_binary"
            else compare(page, protocol, len(protocol.versions))
        )
    }


def _files_in_package(batch: Batch, folder: str, out: Path) -> set[str]:
    """Return the files whose classes differ from the transcription."""
    (protocol,) = (item for item in batch.protocols if item.name == folder)
    names = {
        class_name(layout.name): f"{folder}/{layout.place.path.name}"
        for layout in [*protocol.layouts, *protocol.alternatives]
    }
    with generate_from(batch.folder, out) as package:
        classes = {
            re.sub(r"^((pgwire|basebackup)\.)?\w+\.", "", difference).partition(".")[0]
            for difference in differences(package, map(module_path, views(protocol)))
        }
    return {names[name] for name in classes if name in names}


def _files_seen(batch: Batch, folder: Path, protocol: str) -> set[str]:
    """Return the files that differ in the package. An edit that gives no package is seen by every test."""
    try:
        return _files_in_package(batch, protocol, folder)
    except (AssertionError, ImportError, LookupError, SpecError, SyntaxError, TypeError):
        if len(batch.edits) == 1:
            return {batch.edits[0].file}
        numbered = enumerate(batch.edits)
        return {
            file
            for number, edit in numbered
            for file in _files_seen(alone(edit, batch), folder / str(number), protocol)
        }


def _survivors(folder: str, work: Path) -> Iterator[SingleEdit]:
    without = "pages" if folder == "pgwire" else "pgwire"  # It is half of the whole.
    for number, batch in enumerate(loadable(FILES[folder], work / "spec", without)):
        seen = _files_on_pages(batch.protocols, folder)
        if any(edit.file not in seen for edit in batch.edits):
            seen |= _files_seen(batch, work / f"out{number}", folder)
        yield from (edit for edit in batch.edits if edit.file not in seen and not _has_no_effect(edit, batch))


def _has_no_effect(edit: SingleEdit, batch: Batch) -> bool:
    if edit.kind in OF_DECODERS | ON_PAGES:
        return True
    layouts = [layout for protocol in batch.protocols for layout in protocol.layouts if layout.name == edit.owner]
    since = max((layout.since for layout in layouts if isinstance(layout, Message)), default=1)
    match = WITHOUT_EFFECT.search(edit.what)
    return match is not None and int(match["since"]) <= since


@pytest.mark.parametrize("folder", FILES)
def test_no_edit_of_a_row_survives(folder: str, tmp_path: Path) -> None:
    survivors = [str(edit) for edit in _survivors(folder, tmp_path)]
    sys.stdout.write("".join(f"{survivor}\n" for survivor in survivors))
    assert survivors == []


def test_no_edit_of_a_named_type_survives(tmp_path: Path) -> None:
    survivors = []
    for number, batch in enumerate(loadable(["types.yaml"], tmp_path / "spec")):
        with generate_from(batch.folder, tmp_path / f"out{number}") as package:
            survivors += [] if differences(package) else list(map(str, batch.edits))
    sys.stdout.write("".join(f"{survivor}\n" for survivor in survivors))
    assert survivors == []


# -- single tokens of generated modules --------------------------------------------------------------------------------

GENERATED = ROOT / "generated"
MODULES = sorted(
    path.relative_to(GENERATED).as_posix()
    for path in GENERATED.glob("logicalrep_protocol/**/*.py")
    if re.fullmatch(r"v\d(_\d)?|walsender|copy_binary", path.stem)
)
_CLASS = re.compile(r"^class (\w+):\n.*?(?=^class |\Z)", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'^ {8}"(\w+)"(?=\s)', re.MULTILINE)
TAG_TABLES = {
    "parsers": re.compile(r'(?<=^    ord\(")(?P<tag>\w)(?="\): (?P<name>\w+)\._parse,)', re.MULTILINE),
    "Structs": re.compile(r'(?<=b")(?P<tag>\w)(?=": (?P<name>\w+)\.struct,)', re.MULTILINE),
    "choices of Structs": re.compile(r'(?P<name>\w+)\.struct, first=b"(?P<tag>\w)(?=")'),
    "choices of parsers": re.compile(
        r"if data\[offset\] == 0x(?P<tag>\w\w)(?= and [^\n]*:\n +return (?P<name>\w+)\._parse)"
    ),
}
"""The tables of tags; an altered one gives every message an unused tag."""


def _write_altered(texts: dict[str, str], folder: Path) -> Path:
    shutil.copytree(GENERATED, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    return folder


def _path_of(module: str) -> str:
    return module.removeprefix("logicalrep_protocol/").removesuffix(".py").replace("/", ".")


def test_an_altered_field_name_of_a_struct_is_seen(tmp_path: Path) -> None:
    """In each round, each class has the name of one field altered: the first, the second, and so on."""
    texts = {name: (GENERATED / name).read_text("utf-8") for name in MODULES}
    fields = {
        (name, match[1]): [match.start() + field.start(1) for field in _FIELD.finditer(match[0])]
        for name, text in texts.items()
        for match in _CLASS.finditer(text)
    }
    for number in range(max(map(len, fields.values()))):
        altered, classes = dict(texts), set()
        for (name, class_), starts in sorted(fields.items(), key=lambda item: item[1], reverse=True):
            if number < len(starts):
                text, start = altered[name], starts[number]
                altered[name] = f"{text[:start]}altered_{text[start:]}"
                classes.add(f"{_path_of(name)}.{class_}")
        with imported_from(_write_altered(altered, tmp_path / str(number))) as package:
            rows = {row.rpartition(".")[0] for row in differences(package)}
        assert classes - rows == set()


@pytest.mark.parametrize("table", TAG_TABLES)
def test_an_altered_tag_is_seen(table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value of a row shows in the messages with rows; the native reader has no table in the modules."""
    monkeypatch.setattr("logicalrep_runtime.native.reader", lambda *arguments: None)
    protocols = load(SPEC)
    values = {alternative.name for protocol in protocols for alternative in protocol.alternatives}
    altered, names = {}, set()
    for name in MODULES:
        text = (GENERATED / name).read_text("utf-8")
        classes = {match["name"] for match in TAG_TABLES[table].finditer(text)}
        names |= {f"{_path_of(name)}.{'Insert' if class_ in values else class_}" for class_ in classes}
        altered[name] = TAG_TABLES[table].sub(_with_an_unused_tag, text)
    assert names
    with imported_from(_write_altered(altered, tmp_path / "out")) as package:
        seen = {name.partition(" ")[2] for name in misread(package, protocols)}
    assert names - seen == set()


def _with_an_unused_tag(match: re.Match[str]) -> str:
    start, end = (match.start("tag") - match.start(), match.end("tag") - match.start())
    return f"{match[0][:start]}{'~' if end - start == 1 else '7e'}{match[0][end:]}"
