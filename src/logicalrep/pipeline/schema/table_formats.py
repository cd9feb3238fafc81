"""The abilities of each format. Only `formats/` compares a format's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

FormatName = Literal["delta", "iceberg"]


@dataclass(frozen=True)
class FormatAbilities:
    row_marks: str | None
    """The format's name for marks of deleted rows, for messages; None if only `copy-on-write` is possible."""
    has_field_ids: bool
    """Whether ids identify columns in data files: renaming or dropping a column rewrites no file."""
    hides_partitions: bool
    """Whether the format stores partition values in its metadata; otherwise they are columns of the table."""
    has_catalogs: bool


FORMATS: Mapping[FormatName, FormatAbilities] = {
    "delta": FormatAbilities(
        row_marks="Delta's deletion vectors", has_field_ids=False, hides_partitions=False, has_catalogs=False
    ),
    "iceberg": FormatAbilities(
        row_marks="Iceberg's position deletes", has_field_ids=True, hides_partitions=True, has_catalogs=True
    ),
}
DEFAULT_FORMAT: FormatName = "delta"
