from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class TypePart(NamedTuple):
    """A label of an enum type, or an attribute of a composite type."""

    type_id: int
    number: int
    """The label's OID, or the attribute's number; 0 for the count of attributes, with dropped attributes."""
    label: str | None
    """The label's text; None for an attribute, as texts do not have its name."""
    written: int
    """The `xmin` of its catalog row, or the count of attributes."""


class PartitionBound(NamedTuple):
    """Comparisons that all rows of a partition satisfy; rows of other partitions may satisfy them too."""

    partition: int
    """The partition's OID."""
    column: int
    """The number of the compared column in the partitioned table."""
    comparisons: tuple[tuple[str, str], ...]
    """Operators and texts of values: `=` with each value of a list, of which one holds; or the ends of a range."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """An `xmin` is only compared with an earlier `xmin` of the same row: equal means that the row is unchanged."""

    columns: tuple[tuple[int, str, int, int], ...]
    """The published columns as the server sends them: number, name, type's OID and modifier."""
    columns_written: tuple[tuple[int, int], ...]
    """The numbers of the published columns with the `xmin` of their catalog rows, if it is known."""
    numbers: int
    """The highest number of a column so far, with dropped columns."""
    published: tuple[str, ...]
    """The OIDs and the `xmin` of the publications, and of their entries for the table."""
    written: tuple[tuple[int, str], ...]
    """A summary of the `xmin` of the columns and their defaults, for the table and each partition, by OID."""
    links: tuple[tuple[int, int, int], ...]
    """The partitions at all levels: their OID, their parent's OID, and the `xmin` of the link."""
    bounds: tuple[PartitionBound, ...]
    """The bounds of the partitions in `links`, without bounds that `partition_bounds` cannot use."""
    labelled: tuple[tuple[int, int, int], ...]
    """Number, enum type's OID, and place: 0 in the column or a domain, 1 in arrays and ranges, 2 in composite types."""
    key_indexes: tuple[tuple[int, int], ...]
    """The unique indexes over exactly the key's columns: the constraint's OID and 0, or the index's OID and `xmin`."""
    filled: tuple[int, ...]
    """The OIDs of partitions that PostgreSQL sent rows of, but that the description does not have yet."""
    logged: tuple[str, ...]
    """Catalog entries that all change when the table becomes unlogged: in publications, and of its TOAST table."""
    lc_monetary: str
    """The setting that the texts of `money` depend on."""


class Skipped(NamedTuple):
    lsn: str
    """Such as `0/1A2B3C8`."""
    changes: int
    at: str
    """ISO 8601 in UTC."""
