"""Reads the tables of a destination by name: the current rows, or all tables as of one time.

import logicalrep

orders = logicalrep.read("lake", "public.orders")
orders.polars()        # or pandas(), arrow(), duckdb(), spark()
yesterday = logicalrep.at("lake", "2026-11-25T18:00+01:00")
yesterday["public.orders"].pandas()
"""

from __future__ import annotations

from logicalrep.reader.conditions import Condition
from logicalrep.reader.table_version import TableVersion
from logicalrep.reader.versions import ReadError, Versions, at, read

__all__ = ["Condition", "ReadError", "TableVersion", "Versions", "at", "read"]
