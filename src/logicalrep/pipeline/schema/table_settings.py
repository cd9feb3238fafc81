"""The settings of one table, which its stored table's properties keep."""

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


class ProtectedColumnError(LogicalRepError, ValueError):
    """A column that is to be masked or left out, and is not there, is another one, or is of the key."""

    code = "COLUMN_PROTECTED"


class OwnKeyError(LogicalRepError, ValueError):
    """Columns that are to tell rows apart, and may not do so."""

    code = "KEY_NOT_UNIQUE"

    @classmethod
    def of(cls, table: object, key: Sequence[str]) -> Self:
        """Return the error of a table, with the key that it was to have."""
        return cls(
            f"the settings by table give {table} the key {', '.join(key)}, for which it needs REPLICA IDENTITY FULL, "
            "and a unique index of just these columns, all NOT NULL, that is valid, not deferrable and not partial"
        )


class KeyNotSentError(LogicalRepError, ValueError):
    """Updates or deletes whose rows cannot be found, as a column of the replica identity is not sent."""

    code = "KEY_NOT_SENT"

    @classmethod
    def of(cls, table: object) -> Self:
        """Return the error of a table."""
        return cls(
            f"the server sends updates or deletes of {table} without a column of its replica identity, as it does with "
            f"generated columns, so that their rows cannot be found: run ALTER TABLE {table} REPLICA IDENTITY FULL"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class TableSettings:
    """The way in which a table is kept.

    A table whose settings change is loaded again, but for its `write_mode` and `partition_by`.

    Raises OptionError if `append` is with values that would have to be NULL or texts, if a column is both masked and
    left out, if the format cannot mark rows as `write_mode` wants, or if there can be no such file partitions.

    Example:
        >>> TableSettings(unrepresentable="null")
    """

    unrepresentable: Literal["error", "null", "text"] = "error"
    """The treatment of values that the column's type cannot hold: an error, NULL, or NULL and a column of texts."""
    numeric: str = "text"
    """The type of numbers that fit no decimal, as they have no bound: `text`, `double` or `decimal(p,s)`."""
    numeric_columns: Mapping[str, str] = field(default_factory=dict)
    """The same for some columns."""
    deletes: Literal["hard", "soft"] = "hard"
    """Whether a deleted row goes, or stays and is marked."""
    history: bool = False
    """Whether a second table has every version of each row."""
    append: bool = False
    """Whether another table has all changes, one after another."""
    key: tuple[str, ...] = ()
    """The columns of a unique index that tell rows apart, with REPLICA IDENTITY FULL; none for those of the table."""
    masked: Mapping[str, Mask] = field(default_factory=dict)
    """The columns whose values are written as a keyed hash of the server's text, or as NULL."""
    left_out: tuple[str, ...] = ()
    """The columns that are not written at all."""
    mask_key: str | None = None
    """The check value of the key that hashes; None if no column is hashed."""
    origin: Literal["any", "none"] = "any"
    """`none` leaves out changes that were replayed from another server; it is the same for all tables."""
    write_mode: WriteMode = "copy-on-write"
    """Whether files with deleted rows are written anew, or the rows are marked in a file beside them."""
    format: FormatName = DEFAULT_FORMAT
    """The format of the stored table; it is the same for all tables."""
    partition_by: tuple[str, ...] = ()
    """The file partitions: columns, `day(COLUMN)`, `month(COLUMN)` or `bucket(COUNT, COLUMN)`."""

    def __post_init__(self) -> None:
        if self.append and self.unrepresentable != "error":
            raise OptionError(
                f"append keeps changes as they are, and unrepresentable = {self.unrepresentable} changes values: leave "
                "one of them out"
            )
        if self.write_mode == "merge-on-read" and self.abilities.row_marks is None:
            raise OptionError(f"tables in the format {self.format} cannot mark rows: leave write_mode out")
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
        """The file partitions, with their columns."""
        return tuple(map(WantedPartition.of, self.partition_by))

    @property
    def protected(self) -> frozenset[str]:
        """The columns that are masked or left out."""
        return frozenset((*self.masked, *self.left_out))

    def writes(self, column: str) -> bool:
        """Return whether the values of a column are written, as they are or hashed."""
        return column not in self.left_out and self.masked.get(column) != "nulled"

    @property
    def abilities(self) -> FormatAbilities:
        """What the format of the stored table can do."""
        return FORMATS[self.format]

    def number_type(self, column: str) -> str:
        """Return the type of a column's numbers if they have no bound: `text`, `double` or `decimal(p,s)`."""
        return self.numeric_columns.get(column, self.numeric)

    def has_same_rows(self, other: TableSettings) -> bool:
        """Return whether a table has the same rows and columns with other settings."""
        return replace(self, write_mode=other.write_mode, partition_by=other.partition_by) == other
