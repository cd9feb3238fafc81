"""The settings of one table, which are stored in the properties of the stored table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from logicalrep.options.kinds import OptionError
from logicalrep.pipeline.schema.file_partitions import WantedPartition
from logicalrep.pipeline.schema.table_formats import DEFAULT_FORMAT, FORMATS, FormatAbilities, FormatName
from logicalrep_runtime.errors import LogicalRepError

Mask = Literal["hashed", "nulled"]
WriteMode = Literal["copy-on-write", "merge-on-read"]
_FORMAT_VERSION, _VERSION_WITH_LINEAGE = 2, 3
_WAYS_OF_STORING = ("write_mode", "change_data_feed", "partition_by", "format_version")
"""The settings that change files, and neither rows nor columns."""


class ProtectedColumnError(LogicalRepError, ValueError):
    code = "COLUMN_PROTECTED"


class OwnKeyError(LogicalRepError, ValueError):
    """Columns that the settings name as the key, but that may not identify rows."""

    code = "KEY_NOT_UNIQUE"

    @classmethod
    def of(cls, table: object, key: Sequence[str]) -> Self:
        return cls(
            f"the settings by table give {table} the key {', '.join(key)}: it needs REPLICA IDENTITY FULL, "
            "and a unique index of exactly these columns, all NOT NULL, that is valid, not deferrable and not partial"
        )


class KeyNotSentError(LogicalRepError, ValueError):
    """Updates or deletes whose rows cannot be found, as PostgreSQL does not send a column of the replica identity."""

    code = "KEY_NOT_SENT"

    @classmethod
    def of(cls, table: object) -> Self:
        return cls(
            f"the server sends updates or deletes of {table} without a column of its replica identity, as with "
            f"generated columns, so their rows cannot be found: run ALTER TABLE {table} REPLICA IDENTITY FULL"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class TableSettings:
    """Settings stored with a table; a change reloads it, except of settings that store equal rows in another way.

    Raises OptionError for invalid settings.
    """

    unrepresentable: Literal["error", "null", "text"] = "error"
    """The result for values that the column's type cannot hold: an error, NULL, or NULL and a text column."""
    numeric: str = "text"
    """The type of columns of unbounded `numeric`: `text`, `double` or `decimal(p,s)`."""
    numeric_columns: Mapping[str, str] = field(default_factory=dict)
    deletes: Literal["hard", "soft"] = "hard"
    history: bool = False
    """Whether the companion table `~history` has every version of each row."""
    append: bool = False
    """Whether the companion table `~changes` has all changes."""
    key: tuple[str, ...] = ()
    """The columns of a unique index to use as the key with REPLICA IDENTITY FULL; empty for the primary key."""
    masked: Mapping[str, Mask] = field(default_factory=dict)
    """The columns whose values are written as a keyed hash of the server's text, or as NULL."""
    left_out: tuple[str, ...] = ()
    mask_key: str | None = None
    """The check value of the hash key; None if no column is hashed."""
    origin: Literal["any", "none"] = "any"
    """`none` leaves out changes that were replayed from another server; equal for all tables."""
    write_mode: WriteMode = "copy-on-write"
    """Whether a delete rewrites the data file, or marks the row in a file beside it."""
    format: FormatName = DEFAULT_FORMAT
    """The format of the stored table; equal for all tables."""
    format_version: int = _FORMAT_VERSION
    """The version of Iceberg's format; a table with a newer version keeps it."""
    change_data_feed: bool = False
    """Whether each commit of a Delta table has files with the rows before and after its changes."""
    partition_by: tuple[str, ...] = ()
    """The file partitions: columns, `day(COLUMN)`, `month(COLUMN)` or `bucket(COUNT, COLUMN)`."""

    def __post_init__(self) -> None:
        if self.append and self.unrepresentable != "error":
            raise OptionError(
                f"append stores changes unaltered, and unrepresentable = {self.unrepresentable} alters values: remove "
                "one of the two"
            )
        if self.format_version != _FORMAT_VERSION and self.format_version not in self.abilities.versions:
            raise OptionError(f"format_version is {self.format_version}, which is for Iceberg tables: remove it")
        if self.write_mode == "merge-on-read" and self.abilities.row_marks is None:
            raise OptionError(f"tables in the format {self.format} cannot mark rows: remove write_mode")
        if self.change_data_feed and not self.abilities.has_change_feeds:
            raise OptionError(f"tables in the format {self.format} have no change data feed: remove change_data_feed")
        for name in sorted(self.masked.keys() & set(self.left_out)):
            raise OptionError(f"the column {name} is both masked and left out: choose one of the two")
        try:
            columns = [partition.column for partition in self.wanted_partitions]
        except ValueError as error:
            raise OptionError(f"partition_by: {error}") from None
        for name in columns:
            if columns.count(name) > 1:
                raise OptionError(f"partition_by names the column {name} twice: remove one of the two")
            if not self.writes(name):
                raise OptionError(f"partition_by names the column {name}, whose values are not written")

    @property
    def wanted_partitions(self) -> tuple[WantedPartition, ...]:
        return tuple(map(WantedPartition.of, self.partition_by))

    @property
    def protected(self) -> frozenset[str]:
        return frozenset((*self.masked, *self.left_out))

    def writes(self, column: str) -> bool:
        """Return whether a column's values are written, unaltered or hashed."""
        return column not in self.left_out and self.masked.get(column) != "nulled"

    @property
    def abilities(self) -> FormatAbilities:
        return FORMATS[self.format]

    @property
    def has_row_lineage(self) -> bool:
        """Whether each row has an id that updates and merges keep."""
        return self.format_version >= _VERSION_WITH_LINEAGE

    @property
    def row_marks(self) -> str | None:
        """The name of the marks of deleted rows, for messages."""
        return self.abilities.row_marks_with_lineage if self.has_row_lineage else self.abilities.row_marks

    def number_type(self, column: str) -> str:
        return self.numeric_columns.get(column, self.numeric)

    def has_same_rows(self, other: TableSettings) -> bool:
        """Return whether a table has the same rows and columns under other settings."""
        storing = {name: getattr(other, name) for name in _WAYS_OF_STORING}
        return replace(self, **storing) == other

    def with_later_version(self, other: TableSettings) -> TableSettings:
        """Return the settings with the later format version of both: no commit lowers the version of a table."""
        return replace(self, format_version=max(self.format_version, other.format_version))
