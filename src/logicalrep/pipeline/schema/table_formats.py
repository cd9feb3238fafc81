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
    """Whether commits to tables can go through a catalog."""
    has_change_feeds: bool = False
    """Whether a commit can have files with the rows before and after its changes."""
    versions: tuple[int, ...] = ()
    """The versions of the format that tables can have, default first; empty if replicate chooses the features."""
    row_marks_with_lineage: str | None = None
    """The name of the marks in tables with row lineage."""
    refused_characters: str = ""
    """The characters that names of columns cannot have, beyond the characters that no format can have."""
    reserved_columns: frozenset[str] = frozenset()
    """The names of the format's own columns, which readers add to each table."""


FORMATS: Mapping[FormatName, FormatAbilities] = {
    "delta": FormatAbilities(
        row_marks="Delta's deletion vectors",
        has_field_ids=False,
        hides_partitions=False,
        has_catalogs=False,
        has_change_feeds=True,
    ),
    "iceberg": FormatAbilities(
        row_marks="Iceberg's position deletes",
        has_field_ids=True,
        hides_partitions=True,
        has_catalogs=True,
        versions=(2, 3),
        row_marks_with_lineage="Iceberg's deletion vectors",
        # Readers take a dot for the path to a field within a column.
        refused_characters=".",
        # "Reserved Field IDs" in the Iceberg Table Spec.
        reserved_columns=frozenset(
            (
                "_change_ordinal",
                "_change_type",
                "_commit_snapshot_id",
                "_deleted",
                "_file",
                "_last_updated_sequence_number",
                "_partition",
                "_pos",
                "_row_id",
                "_spec_id",
            )
        ),
    ),
}
DEFAULT_FORMAT: FormatName = "delta"
