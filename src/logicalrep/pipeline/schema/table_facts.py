"""The facts that a table's description keeps beside its columns: those that prove it, and skipped commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class TypePart(NamedTuple):
    """A label of an enum type, or an attribute of a composite type."""

    type_id: int
    number: int
    """The label's own OID, or the attribute's number; 0 for the number of attributes so far, also of dropped ones."""
    label: str | None
    """The label's text; None for an attribute, whose name is in no text."""
    written: int
    """The `xmin` of its row in the catalog, or the number of attributes."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Facts of the catalog by which a later description of the table tells what was written since.

    An `xmin` is only ever compared with the same one of before: equal means that nothing wrote the row since.
    """

    columns: tuple[tuple[int, str, int, int], ...]
    """The published columns as the server sends them: number, name, type's OID and modifier."""
    columns_written: tuple[tuple[int, int], ...]
    """The numbers of these columns with the `xmin` of their rows, as far as it is known."""
    numbers: int
    """The numbers of columns that were given so far, also to dropped ones."""
    published: tuple[str, ...]
    """The OIDs and the `xmin` of the publications, and of their entries for the table."""
    written: tuple[tuple[int, str], ...]
    """A summary of the `xmin` of the columns and their defaults, for the table and each partition, by OID."""
    links: tuple[tuple[int, int, int], ...]
    """The partitions at all levels: the OID, that of the table above, and the `xmin` of the link between them."""
    labelled: tuple[tuple[int, int, int], ...]
    """The columns with labels: number, enum type's OID, and 0 for a label alone or one of a domain, 1 for labels in
    arrays and ranges, 2 for those in composite types."""
    key_indexes: tuple[tuple[int, int], ...]
    """The indexes that tell rows apart by just the key's columns: the OID of the constraint and 0, or without one that
    of the index and its `xmin`."""
    filled: tuple[int, ...]
    """The OIDs of partitions that rows were sent of, and that the description does not have yet."""
    logged: tuple[str, ...]
    """What changes in the catalog when the table becomes unlogged: its entries in publications, and its TOAST table."""
    lc_monetary: str
    """The setting that the texts of `money` depend on."""


class Skipped(NamedTuple):
    """A commit whose changes of a table are left out, as somebody asked for it."""

    lsn: str
    """The commit's LSN, such as `0/1A2B3C8`."""
    changes: int
    """The number of its changes of the table."""
    at: str
    """The time at which it was skipped, ISO 8601 in UTC."""
