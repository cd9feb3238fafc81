"""Reads YAML with its lines, and collects every mistake with its line."""

from __future__ import annotations

import difflib
import io
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.visible import visible

_BOOL = "tag:yaml.org,2002:bool"
_NULL = "tag:yaml.org,2002:null"


class ConfigError(LogicalRepError, ValueError):
    """A file of settings with mistakes; the text lists all of them, each with its line."""

    code = "CONFIG_INVALID"

    def __str__(self) -> str:
        # Each line is already escaped.
        return f"[{self.code}] {self.description}"


class Document:
    """A file of settings, or an equivalent mapping, and its mistakes."""

    def __init__(self, source: str | Path | Mapping[str, object]) -> None:
        self.name = "config" if isinstance(source, Mapping) else str(source)
        self.mistakes: list[tuple[int, str]] = []
        self.root = self._mapping(source) if isinstance(source, Mapping) else self._file(Path(source))

    def _file(self, path: Path) -> yaml.Node | None:
        try:
            return yaml.compose(path.read_text("utf-8"), yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self._add_line(0 if mark is None else mark.line + 1, f"is not YAML: {error.problem or error.context}")
        except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
            self._add_line(0, f"cannot be read: {getattr(error, 'strerror', None) or error}")
        return None

    def _mapping(self, source: Mapping[str, object]) -> yaml.Node | None:
        try:
            return yaml.SafeDumper(io.StringIO()).represent_data(_plain(source))
        except yaml.YAMLError as error:
            self._add_line(0, f"has a value that YAML cannot express: {error}")
        return None

    def location(self, node: yaml.Node) -> str:
        line = self._line(node)
        return f"{self.name}:{line}" if line else self.name

    def add(self, node: yaml.Node, text: str) -> None:
        self._add_line(self._line(node), text)

    def _add_line(self, line: int, text: str) -> None:
        self.mistakes.append((line, f"{self.name}:{line}: {text}" if line else f"{self.name}: {text}"))

    @staticmethod
    def _line(node: yaml.Node) -> int:
        return 0 if node.start_mark is None else int(node.start_mark.line) + 1

    def refuse(self) -> None:
        refuse([text for _, text in sorted(self.mistakes, key=lambda mistake: mistake[0])])

    def read_entries(self, node: yaml.Node, what: str) -> Iterator[tuple[yaml.Node, str, yaml.Node]]:
        """Yield the keys of a mapping, each with its text and its value; a repeated key is a mistake."""
        if not isinstance(node, yaml.MappingNode):
            if not (isinstance(node, yaml.ScalarNode) and node.tag == _NULL):
                self.add(node, f"{what} must be a mapping")
            return
        lines: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.add(key, f"a key of {what} must be a text")
            elif key.value in lines:
                self.add(key, f"{what} has {key.value!r} twice, first in line {lines[key.value]}")
            else:
                lines[key.value] = self._line(key)
                yield key, key.value, value

    def read_known(self, node: yaml.Node, what: str, names: Collection[str]) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """Return the known keys of a mapping, each with its value; unknown keys are mistakes."""
        entries = {}
        for key, name, value in self.read_entries(node, what):
            if name in names:
                entries[name] = key, value
            else:
                self.add(key, f"{what} has no setting {name!r}: it has {', '.join(names)}{nearest(name, names)}")
        return entries

    def read_truth(self, node: yaml.Node, what: str) -> bool | None:
        if isinstance(node, yaml.ScalarNode) and node.tag == _BOOL and node.value in ("true", "false"):
            return bool(node.value == "true")
        self.add(node, f"{what} must be true or false")
        return None

    def read_text(self, node: yaml.Node, what: str) -> str | None:
        if isinstance(node, yaml.ScalarNode) and node.tag != _NULL:
            return str(node.value)
        self.add(node, f"{what} must be a text")
        return None

    def read_texts(self, node: yaml.Node, what: str) -> list[tuple[yaml.Node, str]]:
        """Return a text, or the texts of a list, each with its node; repeated texts and other values are mistakes."""
        nodes: dict[str, yaml.Node] = {}
        for item in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            text = self.read_text(item, what)
            if text in nodes:
                self.add(item, f"{what} has {text!r} twice")
            elif text is not None:
                nodes[text] = item
        return [(item, text) for text, item in nodes.items()]

    def read_choice(self, node: yaml.Node, what: str, names: Collection[str]) -> str | None:
        """Return one of the texts `names`; any other value is a mistake."""
        text = self.read_text(node, what)
        if text is not None and text not in names:
            self.add(node, f"{what} is {text!r}: it is {' or '.join(names)}{nearest(text, names)}")
            return None
        return text


@dataclass(frozen=True, eq=False)
class TablesOfDatabase:
    document: Document
    node: yaml.Node | None


def refuse(mistakes: Collection[str]) -> None:
    if mistakes:
        lines = "\n".join(map(visible, mistakes))
        count = "there is a mistake" if len(mistakes) == 1 else f"there are {len(mistakes)} mistakes"
        raise ConfigError(f"{count} in the settings:\n{lines}")


def nearest(text: str, names: Collection[str]) -> str:
    """Return a question with the name nearest to a text; an empty text without a near name."""
    near = difflib.get_close_matches(text, list(names), 1, cutoff=0.75)
    return f"; did you mean {near[0]}?" if near else ""


def _plain(source: object) -> object:
    if isinstance(source, Mapping):
        return {key: _plain(value) for key, value in source.items()}
    return [_plain(value) for value in source] if isinstance(source, (list, tuple)) else source
