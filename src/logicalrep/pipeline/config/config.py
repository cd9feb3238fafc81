"""The settings by table, as a file or a mapping has them.

A setting that a table does not have there is that of the command line, or of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import yaml

from logicalrep.pipeline.config.nodes import Document, nearest, refuse
from logicalrep.pipeline.masks.mask_key import MaskKey
from logicalrep.pipeline.spec.table_settings import OwnKeyError, TableSettings, TableSettingsError
from logicalrep.pipeline.spec.table_spec import TableSpec
from logicalrep.transactions.table_names import TableName, TableNameError, table_name

_CHOICES = {"unrepresentable": ("error", "null", "text"), "deletes": ("hard", "soft")}
_TRUTHS = ("history", "append", "optional")
_MASKS = ("hashed", "nulled")
_LISTS = ("key", "left_out")
_KEYS = (*_CHOICES, *_TRUTHS, *_LISTS, "masked")


@dataclass(frozen=True, slots=True)
class Entry:
    """The settings of one table."""

    location: str
    """Their location, as `path:line`."""
    settings: TableSettings
    is_optional: bool = False
    """Whether there need not be such a table yet, or any more."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The `path:line` of each column that the file names."""

    def with_key(self, check: str) -> Entry:
        """Return it with the check value of the key that hashes, if columns are hashed."""
        if "hashed" not in self.settings.masked.values():
            return self
        return replace(self, settings=replace(self.settings, mask_key=check))


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of tables that have some of their own."""

    entries: Mapping[TableName, Entry] = field(default_factory=dict)
    is_given: bool = False
    """Whether there is such a file, also if it is empty."""

    @classmethod
    def of(cls, settings: Mapping[TableName, TableSettings]) -> Self:
        """Return the settings that tables had before, whether or not all of them are still there."""
        return cls({name: Entry(str(name), each, is_optional=True) for name, each in settings.items()}, is_given=True)

    def check(self, tables: Collection[TableName], described: Callable[[TableName], TableSpec | None]) -> None:
        """Refuse tables and columns that are not there.

        Args:
            tables: the tables that are replicated.
            described: returns a table as it is under its settings.

        Raises ConfigError with all of them.
        """
        names, mistakes = [table.name for table in tables], []
        for name, entry in self.entries.items():
            if name not in tables:
                if not entry.is_optional:
                    hint = nearest(name.name, names)
                    mistakes.append(f"{entry.location}: no table {name} is replicated, and it is not optional{hint}")
                continue
            table = described(name) if entry.columns else None
            if table is None:
                continue
            known = {*table.relation.names, *(column for _, column in table.protected)}
            for column, location in entry.columns.items():
                if column not in known:
                    mistakes.append(f"{location}: {name} has no published column {column}{nearest(column, known)}")
                elif column in (table.key or ()) and column in table.settings.protected - table.hashed:
                    mistakes.append(
                        f"{location}: {column} is of the key of {name}, which tells rows apart: it can be hashed, and "
                        "not "
                        "be nulled or left out"
                    )
            if table.settings.key and table.key != table.settings.key:
                mistakes.append(f"{entry.location}: {OwnKeyError.of(name, table.settings.key).description}")
        refuse(mistakes)


def read_config(source: str | Path | Mapping[str, object], defaults: TableSettings) -> Config:
    """Return the settings by table of a YAML file, or of a mapping like it.

    Args:
        source: the file's path, or the mapping.
        defaults: the settings that a table has where it has none of its own.

    Raises:
        ConfigError: there are mistakes; the text has all of them, as `path:line: what is wrong`.
        MaskKeyError: a column is hashed, and the environment has no key.

    Example:
        >>> config = read_config({"tables": {"orders": {"history": True}}}, TableSettings(deletes="soft"))
        >>> config.entries[TableName("public", "orders")].settings.deletes
        'soft'
    """
    document = Document(source)
    entries: dict[TableName, Entry] = {}
    if document.root is not None:
        for _, tables in document.read_known(document.root, "the file", ["tables"]).values():
            for key, text, node in document.read_entries(tables, "'tables'"):
                _add(entries, document, defaults, key, text, node)
    document.refuse()
    if any("hashed" in entry.settings.masked.values() for entry in entries.values()):
        check = MaskKey.from_environment().check
        entries = {name: entry.with_key(check) for name, entry in entries.items()}
    return Config(entries, is_given=True)


def _add(
    entries: dict[TableName, Entry],
    document: Document,
    defaults: TableSettings,
    key: yaml.Node,
    text: str,
    node: yaml.Node,
) -> None:
    """Add a table's settings to the others."""
    entry = _entry(document, defaults, key, text, node)
    try:
        name = table_name(text)
    except TableNameError as error:
        document.add(key, error.description)
        return
    if name in entries:
        document.add(key, f"{name} is there twice, first at {entries[name].location}")
    else:
        entries[name] = entry


def _entry(document: Document, defaults: TableSettings, key: yaml.Node, name: str, node: yaml.Node) -> Entry:
    own: dict[str, Any] = {}
    columns: dict[str, str] = {}
    for setting, (_, value) in document.read_known(node, name, _KEYS).items():
        what = f"{setting!r} of {name}"
        if setting in _CHOICES:
            own[setting] = document.read_choice(value, what, _CHOICES[setting])
        elif setting == "masked":
            masks = {column: (at, mask) for at, column, mask in document.read_entries(value, what)}
            columns |= {column: document.location(at) for column, (at, _) in masks.items()}
            own[setting] = {
                column: document.read_choice(mask, f"{what}, column {column},", _MASKS)
                for column, (_, mask) in masks.items()
            }
        elif setting in _LISTS:
            texts = document.read_texts(value, what)
            columns |= {column: document.location(at) for at, column in texts if column not in columns}
            own[setting] = tuple(column for _, column in texts)
        else:
            own[setting] = document.read_truth(value, what)
    own = {setting: value for setting, value in own.items() if value is not None}
    is_optional, settings = own.pop("optional", False), defaults
    try:
        settings = replace(defaults, **own)
    except TableSettingsError as error:
        document.add(key, f"{name}: {error.description}")
    return Entry(document.location(key), settings, is_optional, columns)
