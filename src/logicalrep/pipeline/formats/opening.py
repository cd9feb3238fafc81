"""The format of a destination's tables: the one module that knows which formats there are."""

from __future__ import annotations

from logicalrep.pipeline.formats.delta.delta_log import DeltaTables
from logicalrep.pipeline.formats.stored_table import TableFormat
from logicalrep.pipeline.storage.storage import Storage


def table_format(storage: Storage) -> TableFormat:
    """Return the tables of a destination in the format that they have."""
    return DeltaTables(storage)
