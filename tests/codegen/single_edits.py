"""Every single edit of a row in the YAML: swapped, removed, renamed, of another type, with or without a modifier.

Edits are of the text of a file, and not all of them load. `loadable` puts edits of different files together, so that many
are tested with one spec.
"""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from codegen.emit.columns import walks_of
from codegen.model.model import Protocol
from codegen.model.places import SpecError
from codegen.model.reader import load
from codegen.model.versions import views
from tests.conftest import ROOT

SPEC = ROOT / "spec"
_ROW = re.compile(r"^(?P<indent> +)- (?P<name>\w+): (?P<type>\S.*)\n(?:(?P=indent) +.*\n)*", re.MULTILINE)
_MODIFIER = re.compile(
    r"^(?P<indent> +)(?!doc|note|page note| )(?P<key>[a-z ]+): (?:\S.*\n|\n(?: {8,}.*\n)+)", re.MULTILINE
)
_ENTRY = re.compile(r"(?<=[{\s])(?P<key>\w+): (?P<name>[a-z]\w*)")
_ADDED = {
    "Int8": ("boolean: true", "nonzero: true", "is: CopyFormat"),
    "Int16": ("is: Count", "is: FormatCode"),
    "Int32": ("measures: message", "nonzero: true", "is: Oid", "is: TransactionId", "is: Epoch"),
    "Int64": ("nonzero: true", "is: XLogRecPtr", "is: TimestampTz", "is: FullTransactionId"),
    "Byte1": ("boolean: true", "optional: true"),
    "Byten": ("may be null: true",),
}
"""Modifiers that a row may get, by the beginning of its type."""


@dataclass(frozen=True)
class SingleEdit:
    """A file of the spec with one edit."""

    file: str
    """The path below the spec's folder."""
    what: str
    """The row and the edit."""
    kind: str
    text: str
    """The whole file with the edit."""
    owner: str
    """The message or part of the row; the type in types.yaml."""

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


def single_edits(file: str, spec: Path = SPEC) -> Iterator[SingleEdit]:
    """Yield the edits of each row of a file, and of each type of types.yaml."""
    text = (spec / file).read_text("utf-8")
    rows = list(_ROW.finditer(text))
    for row in rows:
        is_first = text[: row.start()].endswith("fields:\n")
        for kind, edited in _edits_of_row(row):
            # A message has a row in each of its versions.
            if edited != row[0] and not (is_first and kind == "with since"):
                new = text[: row.start()] + edited + text[row.end() :]
                if kind == "renamed":
                    new = re.sub(rf"(?<=: ){row['name']}$", f"{row['name']}_renamed", new, flags=re.MULTILINE)
                yield _edit(file, text, row, kind, new, edited)
    for first, second in pairwise(rows):
        if first.end() == second.start() and first["indent"] == second["indent"]:
            new = text[: first.start()] + second[0] + first[0] + text[second.end() :]
            yield _edit(file, text, first, "swapped", new, f"{second['name']} before {first['name']}")
    if file == "types.yaml":
        yield from _edits_of_types(file, text)


def _edit(file: str, text: str, row: re.Match[str], kind: str, new: str, shown: str) -> SingleEdit:
    owner = re.findall(r"^(\w[\w ]*):|^ {4}(\w+):\n {6}doc:", text[: row.start()], re.MULTILINE)[-1]
    layout = next(filter(None, owner))
    return SingleEdit(file, f"{layout}.{row['name']}: {kind}: {' '.join(shown.split())}", kind, new, layout)


def _edits_of_row(row: re.Match[str]) -> Iterator[tuple[str, str]]:
    text, printed = row[0], row["type"]
    yield "removed", ""
    yield "renamed", text.replace(f"- {row['name']}:", f"- {row['name']}_renamed:", 1)
    for other in _other_types(printed):
        yield "retyped", text.replace(f": {printed}\n", f": {other}\n", 1)
    for modifier in _MODIFIER.finditer(text):
        if len(modifier["indent"]) != len(row["indent"]) + 2:
            continue
        key = modifier["key"]
        yield f"without {key}", text.replace(modifier[0], "", 1)
        entries = list(_ENTRY.finditer(modifier[0])) if key in ("values", "bits") else []
        for entry in entries:
            unused = "128" if key == "bits" else "z"
            yield f"with other {key}", text.replace(entry[0], f"{unused}: {entry['name']}", 1)
        for first, second in pairwise(entries):
            swapped = text.replace(first[0], f"{first['key']}: -", 1)
            swapped = swapped.replace(second[0], f"{second['key']}: {first['name']}", 1)
            yield f"{key} swapped", swapped.replace(f"{first['key']}: -", f"{first['key']}: {second['name']}", 1)
    base = re.match(r"Int\d+|\w+", printed)
    for modifier_text in (*_ADDED.get(base[0] if base else "", ()), "since: 2"):
        key, _, value = modifier_text.partition(": ")
        if f"{key}: {value}\n" in text or row["name"] == "tag":
            continue
        present = re.search(rf"^( +){key}: .*\n", text, re.MULTILINE)
        line = f"{row['indent']}  {key}: {value}\n"
        if present:
            yield f"another {key}", text.replace(present[0], line, 1)
        else:
            head, _, rest = text.partition("\n")
            yield f"with {key}", f"{head}\n{line}{rest}"


def _other_types(printed: str) -> Iterator[str]:
    for old, new in (
        ("Int8", "Int16"), ("Int16", "Int32"), ("Int32", "Int16"), ("Int32", "Int64"), ("Int64", "Int32"),
        ("XLogRecPtr", "TimestampTz"), ("TimestampTz", "XLogRecPtr"), ("TransactionId", "Oid"),
        ("Oid", "TransactionId"), ("Byten", "String"), ("Byten", "Byte4"), ("Byte4", "Byte5"), ("String", "Int32"),
        ("String", "Byte4"), ("Byte4", "Int32"),
    ):  # fmt: skip
        if old in printed:
            yield re.sub(rf"{old}\b", new, printed)
    if " (" in printed:
        yield printed.partition(" (")[0]
    if constant := re.fullmatch(r"Int\d+\((\d+)\)", printed):
        yield printed.replace(f"({constant[1]})", f"({int(constant[1]) + 1})")
        yield printed.partition("(")[0]
    for character in re.findall(r"Byte1\('(.)'\)", printed):
        yield printed.replace(f"'{character}'", "'z'", 1)
    if letter := re.search(r"\[(\w)\]", printed):
        yield printed.replace(letter[0], "[Z]")


def _edits_of_types(file: str, text: str) -> Iterator[SingleEdit]:
    for match in re.finditer(r"^(\w+):\n(?:  .*\n)+", text, re.MULTILINE):
        body = match[0]
        swapped_sign = re.sub(r"signed: (\w+)", lambda sign: f"signed: {str(sign[1] == 'false').lower()}", body)
        swapped_values = body.replace("{0: text, 1: binary}", "{0: binary, 1: text}")
        for kind, new in (("other sign", swapped_sign), ("values swapped", swapped_values)):
            if new != body:
                edited = text[: match.start()] + new + text[match.end() :]
                yield SingleEdit(file, f"{match[1]}: {kind}", kind, edited, match[1])


@dataclass(frozen=True)
class Batch:
    """A spec with edits of different files that loads."""

    edits: list[SingleEdit]
    folder: Path
    protocols: tuple[Protocol, ...]


def loadable(files: Iterable[str], folder: Path, without: str = "pages") -> Iterator[Batch]:
    """Yield specs that have, together, every edit that the generator accepts; an edit is alone in its file.

    A spec's folder is overwritten for the next one. It lacks a folder without which the files load too.
    """
    queues = {file: list(single_edits(file)) for file in files}
    shutil.copytree(SPEC, folder, ignore=shutil.ignore_patterns("pages", without))
    while any(queues.values()):
        batch = {file: queue.pop() for file, queue in queues.items() if queue}
        while batch:
            for file in queues:
                (folder / file).write_text(batch[file].text if file in batch else _original(file), "utf-8")
            try:
                protocols = load(folder)
                walks_of(views(next(protocol for protocol in protocols if protocol.has_decoder)))
            except SpecError as error:
                places = {str(finding.place.path) for finding in error.findings}
                refused = [file for file in batch if any(path.endswith(file) for path in places)]
                for file in refused or list(batch)[:1]:
                    del batch[file]
                continue
            yield Batch(list(batch.values()), folder, protocols)
            break


def alone(edit: SingleEdit, batch: Batch) -> Batch:
    """Return a spec with one edit of a batch, written in place of the batch."""
    for other in batch.edits:
        (batch.folder / other.file).write_text(edit.text if other is edit else _original(other.file), "utf-8")
    return Batch([edit], batch.folder, load(batch.folder))


def _original(file: str) -> str:
    return (SPEC / file).read_text("utf-8")


def counted(edits: Iterable[SingleEdit]) -> dict[str, int]:
    """Return the number of edits of each kind."""
    counts: dict[str, int] = defaultdict(int)
    for edit in edits:
        counts[edit.kind] += 1
    return dict(sorted(counts.items()))
