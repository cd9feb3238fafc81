"""The settings by table of a file or a mapping; the command line, or the call, has the defaults."""

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
    location: str
    """The location, as `path:line`."""
    settings: TableSettings
    is_optional: bool = False
    """Whether the table may be absent."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The location of each column that the file names, as `path:line`."""

    def mistakes(self, name: TableName, table: TableSpec) -> list[str]:
        """Return a line for each setting that does not fit the table."""
        mistakes = []
        columns = {*table.relation.names, *(column for _, column in table.protected)}
        for column, location in self.columns.items():
            if column not in columns:
                mistakes.append(f"{location}: {name} has no published column {column}{nearest(column, columns)}")
            elif column in (table.key or ()) and column in table.settings.protected - table.hashed:
                mistakes.append(
                    f"{location}: {column} belongs to the key of {name}, which identifies rows: it can be hashed, "
                    "but not nulled or left out"
                )
        if table.settings.key and table.key != table.settings.key:
            mistakes.append(f"{self.location}: {OwnKeyError.of(name, table.settings.key).description}")
        try:
            _ = table.file_partitions
        except PartitionColumnError as error:
            mistakes.append(f"{self.location}: {error.description}")
        return mistakes

    def with_key(self, check: str) -> Entry:
        if "hashed" not in self.settings.masked.values():
            return self
        return replace(self, settings=replace(self.settings, mask_key=check))


@dataclass(slots=True)
class Mistakes:
    """A line for each setting that names a missing or unsuitable table or column."""

    new: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)
    """The mistakes of tables whose settings are as in the last run: the table has changed, not its settings."""


@dataclass(frozen=True, slots=True)
class Config:
    entries: Mapping[TableName, Entry] = field(default_factory=dict)
    is_given: bool = False
    """Whether a file or a mapping was passed, even an empty one."""

    @classmethod
    def of(cls, settings: Mapping[TableName, TableSettings]) -> Self:
        """Return earlier settings of tables, some of which may be absent now."""
        return cls(
            {name: Entry(str(name), table_settings, is_optional=True) for name, table_settings in settings.items()},
            is_given=True,
        )

    @property
    def optional(self) -> Config:
        entries = {name: replace(entry, is_optional=True) for name, entry in self.entries.items()}
        return replace(self, entries=entries)

    def mistakes(
        self,
        tables: Collection[TableName],
        described: Callable[[TableName], TableSpec | None],
        previous: Mapping[TableName, TableSettings],
    ) -> Mistakes:
        """Return the mistakes, given the settings of the last run."""
        mistakes = Mistakes()
        for name, entry in self.entries.items():
            lines = mistakes.outdated if previous.get(name) == entry.settings else mistakes.new
            if name in tables:
                table = described(name) if entry.columns else None
                lines += () if table is None else entry.mistakes(name, table)
            elif not entry.is_optional:
                hint = nearest(name.name, [table.name for table in tables])
                lines.append(f"{entry.location}: no table {name} is replicated, and it is not optional{hint}")
        return mistakes
