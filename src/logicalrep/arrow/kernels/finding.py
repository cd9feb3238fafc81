"""The positions of rows, for the compiled loaders."""

from __future__ import annotations

from typing import NamedTuple

from logicalrep_runtime.columnar.located import Int64s


class RowCells(NamedTuple):
    rows: Int64s
    cells: Int64s
