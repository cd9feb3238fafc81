"""Reads a protocol's messages and parts from YAML."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from codegen.model.layouts import ANYWHERE, MESSAGE, OUTSIDE, Alternative, Field, Message, Part
from codegen.model.nodes import Entries, Findings, Items, Keys, Node, Text, named_entries, nearest
from codegen.model.notation import NAMES, NotationError, Unknown, parse_type
from codegen.model.places import Place

_TEXTS = ["doc", "note", "page note"]
_MESSAGE_KEYS = [
    "ref", "since", "also since", "also when", "release", "from", "when", *_TEXTS, "callback", "place", "opens",
    "closes",
    "sets", "clears", "tells encoding", "carries", "describes", "described as", "transaction", "fields",
]  # fmt: skip
_PART_KEYS = ["part of", "ref", *_TEXTS, "fields", "one of"]
MODIFIERS = [
    "since", "until", "when", "optional", "measures", "may be null", "any character", "size", "repeat", "is",
    "looks up", "printed as", "printed under", "printed apart", "listed in", "nonzero", "boolean", "holds text", "bits",
    "values", "batch column", *_TEXTS,
]  # fmt: skip
_TRANSACTION_EFFECTS = [
    "begins", "streams", "commits", "prepares", "aborts", "commits prepared", "rolls back prepared",
]  # fmt: skip
_SENDERS = ["server", "client", "both"]

_ATTRIBUTE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)
_TITLE = re.compile(r"[A-Z][A-Za-z0-9]*( [A-Za-z]+)*", re.ASCII)
_CLASS = re.compile(r"[A-Z][A-Za-z]*", re.ASCII)
_BITS = "1, 2, 4, 8, 16, 32, 64, 128"
_BIT = re.compile(_BITS.replace(", ", "|"))
_VALUE = re.compile(r"[A-Za-z0-9]")


@dataclass
class LayoutReader:
    """Collects a protocol's layouts. The names to which layouts may refer are known beforehand."""

    findings: Findings
    session: tuple[str, ...]
    blocks: tuple[str, ...]
    callbacks: tuple[str, ...]
    types: tuple[str, ...]
    has_anchors: bool = True
    """True if the page has an anchor for each message."""
    messages: list[Message] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    complete: bool = True
    """True if all references between layouts could be read, so that they can be checked."""
    damaged: set[str] = field(default_factory=set)
    """The layouts with unreadable rows: references to their rows cannot be checked."""

    def read(self, title: str, place: Place, node: Node) -> None:
        """Read a top-level entry of a file."""
        if not isinstance(node, Entries):
            self.findings.add(place, f"{title!r} must be a mapping")
            self.complete = False
        elif "part of" in node.entries:
            if not _CLASS.fullmatch(title):
                self.findings.add(place, f"{title!r} is not a valid name of a part; one capitalised word is expected")
            self.parts.append(self._part(title, place, node))
        else:
            if not _TITLE.fullmatch(title):
                self.findings.add(
                    place,
                    f"{title!r} is not a valid name of a message; words of letters are expected, the first capitalised",
                )
            self.messages.append(self._message(title, place, node))

    def _message(self, title: str, place: Place, node: Entries) -> Message:
        count_before = len(self.findings)
        keys = Keys(node, title, _MESSAGE_KEYS, self.findings)
        since = keys.number("since") or 1
        also_when = keys.name("also when", self.session)
        sender = keys.name("from", _SENDERS) or "server"
        callbacks = keys.names("callback", self.callbacks, required=bool(self.callbacks))
        every = (OUTSIDE, *self.blocks)
        places = keys.names("place", (*every, ANYWHERE), required=bool(self.blocks) and sender != "client")
        if ANYWHERE in places:
            if len(places) > 1:
                self.findings.add(keys.place_of("place"), f"'place' has {ANYWHERE!r}, and so nothing else")
            places = every
        opens = keys.name("opens", self.blocks)
        closes = keys.names("closes", self.blocks)
        when = keys.name("when", self.session)
        sets = keys.name("sets", self.session)
        clears = keys.name("clears", self.session)
        transaction = keys.name("transaction", _TRANSACTION_EFFECTS)
        self.complete = self.complete and len(self.findings) == count_before
        return Message(
            name=title,
            ref=keys.text("ref", required=self.has_anchors and "page note" not in keys) or None,
            doc=keys.prose("doc", required=True),
            note=keys.prose("note"),
            page_note=keys.prose("page note"),
            since=since,
            also_since=keys.number("also since") or (1 if also_when else None),
            also_when=also_when,
            release=keys.number("release"),
            sender=sender,
            callbacks=callbacks,
            places=places,
            opens=opens,
            closes=closes,
            when=when,
            sets=sets,
            clears=clears,
            tells_encoding=keys.text("tells encoding") or None,
            carries=keys.names("carries"),
            describes=keys.text("describes") or None,
            described_as=keys.text("described as"),
            transaction=transaction,
            fields=self._fields(keys, title, since=since, tagged=True),
            place=place,
        )

    def _part(self, title: str, place: Place, node: Entries) -> Part:
        keys = Keys(node, title, _PART_KEYS, self.findings)
        entries = named_entries(keys, "one of", "alternative", ["since", *_TEXTS, "fields"], self.findings)
        alternatives = tuple(self._alternative(name, entry) for name, entry in entries)
        for alternative in alternatives:
            if not _CLASS.fullmatch(alternative.name):
                self.findings.add(
                    alternative.place,
                    f"{alternative.name!r} is not a valid name of an alternative; one capitalised word is expected",
                )
        if ("fields" in keys) == ("one of" in keys):
            self.findings.add(place, f"{title} must have either 'fields' or 'one of'")
            self.damaged.add(title)
        return Part(
            name=title,
            part_of=keys.names("part of", required=True),
            ref=keys.text("ref") or None,
            doc=keys.prose("doc", required=True),
            note=keys.prose("note"),
            page_note=keys.prose("page note"),
            fields=self._fields(keys, title) if "fields" in keys else (),
            alternatives=alternatives,
            place=place,
        )

    def _alternative(self, name: str, keys: Keys) -> Alternative:
        since = keys.number("since") or 1
        return Alternative(
            name=name,
            doc=keys.prose("doc", required=True),
            note=keys.prose("note"),
            page_note=keys.prose("page note"),
            since=since,
            fields=self._fields(keys, name, since=since),
            place=keys.place,
        )

    def _fields(self, keys: Keys, owner: str, *, since: int = 1, tagged: bool = False) -> tuple[Field, ...]:
        node = keys.node("fields", required=True)
        if not isinstance(node, Items) or not node.items:
            if node is not None:
                self.findings.add(keys.place_of("fields"), f"'fields' of {owner} must be a list of rows")
            self.damaged.add(owner)
            return ()
        fields: list[Field] = []
        for index, item in enumerate(node.items):
            row = self._field(item, owner, since)
            if row is None:
                self.damaged.add(owner)
                continue
            if not row.doc and not (tagged and index == 0):
                self.findings.add(row.place, f"{owner}.{row.name} has no 'doc'")
            replaces = any(other.name == row.name and other.until is not None for other in fields)
            fields.append(replace(row, replaces=replaces))
        return tuple(fields)

    def _field(self, item: Node, owner: str, since: int) -> Field | None:
        if not isinstance(item, Entries) or not item.entries:
            self.findings.add(item.place, f"a row of {owner} must read '- name: Type', its modifiers beneath")
            return None
        name, (place, type_node) = next(iter(item.entries.items()))
        if not _ATTRIBUTE.fullmatch(name) or name in MODIFIERS:
            problem = (
                "is a modifier, so no field can have that name; a row begins with its name and type"
                if name in MODIFIERS
                else "is not a valid name of a field; lower-case words joined by _ are expected"
            )
            self.findings.add(place, f"{owner}.{name}: {name!r} {problem}")
            return None
        if not isinstance(type_node, Text):
            self.findings.add(place, f"{owner}.{name}: the type must be a text")
            return None
        try:
            kind = parse_type(type_node.value)
        except NotationError as error:
            self.findings.add(place, f"{owner}.{name}: {error}{nearest(NAMES, type_node.value)}")
            kind = Unknown(type_node.value)
        rest = Entries({key: value for key, value in item.entries.items() if key != name}, item.place)
        keys = Keys(rest, f"{owner}.{name}", MODIFIERS, self.findings)
        count_before = len(self.findings)
        row_since, optional = keys.number("since") or since, keys.flag("optional")
        if len(self.findings) > count_before:
            self.damaged.add(owner)  # Other rows are judged by them.
        return Field(
            name=name,
            type=kind,
            place=place,
            doc=keys.prose("doc"),
            note=keys.prose("note"),
            page_note=keys.prose("page note"),
            since=row_since,
            until=keys.number("until"),
            when=keys.text("when") or None,
            measures=keys.name("measures", [MESSAGE]),
            may_be_null=keys.flag("may be null"),
            printed_apart=keys.flag("printed apart"),
            any_character=keys.flag("any character"),
            optional=optional,
            size=keys.text("size") or None,
            repeat=keys.text("repeat") or None,
            is_named=keys.name("is", self.types),
            looks_up=keys.text("looks up") or None,
            printed_as=keys.text("printed as"),
            printed_under=keys.text("printed under") or None,
            listed_in=keys.text("listed in") or None,
            nonzero=keys.flag("nonzero"),
            boolean=keys.flag("boolean"),
            holds_text=keys.flag("holds text"),
            bits={int(bit): name for bit, name in self._names(keys, "bits", _BIT, _BITS).items()},
            values=self._names(keys, "values", _VALUE, "a letter or a digit"),
            batch_column=self._column(keys),
        )

    def _column(self, keys: Keys) -> str | None:
        name = keys.text("batch column") or None
        if name is not None and not _ATTRIBUTE.fullmatch(name):
            text = f"'batch column' has {name!r}; lower-case words joined by _ are expected"
            self.findings.add(keys.place_of("batch column"), text)
        return name

    def _names(self, keys: Keys, key: str, legal: re.Pattern[str], allowed: str) -> dict[str, str]:
        names: dict[str, str] = {}
        for text, (place, node) in keys.mapping(key).items():
            if not legal.fullmatch(text):
                self.findings.add(place, f"{key!r} has {text!r}; allowed: {allowed}")
            elif not isinstance(node, Text) or not _ATTRIBUTE.fullmatch(node.value):
                self.findings.add(place, f"{text!r} of {key!r} must have a name of lower-case words joined by _")
            else:
                if node.value in names.values():
                    self.findings.add(place, f"{text!r} of {key!r} has the name of another, {node.value}")
                names[text] = node.value
        return names
