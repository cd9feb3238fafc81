"""YAML with places: mappings, lists and texts, each with its line and column.

`yaml.safe_load` is unsuitable: it reports no lines, accepts duplicate keys, and converts `On` and `Null`. Here every
scalar is a text until a caller requests a number or a truth value.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from codegen.model.places import Finding, Place


class Findings(list[Finding]):
    """The mistakes found so far."""

    def add(self, place: Place, text: str) -> None:
        self.append(Finding(place, text))

    def has(self, place: Place) -> bool:
        """Return whether a place has a mistake, of which other findings would only be consequences."""
        return any(finding.place == place for finding in self)


@dataclass(frozen=True)
class Text:
    """A scalar, as written."""

    value: str
    place: Place
    quoted: bool = False
    comment: tuple[str, Place] | None = None
    """The comment on the last line, which may be meant as part of the text."""


@dataclass(frozen=True)
class Items:
    """A list."""

    items: tuple[Node, ...]
    place: Place


@dataclass(frozen=True)
class Entries:
    """A mapping with unique keys."""

    entries: dict[str, tuple[Place, Node]]
    place: Place


Node = Text | Items | Entries

_COMMENT = re.compile(r"[ \t]*(#[^\r\n\0]*)")
_COLON_IN_TEXT = "mapping values are not allowed here"
_QUOTE = "a text with ': ' or ' #' in it must be in quotes"


def allowed(names: Iterable[str], actual: str) -> str:
    """Return the end of a finding: the allowed names, and the most similar one."""
    names = tuple(names)
    return f"allowed: {', '.join(names) or 'none'}{nearest(names, actual)}"


def nearest(names: Iterable[str], actual: str) -> str:
    """Return a question for the most similar name; empty if none is similar."""
    near = difflib.get_close_matches(actual, list(names), 1, cutoff=0.75)
    return f"; did you mean {near[0]!r}?" if near else ""


def read(path: Path, findings: Findings) -> Entries | None:
    """Return a file's mapping; None, with findings, if the file has none."""
    top = Place(path, 1, 1)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        findings.add(top, f"cannot be read: {error}")
        return None
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        hint = f"; {_QUOTE}" if error.problem == _COLON_IN_TEXT else ""
        findings.add(_place(path, mark) if mark else top, f"is not valid YAML: {error.problem or error.context}{hint}")
        return None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        findings.add(top, f"is not valid YAML: {' '.join(str(error).split())}")
        return None
    except RecursionError:
        findings.add(top, "is nested too deeply")
        return None
    if root is None:
        findings.add(top, "is empty; a mapping is expected")
        return None
    node = _convert(root, path, findings, set(), 1)
    if isinstance(node, Entries):
        return node
    if node is not None:
        findings.add(node.place, "holds no mapping; the top of the file must be one")
    return None


def _place(path: Path, mark: yaml.Mark) -> Place:
    return Place(path, mark.line + 1, mark.column + 1)


def _comment(node: yaml.ScalarNode, path: Path) -> tuple[str, Place] | None:
    mark = node.end_mark
    match = _COMMENT.match(mark.buffer or "", mark.pointer) if node.style is None else None
    if match is None:
        return None
    return match[1], Place(path, mark.line + 1, mark.column + 1 + match.start(1) - mark.pointer)


def _convert(node: yaml.Node, path: Path, findings: Findings, seen: set[int], depth: int) -> Node | None:
    place = _place(path, node.start_mark)
    if id(node) in seen:
        findings.add(place, "is used a second time through an alias; write it out")
        return None
    seen.add(id(node))
    if depth > 20:
        findings.add(place, "is nested too deeply")
        return None
    if isinstance(node, yaml.ScalarNode):
        return Text(node.value, place, node.style is not None, _comment(node, path))
    if isinstance(node, yaml.SequenceNode):
        converted = [_convert(item, path, findings, seen, depth + 1) for item in node.value]
        return Items(tuple(item for item in converted if item is not None), place)
    entries: dict[str, tuple[Place, Node]] = {}
    for key, value in node.value:
        key_place = _place(path, key.start_mark)
        if not isinstance(key, yaml.ScalarNode):
            findings.add(key_place, "a key must be a text")
            continue
        if key.value in entries:
            findings.add(key_place, f"key {key.value!r} is defined twice, first in line {entries[key.value][0].line}")
            continue
        child = _convert(value, path, findings, seen, depth + 1)
        if child is not None:
            entries[key.value] = (key_place, child)
    return Entries(entries, place)


class Keys:
    """The keys of a mapping. Missing, unknown and malformed keys become findings."""

    def __init__(self, mapping: Entries, what: str, known_keys: Iterable[str], findings: Findings) -> None:
        self.place = mapping.place
        self._entries = mapping.entries
        self._what = what
        self._findings = findings
        known_keys = tuple(known_keys)
        for key, (place, _) in mapping.entries.items():
            if key not in known_keys:
                findings.add(place, f"unknown key {key!r} of {what}; {allowed(known_keys, key)}")

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def place_of(self, key: str) -> Place:
        """Return the place of the key, or of the mapping if the key is absent."""
        return self._entries[key][0] if key in self._entries else self.place

    def node(self, key: str, *, required: bool = False) -> Node | None:
        """Return a key's value; None if absent."""
        if key in self._entries:
            return self._entries[key][1]
        if required:
            self._findings.add(self.place, f"{self._what} has no {key!r}")
        return None

    def text(self, key: str, *, required: bool = False) -> str:
        """Return a text, folded to one line; empty if absent."""
        node = self.node(key, required=required)
        if node is None:
            return ""
        if not isinstance(node, Text) or not node.value.strip():
            self._findings.add(self.place_of(key), f"{key!r} must be a text")
            return ""
        text = " ".join(node.value.split())
        if not text.isprintable():
            self._findings.add(self.place_of(key), f"{key!r} has a character that cannot be printed")
            return ""
        return text

    def prose(self, key: str, *, required: bool = False) -> str:
        """Return a text for people. A comment or a mapping that YAML made of it is a finding."""
        node = self.node(key)
        if isinstance(node, Text) and node.comment is not None:
            comment, place = node.comment
            self._findings.add(place, f"YAML takes {comment!r} for a comment, not for part of {key!r}; {_QUOTE}")
            return node.value or comment
        if isinstance(node, Entries):
            self._findings.add(self.place_of(key), f"{key!r} must be a text, not a mapping; {_QUOTE}")
            return ""
        return self.text(key, required=required)

    def name(self, key: str, known_names: Iterable[str]) -> str | None:
        """Return one of the known names; None if absent or unknown."""
        value = self.text(key)
        known_names = tuple(known_names)
        if value and value not in known_names:
            self._findings.add(self.place_of(key), f"{key!r} is {value!r}; {allowed(known_names, value)}")
            return None
        return value or None

    def names(self, key: str, known_names: Iterable[str] | None = None, *, required: bool = False) -> tuple[str, ...]:
        """Return a list of names; a single name is a list too."""
        node = self.node(key, required=required)
        if node is None:
            return ()
        choice = None if known_names is None else tuple(known_names)
        items = node.items if isinstance(node, Items) else (node,)
        names: list[str] = []
        for item in items:
            if not isinstance(item, Text) or not item.value:
                self._findings.add(item.place, f"{key!r} must be a name or a list of names")
            elif choice is not None and item.value not in choice:
                self._findings.add(item.place, f"{key!r} has {item.value!r}; {allowed(choice, item.value)}")
            elif item.value in names:
                self._findings.add(item.place, f"{key!r} has {item.value!r} twice")
            else:
                names.append(item.value)
        if not items:
            self._findings.add(self.place_of(key), f"{key!r} must not be empty")
        return tuple(names)

    def number(self, key: str, *, required: bool = False) -> int | None:
        """Return a whole number from 1 to 99; None if absent."""
        node = self.node(key, required=required)
        if node is None:
            return None
        if isinstance(node, Text) and not node.quoted and node.value.isascii() and node.value.isdecimal():
            value = int(node.value) if len(node.value) < 3 else 0
            if value > 0:
                return value
        self._findings.add(self.place_of(key), f"{key!r} must be a whole number from 1 to 99")
        return None

    def truth(self, key: str) -> bool | None:
        """Return true or false; None if absent."""
        node = self.node(key)
        if node is None:
            return None
        if isinstance(node, Text) and not node.quoted and node.value in ("true", "false"):
            return node.value == "true"
        self._findings.add(self.place_of(key), f"{key!r} must be true or false")
        return None

    def flag(self, key: str) -> bool:
        """Return whether the key is present; `true` is its only legal value."""
        value = self.truth(key)
        if value is False:
            self._findings.add(self.place_of(key), f"{key!r} can only be true; leave it out otherwise")
        return bool(value)

    def mapping(self, key: str, *, required: bool = False) -> dict[str, tuple[Place, Node]]:
        """Return a mapping of texts to nodes; empty if absent."""
        node = self.node(key, required=required)
        if node is None:
            return {}
        if isinstance(node, Entries):
            return node.entries
        self._findings.add(self.place_of(key), f"{key!r} must be a mapping")
        return {}

    def texts(self, key: str, expected: str, legal: str = r".*") -> dict[str, str]:
        """Return a mapping of names to texts; empty if absent. `expected` describes a legal entry in findings."""
        texts: dict[str, str] = {}
        for name, (place, node) in self.mapping(key).items():
            if isinstance(node, Text) and re.fullmatch(legal, name, re.ASCII):
                texts[name] = node.value
            else:
                self._findings.add(place, f"{key!r} has {name!r}; {expected} is expected")
        return texts


def named_entries(
    keys: Keys, key: str, what: str, known_keys: list[str], findings: Findings, *, required: bool = False
) -> list[tuple[str, Keys]]:
    """Return the entries of a key that is a mapping of mappings."""
    entries = []
    for name, (place, node) in keys.mapping(key, required=required).items():
        if isinstance(node, Entries):
            entries.append((name, Keys(Entries(node.entries, place), f"{what} {name!r}", known_keys, findings)))
        else:
            findings.add(place, f"{what} {name!r} must be a mapping")
    return entries
