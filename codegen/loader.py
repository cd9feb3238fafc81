"""spec/ as YAML -> model.Protocol, or SpecError with every mistake there is.

Reading and checking are apart: this file turns files into the model's data and checks each key by itself;
`checks.py` then looks at what must fit together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from codegen import checks
from codegen.model import (
    OUTSIDE,
    Alternative,
    Field,
    Message,
    NamedType,
    Part,
    Place,
    Protocol,
    SessionFact,
    SpecError,
    Version,
)
from codegen.notation import INT_WIDTHS, NotationError, parse_type
from codegen.yamlnodes import Entries, Findings, Items, Keys, Node, Text, read

PROTOCOL_FILE = "protocol.yaml"
TYPES_FILE = "types.yaml"

_PROTOCOL_KEYS = ["protocol", "title", "page", "anchor", "doc", "versions", "session", "blocks", "callbacks", "files"]
_MESSAGE_KEYS = [
    "ref", "since", "also when", "from", "doc", "note", "callback", "place", "opens", "closes", "sets", "clears",
    "transaction", "fields",
]  # fmt: skip
_PART_KEYS = ["part of", "ref", "doc", "note", "fields", "one of"]
_MODIFIERS = [
    "since", "when", "optional", "size", "repeat", "is", "nonzero", "boolean", "bits", "values", "doc", "note",
]  # fmt: skip
_TRANSACTION_EFFECTS = [
    "begins", "streams", "commits", "prepares", "aborts", "commits prepared", "rolls back prepared",
]  # fmt: skip
_SENDERS = ["server", "client"]
_PYTHON_TYPES = ["Lsn", "TimestampTz", "TransactionId", "Oid", "int"]

_ATTRIBUTE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)
_TITLE = re.compile(r"[A-Z][A-Za-z]*( [A-Za-z]+)*", re.ASCII)
_CLASS = re.compile(r"[A-Z][A-Za-z]*", re.ASCII)
_MODULE = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)


def load(spec: Path) -> tuple[Protocol, ...]:
    """Every protocol under a spec folder, in the order of their names; SpecError if anything is wrong."""
    findings = Findings()
    types = _load_types(spec / TYPES_FILE, findings)
    folders = sorted(path.parent for path in spec.glob(f"*/{PROTOCOL_FILE}"))
    if not folders:
        findings.add(Place(spec / f"*/{PROTOCOL_FILE}", 1), "no such file; a spec has at least one protocol")
    protocols = tuple(
        protocol for folder in folders if (protocol := _load_protocol(folder, types, findings)) is not None
    )
    if not findings:
        checks.check(protocols, findings)
    if findings:
        raise SpecError(findings)
    return protocols


def _load_types(path: Path, findings: Findings) -> Mapping[str, NamedType]:
    types: dict[str, NamedType] = {}
    root = read(path, findings)
    for name, (place, node) in (root.entries if root else {}).items():
        if not isinstance(node, Entries):
            findings.add(place, f"type {name!r} must be a mapping")
            continue
        keys = Keys(node, f"type {name!r}", ["base", "signed", "python", "doc"], findings)
        base = keys.name("base", INT_WIDTHS)
        signed = keys.truth("signed")
        python = keys.name("python", _PYTHON_TYPES)
        for key, value in (("base", base), ("signed", signed), ("python", python)):
            if value is None and key not in keys:
                findings.add(place, f"type {name!r} has no {key!r}")
        types[name] = NamedType(
            name, base or "Int32", bool(signed), python or "int", keys.text("doc", required=True), place
        )
    return MappingProxyType(types)


def _load_protocol(folder: Path, types: Mapping[str, NamedType], findings: Findings) -> Protocol | None:
    root = read(folder / PROTOCOL_FILE, findings)
    if root is None:
        return None
    keys = Keys(root, "the protocol", _PROTOCOL_KEYS, findings)
    versions = _versions(keys, findings)
    session = tuple(
        SessionFact(name, entry.number("since") or 1, entry.text("doc", required=True), entry.place)
        for name, entry in _named(keys, "session", "session fact", ["since", "doc"], findings)
    )
    blocks: dict[str, str] = {}
    for name, (place, node) in keys.mapping("blocks").items():
        if isinstance(node, Text):
            blocks[name] = node.value
        else:
            findings.add(place, f"block {name!r} must be a text")
    callbacks = keys.names("callbacks")
    names = _Names(tuple(fact.name for fact in session), tuple(blocks), callbacks, tuple(types))
    messages: list[Message] = []
    parts: list[Part] = []
    files = keys.names("files", required=True)
    for file in files:
        if not _MODULE.fullmatch(file):
            findings.add(keys.place_of("files"), f"{file!r} is no file name; lower-case letters, digits and _")
            continue
        document = read(folder / f"{file}.yaml", findings)
        for title, (place, node) in (document.entries if document else {}).items():
            _load_layout(title, place, node, names, findings, messages, parts)
    for path in sorted(folder.glob("*.yaml")):
        if path.name != PROTOCOL_FILE and path.stem not in files:
            findings.add(Place(path, 1), f"is not listed under 'files' in {folder / PROTOCOL_FILE}")
    return Protocol(
        name=keys.text("protocol", required=True),
        title=keys.text("title", required=True),
        page=keys.text("page", required=True),
        anchor=keys.text("anchor"),
        doc=keys.text("doc", required=True),
        versions=versions,
        session=session,
        blocks=MappingProxyType(blocks),
        callbacks=callbacks,
        types=types,
        messages=tuple(messages),
        parts=tuple(parts),
        place=keys.place,
    )


class _Names:
    """The names that layouts may refer to."""

    def __init__(
        self, session: tuple[str, ...], blocks: tuple[str, ...], callbacks: tuple[str, ...], types: tuple[str, ...]
    ) -> None:
        self.session = session
        self.blocks = blocks
        self.places = (OUTSIDE, *blocks)
        self.callbacks = callbacks
        self.types = types


def _named(
    keys: Keys, key: str, what: str, allowed: list[str], findings: Findings, *, required: bool = False
) -> list[tuple[str, Keys]]:
    """The entries of a mapping of mappings."""
    entries = []
    for name, (place, node) in keys.mapping(key, required=required).items():
        if isinstance(node, Entries):
            entries.append((name, Keys(node, f"{what} {name!r}", allowed, findings)))
        else:
            findings.add(place, f"{what} {name!r} must be a mapping")
    return entries


def _versions(keys: Keys, findings: Findings) -> tuple[Version, ...]:
    versions: list[Version] = []
    entries = _named(keys, "versions", "version", ["module", "server", "doc"], findings, required=True)
    for expected, (name, entry) in enumerate(entries, start=1):
        if name != str(expected):
            findings.add(entry.place, f"version {name!r} is out of order; {expected} is expected here")
        module = entry.text("module", required=True)
        if module and not _MODULE.fullmatch(module):
            findings.add(entry.place_of("module"), f"{module!r} is no module name; lower-case letters, digits and _")
        versions.append(
            Version(
                expected,
                module,
                entry.number("server", required=True) or 1,
                entry.text("doc", required=True),
                entry.place,
            )
        )
    if not entries and "versions" in keys:
        findings.add(keys.place_of("versions"), "a protocol has at least one version")
    return tuple(versions)


def _load_layout(
    title: str,
    place: Place,
    node: Node,
    names: _Names,
    findings: Findings,
    messages: list[Message],
    parts: list[Part],
) -> None:
    if not isinstance(node, Entries):
        findings.add(place, f"{title!r} must be a mapping")
    elif "part of" in node.entries:
        if not _CLASS.fullmatch(title):
            findings.add(place, f"{title!r} is no name of a part; one capitalised word is expected")
        parts.append(_load_part(title, place, node, names, findings))
    else:
        if not _TITLE.fullmatch(title):
            findings.add(
                place, f"{title!r} is no name of a message; words of letters are expected, the first capitalised"
            )
        messages.append(_load_message(title, place, node, names, findings))


def _load_message(title: str, place: Place, node: Entries, names: _Names, findings: Findings) -> Message:
    keys = Keys(node, title, _MESSAGE_KEYS, findings)
    since = keys.number("since") or 1
    return Message(
        name=title,
        ref=keys.text("ref", required=True),
        doc=keys.text("doc", required=True),
        note=keys.text("note"),
        since=since,
        also_when=keys.name("also when", names.session),
        sender=keys.name("from", _SENDERS) or "server",
        callbacks=keys.names("callback", names.callbacks),
        places=keys.names("place", names.places),
        opens=keys.name("opens", names.blocks),
        closes=keys.name("closes", names.blocks),
        sets=keys.name("sets", names.session),
        clears=keys.name("clears", names.session),
        transaction=keys.name("transaction", _TRANSACTION_EFFECTS),
        fields=_load_fields(keys, title, names, findings, since=since, tagged=True),
        place=place,
    )


def _load_part(title: str, place: Place, node: Entries, names: _Names, findings: Findings) -> Part:
    keys = Keys(node, title, _PART_KEYS, findings)
    alternatives = tuple(
        Alternative(
            name,
            entry.text("doc", required=True),
            entry.text("note"),
            _load_fields(entry, name, names, findings),
            entry.place,
        )
        for name, entry in _named(keys, "one of", "alternative", ["doc", "note", "fields"], findings)
    )
    for alternative in alternatives:
        if not _CLASS.fullmatch(alternative.name):
            findings.add(alternative.place, f"{alternative.name!r} is no name of an alternative; one capitalised word")
    if ("fields" in keys) == ("one of" in keys):
        findings.add(place, f"{title} must have either 'fields' or 'one of'")
    fields = _load_fields(keys, title, names, findings) if "fields" in keys else ()
    return Part(
        name=title,
        part_of=keys.names("part of", required=True),
        ref=keys.text("ref") or None,
        doc=keys.text("doc", required=True),
        note=keys.text("note"),
        fields=fields,
        alternatives=alternatives,
        place=place,
    )


def _load_fields(
    keys: Keys, owner: str, names: _Names, findings: Findings, *, since: int = 1, tagged: bool = False
) -> tuple[Field, ...]:
    node = keys.node("fields", required=True)
    if node is None:
        return ()
    if not isinstance(node, Items) or not node.items:
        findings.add(keys.place_of("fields"), f"'fields' of {owner} must be a list of rows")
        return ()
    fields: list[Field] = []
    for index, item in enumerate(node.items):
        row = _load_field(item, owner, names, findings, since)
        if row is None:
            continue
        if not row.doc and not (tagged and index == 0):
            findings.add(row.place, f"{owner}.{row.name} has no 'doc'")
        fields.append(row)
    return tuple(fields)


def _load_field(item: Node, owner: str, names: _Names, findings: Findings, since: int) -> Field | None:
    if not isinstance(item, Entries) or not item.entries:
        findings.add(item.place, f"a row of {owner} must read '- name: Type', its modifiers beneath")
        return None
    name, (place, type_node) = next(iter(item.entries.items()))
    if not _ATTRIBUTE.fullmatch(name) or name in _MODIFIERS:
        findings.add(
            place, f"{owner}.{name}: {name!r} is no name of a field; lower-case words joined by _ are expected"
        )
        return None
    if not isinstance(type_node, Text):
        findings.add(place, f"{owner}.{name}: the type must be a text")
        return None
    try:
        kind = parse_type(type_node.value)
    except NotationError as error:
        findings.add(place, f"{owner}.{name}: {error}")
        return None
    rest = Entries({key: value for key, value in item.entries.items() if key != name}, item.place)
    keys = Keys(rest, f"{owner}.{name}", _MODIFIERS, findings)
    return Field(
        name=name,
        type=kind,
        place=place,
        doc=keys.text("doc"),
        note=keys.text("note"),
        since=keys.number("since") or since,
        when=keys.text("when") or None,
        optional=keys.flag("optional"),
        size=keys.text("size") or None,
        repeat=keys.text("repeat") or None,
        is_named=keys.name("is", names.types),
        nonzero=keys.flag("nonzero"),
        boolean=keys.flag("boolean"),
        bits=_bits(keys, findings),
        values=_values(keys, findings),
    )


def _bits(keys: Keys, findings: Findings) -> Mapping[int, str]:
    bits: dict[int, str] = {}
    for text, (place, node) in keys.mapping("bits").items():
        if text not in ("1", "2", "4", "8", "16", "32", "64", "128"):
            findings.add(place, f"{text!r} is no bit; allowed: 1, 2, 4, 8, 16, 32, 64, 128")
        elif not isinstance(node, Text) or not _ATTRIBUTE.fullmatch(node.value):
            findings.add(place, f"bit {text} must have a name of lower-case words joined by _")
        else:
            bits[int(text)] = node.value
    return MappingProxyType(bits)


def _values(keys: Keys, findings: Findings) -> Mapping[str, str]:
    values: dict[str, str] = {}
    for text, (place, node) in keys.mapping("values").items():
        if len(text) != 1 or not text.isascii() or not text.isprintable():
            findings.add(place, f"{text!r} is no value; one printable ASCII character is expected")
        elif not isinstance(node, Text) or not _ATTRIBUTE.fullmatch(node.value):
            findings.add(place, f"value {text!r} must have a name of lower-case words joined by _")
        else:
            values[text] = node.value
    return MappingProxyType(values)
