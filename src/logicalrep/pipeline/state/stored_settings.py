"""The settings of a destination, stored there so that masked columns stay masked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from logicalrep.pipeline.schema.stored_json import decode, encode
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.state.state import FOLDER, FORMAT, read_file
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.transactions.table_names import TableName, table_name

_FILE = "settings.json"


@dataclass(frozen=True, slots=True)
class StoredSettings:
    """The settings of a destination's last run; `_logicalrep/settings.json`."""

    defaults: TableSettings = field(default_factory=TableSettings)
    tables: Mapping[TableName, TableSettings] = field(default_factory=dict)
    protected: Mapping[int, TableName] = field(default_factory=dict)
    """The names of tables with masked or omitted columns, by the OID of the table and of its partitions."""
    numbers: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """The numbers of masked and omitted columns, by table OID: another column may get such a name."""

    @classmethod
    def read(cls, storage: Storage) -> StoredSettings | None:
        return read_file(storage, _FILE, cls._of)

    @classmethod
    def _of(cls, content: dict[str, Any]) -> StoredSettings:
        stored = decode({key: value for key, value in content.items() if key != "format"}, _Stored)
        return cls(
            stored.defaults,
            {table_name(text): settings for text, settings in stored.tables.items()},
            {oid: table_name(text) for oid, text in stored.protected.items()},
            stored.numbers,
        )

    def write(self, storage: Storage) -> None:
        content = {
            "format": FORMAT,
            "defaults": self.defaults,
            "tables": {str(name): settings for name, settings in self.tables.items()},
            "protected": {oid: str(name) for oid, name in self.protected.items()},
            "numbers": self.numbers,
        }
        storage.write(f"{FOLDER}/{_FILE}", encode(content))

    def of(self, table: TableName) -> TableSettings:
        return self.tables.get(table, self.defaults)


@dataclass(frozen=True, slots=True)
class _Stored:
    defaults: TableSettings
    tables: Mapping[str, TableSettings]
    protected: Mapping[int, str]
    numbers: Mapping[int, Mapping[str, int]]
