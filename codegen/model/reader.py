"""spec/ as YAML -> model.Protocol, or SpecError with all mistakes.

Reading and checking are separate: this file and `layout_reader.py` convert files to the model and check each key by
itself; `checks.py` checks consistency.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from codegen.model import checks
from codegen.model.layout_reader import LayoutReader
from codegen.model.layouts import NamedType
from codegen.model.model import Protocol, SessionFact, Version
from codegen.model.nodes import Entries, Findings, Keys, Node, named_entries, read
from codegen.model.notation import INT_WIDTHS
from codegen.model.places import Place, SpecError

PROTOCOL_FILE = "protocol.yaml"
TYPES_FILE = "types.yaml"
ACCEPTED_FILE = "accepted-changes.yaml"
"""The findings of `python -m codegen diff` that are accepted; no file of messages can have the name."""

_PROTOCOL_KEYS = [
    "protocol", "package", "byte order", "types", "software", "title", "page", "anchor", "doc", "note",
    "checked against", "versions", "session",
    "outside", "encodings", "blocks", "callbacks", "files",
]  # fmt: skip
_TYPE_KEYS = ["base", "signed", "python", "made by", "arrow", "epoch", "values", "doc"]
_ARROW_TYPES = ["timestamp[us, UTC]"]
_BYTE_ORDERS = ["big", "little"]
_USED = ["construct", "logicalrep_runtime"]
"""The packages, other than Python's, that generated packages import."""
_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+", re.ASCII)

_MODULE = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)


def load(spec: Path) -> tuple[Protocol, ...]:
    """Load the protocols of a spec folder, sorted by name. Raises SpecError for any mistake."""
    findings = Findings()
    root = read(spec / TYPES_FILE, findings)
    types = _types(root.entries if root else {}, findings)
    folders = sorted(path.parent for path in spec.glob(f"*/{PROTOCOL_FILE}"))
    if not folders:
        findings.add(Place(spec / f"*/{PROTOCOL_FILE}", 1, 1), "no such file; a spec has at least one protocol")
    protocols = tuple(
        protocol for folder in folders if (protocol := _load_protocol(folder, types, findings)) is not None
    )
    checks.check_together(protocols, findings)
    if findings:
        raise SpecError(findings)
    return protocols


def load_project(folder: Path) -> Protocol:
    """Load the protocol of another project, whose types are in its protocol.yaml. Raises SpecError for any mistake."""
    findings = Findings()
    protocol = _load_protocol(folder, None, findings)
    if protocol is not None:
        checks.check_together((protocol,), findings)
    if protocol is None or findings:
        raise SpecError(findings)
    return protocol


def load_either(spec: Path, project: Path | None) -> tuple[Protocol, ...]:
    """Load the protocol of another project if there is one, or else the spec. Raises SpecError for any mistake."""
    return load(spec) if project is None else (load_project(project),)


def _types(entries: Mapping[str, tuple[Place, Node]], findings: Findings) -> Mapping[str, NamedType]:
    types: dict[str, NamedType] = {}
    for name, (place, node) in entries.items():
        if not isinstance(node, Entries):
            findings.add(place, f"type {name!r} must be a mapping")
            continue
        keys = Keys(node, f"type {name!r}", _TYPE_KEYS, findings)
        base = keys.name("base", INT_WIDTHS)
        signed = keys.truth("signed")
        python, maker = _path(keys, "python", findings), _path(keys, "made by", findings)
        arrow = keys.name("arrow", _ARROW_TYPES)
        for key, value in (("base", base), ("signed", signed), ("python", python)):
            if value is None and key not in keys:
                findings.add(place, f"type {name!r} has no {key!r}")
        if arrow is not None and base not in (None, "Int64"):
            findings.add(keys.place_of("base"), f"type {name!r} is {arrow} in Arrow, so its base must be Int64")
        types[name] = NamedType(
            name,
            base or "",
            bool(signed),
            python or "int",
            maker or "",
            arrow or "",
            _epoch(keys, findings),
            {
                int(number): text
                for number, text in keys.texts("values", "a whole number and its name", r"\d{1,9}").items()
            },
            keys.prose("doc", required=True),
            place,
        )
    return MappingProxyType(types)


def _path(keys: Keys, key: str, findings: Findings) -> str | None:
    """Return the dotted path of a class or function, or `int`; None if absent or invalid."""
    path = keys.text(key)
    is_enumeration = key == "python" and "values" in keys and path.isidentifier()
    if path and path != "int" and not is_enumeration and not _PATH.fullmatch(path):
        findings.add(keys.place_of(key), f"{key!r} is {path!r}; a dotted path is expected, as of a class, or int")
        return None
    return path or None


def _epoch(keys: Keys, findings: Findings) -> int:
    text = keys.text("epoch")
    if text and not re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
        findings.add(keys.place_of("epoch"), f"'epoch' is {text!r}; a whole number is expected")
        return 0
    return int(text or 0)


def _load_protocol(folder: Path, types: Mapping[str, NamedType] | None, findings: Findings) -> Protocol | None:
    """Load a protocol with the shared types, or with its own types (`types` is None) in another project."""
    root = read(folder / PROTOCOL_FILE, findings)
    if root is None:
        return None
    keys = Keys(root, "the protocol", _PROTOCOL_KEYS, findings)
    is_alone = types is None
    if types is None:
        types = _types(keys.mapping("types"), findings)
        if "callbacks" in keys:
            findings.add(keys.place_of("callbacks"), "a protocol of another project has no 'callbacks'")
    elif "types" in keys:
        findings.add(keys.place_of("types"), f"types are in {TYPES_FILE}, for all protocols")
    package = keys.text("package", required=is_alone)
    if package and not _MODULE.fullmatch(package):
        findings.add(
            keys.place_of("package"), f"{package!r} is not a valid name of a package; lower-case letters, digits and _"
        )
    elif is_alone and package in {*sys.stdlib_module_names, *_USED}:
        findings.add(keys.place_of("package"), f"{package!r} is the name of a package that the generated one needs")
    versions = _versions(keys, findings)
    session = tuple(
        SessionFact(
            name,
            entry.number("since") or 1,
            entry.prose("doc", required=True),
            entry.place,
            entry.texts("values", "a lower-case word and a text", _MODULE.pattern),
        )
        for name, entry in named_entries(keys, "session", "session fact", ["since", "doc", "values"], findings)
    )
    blocks = keys.texts("blocks", "the name of a block and a text")
    callbacks = keys.names("callbacks")
    reader = LayoutReader(
        findings,
        session=tuple(
            name for fact in session for name in (fact.name, *(f"{fact.name} = {value}" for value in fact.values))
        ),
        blocks=tuple(blocks),
        callbacks=callbacks,
        types=tuple(types),
        has_anchors="anchor" in keys,
    )
    files = keys.names("files", required=True)
    for file in files:
        if not _MODULE.fullmatch(file):
            findings.add(keys.place_of("files"), f"{file!r} is not a valid file name; lower-case letters, digits and _")
            continue
        document = read(folder / f"{file}.yaml", findings)
        reader.complete = reader.complete and document is not None
        for title, (place, node) in (document.entries if document else {}).items():
            reader.read(title, place, node)
    for path in sorted(folder.glob("*.yaml")):
        if path.name not in (PROTOCOL_FILE, ACCEPTED_FILE) and path.stem not in files:
            findings.add(Place(path, 1, 1), f"is not listed under 'files' in {folder / PROTOCOL_FILE}")
    protocol = Protocol(
        name=keys.text("protocol", required=True),
        package=package,
        byte_order="little" if keys.name("byte order", _BYTE_ORDERS) == "little" else "big",
        software=keys.text("software"),
        title=keys.prose("title", required=True),
        page=keys.text("page", required="anchor" in keys),
        anchor=keys.text("anchor"),
        doc=keys.prose("doc", required=True),
        note=keys.prose("note"),
        checked_against=keys.names("checked against"),
        versions=versions,
        session=session,
        outside=keys.text("outside"),
        blocks=blocks,
        callbacks=callbacks,
        encodings=_encodings(keys, findings),
        types=types,
        messages=tuple(reader.messages),
        parts=tuple(reader.parts),
        place=keys.place,
        is_alone=is_alone,
    )
    checks.check(protocol, findings, complete=reader.complete, damaged=reader.damaged)
    return protocol


def _encodings(keys: Keys, findings: Findings) -> dict[str, str]:
    encodings = keys.texts("encodings", "the name of an encoding and of a codec")
    for name, codec in encodings.items():
        try:
            "".encode(codec)
        except (LookupError, ValueError):
            findings.add(keys.place_of("encodings"), f"'encodings' has {name!r}, whose codec {codec!r} Python lacks")
    return encodings


def _versions(keys: Keys, findings: Findings) -> tuple[Version, ...]:
    versions: list[Version] = []
    entries = named_entries(keys, "versions", "version", ["name", "module", "server", "doc"], findings, required=True)
    for expected, (name, entry) in enumerate(entries, start=1):
        if name != str(expected):
            findings.add(entry.place, f"version {name!r} is out of order; {expected} is expected here")
        module = entry.text("module", required=True)
        if module and not _MODULE.fullmatch(module):
            findings.add(
                entry.place_of("module"), f"{module!r} is not a valid module name; lower-case letters, digits and _"
            )
        versions.append(
            Version(
                expected,
                module,
                entry.number("server", required="software" in keys) or 0,
                entry.prose("doc", required=True),
                entry.place,
                entry.text("name"),
            )
        )
    if not entries and "versions" in keys:
        findings.add(keys.place_of("versions"), "a protocol has at least one version")
    return tuple(versions)
