"""The settings by table, as a file or a mapping has them.

A setting that a table does not have there is that of the command line, or of the call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from logicalrep.tables.config.nodes import Document, nearest, refuse
from logicalrep.tables.table_settings import TableSettings, TableSettingsError
from logicalrep.transactions.table_names import TableName, TableNameError, name_parts, table_names

_CHOICES = {"unrepresentable": ("error", "null", "text"), "deletes": ("hard", "soft")}
_TRUTHS = ("history", "append", "optional")
_KEYS = (*_CHOICES, *_TRUTHS)


@dataclass(frozen=True, slots=True)
class Entry:
    """The settings of one table."""

    place: str
    """Their place, as `path:line`."""
    settings: TableSettings
    is_optional: bool = False
    """Whether there need not be such a table yet, or any more."""


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of tables that have some of their own."""

    entries: Mapping[TableName, Entry] = field(default_factory=dict)

    def check(self, tables: Collection[TableName]) -> None:
        """Raise ConfigError if a table that is not optional is not among those that are replicated."""
        names = [table.name for table in tables]
        refuse(
            [
                f"{entry.place}: no table {name} is replicated, and it is not optional{nearest(name.name, names)}"
                for name, entry in self.entries.items()
                if name not in tables and not entry.is_optional
            ]
        )


def read_config(source: str | Path | Mapping[str, Any], defaults: TableSettings) -> Config:
    """Return the settings by table of a YAML file, or of a mapping like it.

    Args:
        source: the file's path, or the mapping.
        defaults: the settings that a table has where it has none of its own.

    Raises:
        ConfigError: there are mistakes; the text has all of them, as `path:line: what is wrong`.

    Example:
        >>> config = read_config({"tables": {"orders": {"history": True}}}, TableSettings(deletes="soft"))
        >>> config.entries[TableName("public", "orders")].settings.deletes
        'soft'
    """
    document = Document(source)
    entries: dict[TableName, Entry] = {}
    if document.root is not None:
        for _, tables in document.known(document.root, "the file", ["tables"]).values():
            for key, text, node in document.entries(tables, "'tables'"):
                _add(entries, document, defaults, key, text, node)
    document.refuse()
    return Config(entries)


def _add(
    entries: dict[TableName, Entry],
    document: Document,
    defaults: TableSettings,
    key: yaml.Node,
    text: str,
    node: yaml.Node,
) -> None:
    """Add a table's settings to the others."""
    settings, is_optional = _settings(document, defaults, key, text, node)
    try:
        name_parts(text)
    except TableNameError as error:
        document.add(key, error.description)
        return
    (name,) = table_names(text)
    if name in entries:
        document.add(key, f"{name} is there twice, first at {entries[name].place}")
    else:
        entries[name] = Entry(document.place(key), settings, is_optional)


def _settings(
    document: Document, defaults: TableSettings, key: yaml.Node, name: str, node: yaml.Node
) -> tuple[TableSettings, bool]:
    """Return a table's settings, and whether the table is optional."""
    own: dict[str, Any] = {}
    for setting, (_, value) in document.known(node, name, _KEYS).items():
        what = f"{setting!r} of {name}"
        if setting in _CHOICES:
            own[setting] = document.one_of(value, what, _CHOICES[setting])
        else:
            own[setting] = document.truth(value, what)
    own = {setting: value for setting, value in own.items() if value is not None}
    is_optional = own.pop("optional", False)
    try:
        return replace(defaults, **own), is_optional
    except TableSettingsError as error:
        document.add(key, f"{name}: {error.description}")
        return defaults, is_optional


__all__ = ["Config", "Entry", "read_config"]
