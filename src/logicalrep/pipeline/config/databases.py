"""The databases of a file, each with a server, a destination, options and settings by table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from logicalrep.options.kinds import OptionError
from logicalrep.pipeline.config.nodes import Document, TablesOfDatabase, nearest
from logicalrep.pipeline.config.options import OPTIONS, ReplicateOptions

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_COMMAND_OPTIONS = ("once", "config", "listen")
"""The options of the whole command."""
_TEXTS = ("dsn", "dsn_file", "password_command", "to", "catalog")
_SETTINGS = (*_TEXTS, "storage_options", "catalog_options", "options", "tables")


@dataclass(frozen=True, kw_only=True)
class DatabaseSection:
    name: str
    to: str
    dsn: str | None = field(repr=False)
    dsn_file: Path | None
    password_command: str | None
    storage_options: Mapping[str, str] = field(repr=False)
    catalog: str | None = field(repr=False)
    catalog_options: Mapping[str, str] = field(repr=False)
    options: Mapping[str, str]
    """Its own options of `replicate`, as texts, by their names in Python."""
    tables: TablesOfDatabase


def read_databases(path: str | Path) -> list[DatabaseSection]:
    """Return the databases of a file, in order; none if it has only settings by table. Raises ConfigError."""
    document = Document(path)
    if document.root is None or not _has_databases(document.root):
        return []
    sections = []
    for key, value in document.read_known(document.root, "a file with 'databases'", ["databases"]).values():
        for name_key, name, node in document.read_entries(value, "'databases'"):
            if not _NAME.fullmatch(name):
                document.add(name_key, f"the name {name!r} of a database must be of letters, digits, '_', '-' and '.'")
            section = _read_section(document, name_key, name, node)
            if section is not None:
                sections.append(section)
        if not sections and not document.mistakes:
            document.add(key, "'databases' has none")
    document.refuse()
    return sections


def _has_databases(root: yaml.Node) -> bool:
    return isinstance(root, yaml.MappingNode) and any(
        isinstance(key, yaml.ScalarNode) and key.value == "databases" for key, _ in root.value
    )


def _read_section(document: Document, key: yaml.Node, name: str, node: yaml.Node) -> DatabaseSection | None:
    nodes = {setting: value for setting, (_, value) in document.read_known(node, name, _SETTINGS).items()}
    texts = {
        setting: document.read_text(nodes[setting], f"{setting!r} of {name}") for setting in _TEXTS if setting in nodes
    }
    if ("dsn" in nodes) == ("dsn_file" in nodes):
        document.add(key, f"{name} must have 'dsn' or 'dsn_file', and not both")
    if "to" not in nodes:
        document.add(key, f"{name} has no 'to', the destination of its tables")
    storage_options = _read_each(document, name, "storage_options", nodes)
    catalog_options = _read_each(document, name, "catalog_options", nodes)
    options = _read_each(document, name, "options", nodes)
    for option, (at, text) in options.items():
        _check_option(document, name, at, option, text)
    to, dsn_file = texts.get("to"), texts.get("dsn_file")
    if to is None:
        return None
    return DatabaseSection(
        name=name,
        to=to,
        dsn=texts.get("dsn"),
        dsn_file=None if dsn_file is None else Path(dsn_file),
        password_command=texts.get("password_command"),
        storage_options={option: text for option, (_, text) in storage_options.items()},
        catalog=texts.get("catalog"),
        catalog_options={option: text for option, (_, text) in catalog_options.items()},
        options={option: text for option, (_, text) in options.items()},
        tables=TablesOfDatabase(document, nodes.get("tables")),
    )


def _read_each(
    document: Document, name: str, setting: str, nodes: Mapping[str, yaml.Node]
) -> dict[str, tuple[yaml.Node, str]]:
    """Return the keys of a setting, each with its node and its text; a list's texts are joined."""
    if setting not in nodes:
        return {}
    return {
        option: (at, ",".join(text for _, text in document.read_texts(value, f"{option!r} of {name}")))
        for at, option, value in document.read_entries(nodes[setting], f"{setting!r} of {name}")
    }


def _check_option(document: Document, name: str, at: yaml.Node, option: str, text: str) -> None:
    if option in _COMMAND_OPTIONS:
        document.add(at, f"{option!r} is an option of the whole command, not of one database")
    elif option not in OPTIONS:
        document.add(at, f"'options' of {name} has no {option!r}{nearest(option, OPTIONS)}")
    else:
        arguments: dict[str, Any] = {option: text}
        try:
            ReplicateOptions("", "", **arguments)
        except OptionError as error:
            document.add(at, f"{name}: {error.description}")
