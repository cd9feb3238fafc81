"""The settings that a destination is replicated with, kept there so that masked columns stay masked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from logicalrep.pipeline.schema.stored_keys import to_json, typed
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.state.state import FOLDER, FORMAT, read_file
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.transactions.table_names import TableName, table_name

_FILE = "settings.json"


@dataclass(frozen=True, slots=True)
class StoredSettings:
    """The settings that a destination was last replicated with; `_logicalrep/settings.json`."""

    defaults: TableSettings = field(default_factory=TableSettings)
    """The settings of tables that have none of their own."""
    tables: Mapping[TableName, TableSettings] = field(default_factory=dict)
    """The settings of tables that have some of their own."""
    protected: Mapping[int, TableName] = field(default_factory=dict)
    """The names of tables with columns that are masked or left out, by their OIDs, which renaming does not change.

    The OIDs of their partitions are among them, each with its table's name.
    """
    numbers: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """The numbers of the columns that are masked or left out, by the tables' OIDs: another one may get the name."""

    @classmethod
    def read(cls, storage: Storage) -> StoredSettings | None:
        """Return a destination's stored settings; None if it has none."""
        return read_file(storage, _FILE, cls._of)

    @classmethod
    def _of(cls, found: dict[str, Any]) -> StoredSettings:
        return typed(
            cls(
                TableSettings.from_json(found["defaults"]),
                {table_name(text): TableSettings.from_json(each) for text, each in found["tables"].items()},
                {int(oid): table_name(text) for oid, text in found["protected"].items()},
                {int(oid): dict(numbers) for oid, numbers in found["numbers"].items()},
            )
        )

    def write(self, storage: Storage) -> None:
        """Replace a destination's stored settings."""
        content = {
            "format": FORMAT,
            "defaults": self.defaults.to_json(),
            "tables": {str(name): settings.to_json() for name, settings in self.tables.items()},
            "protected": {str(oid): str(name) for oid, name in self.protected.items()},
            "numbers": {str(oid): numbers for oid, numbers in self.numbers.items()},
        }
        storage.write(f"{FOLDER}/{_FILE}", to_json(content))

    def of(self, table: TableName) -> TableSettings:
        """Return a table's settings."""
        return self.tables.get(table, self.defaults)
