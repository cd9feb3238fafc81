"""The formats that stored tables may have, and what each format can do.

The rooms beside `formats/` ask for an ability, and never compare a format's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

FormatName = Literal["delta", "iceberg"]


@dataclass(frozen=True)
class FormatAbilities:
    """What a table format can do; the suite in `tests/pipeline/formats/test_every_format.py` checks each ability."""

    row_marks: str | None
    """The marks of deleted rows beside a data file, in the words of the format, for people.

    None if the format has none: `write_mode` can be `copy-on-write` alone.
    """
    has_field_ids: bool
    """Whether data files know columns by ids: renaming or dropping a column writes no file anew."""
    hides_partitions: bool
    """Whether the format stores the values of file partitions in its metadata; else they are columns of the table."""
    has_catalogs: bool
    """Whether the tables may be in a catalog."""


FORMATS: Mapping[FormatName, FormatAbilities] = {
    "delta": FormatAbilities(
        row_marks="Delta's deletion vectors", has_field_ids=False, hides_partitions=False, has_catalogs=False
    ),
    "iceberg": FormatAbilities(
        row_marks="Iceberg's position deletes", has_field_ids=True, hides_partitions=True, has_catalogs=True
    ),
}
DEFAULT_FORMAT: FormatName = "delta"
"""The format of tables if no option names one."""
