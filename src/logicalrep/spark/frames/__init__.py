"""Typed changes to tables: a batch of a typed table's rows, applied to a copy of the table."""

from __future__ import annotations

from logicalrep.spark.frames.fitting import MergeError
from logicalrep.spark.frames.merging import changed_rows, merged

__all__ = ["MergeError", "changed_rows", "merged"]
