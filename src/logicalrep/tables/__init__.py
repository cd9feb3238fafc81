"""From typed changes to tables: what a batch of a typed table's rows makes of a copy of it."""

from __future__ import annotations

from logicalrep.tables.fitting import MergeError
from logicalrep.tables.merging import changed_rows, merged

__all__ = ["MergeError", "changed_rows", "merged"]
