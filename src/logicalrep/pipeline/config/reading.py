"""Reads settings by table from a file, or from an equivalent mapping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from logicalrep.options.kinds import Choice, OptionError, names, number_type
from logicalrep.pipeline.config.config import Config, Entry
from logicalrep.pipeline.config.mask_key import MaskKey
from logicalrep.pipeline.config.nodes import Document, TablesOfDatabase
from logicalrep.pipeline.config.options import TABLE_OPTIONS
from logicalrep.pipeline.schema.file_partitions import WantedPartition
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.transactions.table_names import TableName, TableNameError, table_name
from logicalrep.values.numbers import check_number_type


def read_config(source: str | Path | Mapping[str, object] | TablesOfDatabase, defaults: TableSettings) -> Config:
    """Return the settings by table of a file or mapping. Raises ConfigError, or MaskKeyError without a needed key."""
    document, tables = _tables(source)
    entries: dict[TableName, Entry] = {}
    if tables is not None:
        for key, text, node in document.read_entries(tables, "'tables'"):
            _add(entries, document, defaults, key, text, node)
    document.refuse()
    if any("hashed" in entry.settings.masked.values() for entry in entries.values()):
        check = MaskKey.from_environment().check
        entries = {name: entry.with_key(check) for name, entry in entries.items()}
    return Config(entries, is_given=True)


def _tables(
    source: str | Path | Mapping[str, object] | TablesOfDatabase,
) -> tuple[Document, yaml.Node | None]:
    if isinstance(source, TablesOfDatabase):
        return source.document, source.node
    document = Document(source)
    entries = {} if document.root is None else document.read_known(document.root, "the file", ["tables"])
    return document, entries["tables"][1] if entries else None


def _add(
    entries: dict[TableName, Entry],
    document: Document,
    defaults: TableSettings,
    key: yaml.Node,
    text: str,
    node: yaml.Node,
) -> None:
    entry = _entry(document, defaults, key, text, node)
    try:
        name = table_name(text)
    except TableNameError as error:
        document.add(key, error.description)
        return
    if name in entries:
        document.add(key, f"{name} is repeated, first at {entries[name].location}")
    else:
        entries[name] = entry


def _entry(document: Document, defaults: TableSettings, key: yaml.Node, name: str, node: yaml.Node) -> Entry:
    own: dict[str, Any] = {}
    columns: dict[str, str] = {}
    for setting, (_, value) in document.read_known(node, name, TABLE_OPTIONS).items():
        what, read = f"{setting!r} of {name}", TABLE_OPTIONS[setting].read
        if isinstance(read, Choice) and setting != "masked":
            own[setting] = document.read_choice(value, what, read.words)
        elif isinstance(read, Choice):
            masks = {column: (at, mask) for at, column, mask in document.read_entries(value, what)}
            columns |= {column: document.location(at) for column, (at, _) in masks.items()}
            own[setting] = {
                column: document.read_choice(mask, f"{what}, column {column},", read.words)
                for column, (_, mask) in masks.items()
            }
        elif read is number_type:
            own |= _number_types(document, what, value, columns)
        elif read is names:
            texts = document.read_texts(value, what)
            for at, text in texts:
                columns.setdefault(_column_of(text) if setting == "partition_by" else text, document.location(at))
            own[setting] = tuple(text for _, text in texts)
        else:
            own[setting] = document.read_truth(value, what)
    own = {setting: value for setting, value in own.items() if value is not None}
    is_optional, settings = own.pop("optional", False), defaults
    try:
        settings = replace(defaults, **own)
    except OptionError as error:
        document.add(key, f"{name}: {error.description}")
    return Entry(document.location(key), settings, is_optional, columns)


def _column_of(partition: str) -> str:
    try:
        return WantedPartition.of(partition).column
    except ValueError:
        return partition


def _number_types(
    document: Document, what: str, node: yaml.Node, columns: dict[str, str]
) -> dict[str, str | dict[str, str]]:
    def read(value: yaml.Node, what: str) -> str | None:
        text = document.read_text(value, what)
        try:
            return None if text is None else check_number_type(text)
        except ValueError as error:
            document.add(value, f"{what} is {text!r}: {error}")
            return None

    if not isinstance(node, yaml.MappingNode):
        whole = read(node, what)
        return {} if whole is None else {"numeric": whole}
    types = {}
    for at, column, value in document.read_entries(node, what):
        columns[column] = document.location(at)
        column_type = read(value, f"{what}, column {column},")
        if column_type is not None:
            types[column] = column_type
    return {"numeric_columns": types}
