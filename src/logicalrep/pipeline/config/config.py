"""The settings by table, as a file or a mapping has them.

A setting that a table does not have there is that of the command line, or of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from logicalrep.pipeline.config.nodes import nearest
from logicalrep.pipeline.schema.file_partitions import PartitionColumnError
from logicalrep.pipeline.schema.table_settings import OwnKeyError, TableSettings
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.transactions.table_names import TableName


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
        return cls(
            {name: Entry(str(name), table_settings, is_optional=True) for name, table_settings in settings.items()},
            is_given=True,
        )

    @property
    def optional(self) -> Config:
        """The settings, in which no table need be replicated."""
        entries = {name: replace(entry, is_optional=True) for name, entry in self.entries.items()}
        return replace(self, entries=entries)

    def mistakes(self, tables: Collection[TableName], described: Callable[[TableName], TableSpec | None]) -> list[str]:
        """Return what names tables and columns that are not there, a line for each.

        Args:
            tables: the tables that are replicated.
            described: returns a table as it is under its settings.
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
            columns = {*table.relation.names, *(column for _, column in table.protected)}
            for column, location in entry.columns.items():
                if column not in columns:
                    mistakes.append(f"{location}: {name} has no published column {column}{nearest(column, columns)}")
                elif column in (table.key or ()) and column in table.settings.protected - table.hashed:
                    mistakes.append(
                        f"{location}: {column} belongs to the key of {name}, which tells rows apart: it can be "
                        "hashed, but not nulled or left out"
                    )
            if table.settings.key and table.key != table.settings.key:
                mistakes.append(f"{entry.location}: {OwnKeyError.of(name, table.settings.key).description}")
            try:
                _ = table.file_partitions
            except PartitionColumnError as error:
                mistakes.append(f"{entry.location}: {error.description}")
        return mistakes
