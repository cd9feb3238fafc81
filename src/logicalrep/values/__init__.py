"""Column values: PostgreSQL's text and binary formats to Python, Arrow and Spark, without loss.

    from logicalrep_pipeline.values import Column, column_type

    price = Column("price", column_type(1700, 655366), table="public.item")   # numeric(10,2)
    price.load("t", b"19.90")                # Decimal('19.90')
    price.type.spark_type                    # 'decimal(10,2)'
    price.load("t", b"19,90")                # ColumnValueError, which names table, column, type and value

`docs/types.md` has the table of types and the rules. The package needs the standard library alone; what makes Arrow
types and arrays needs pyarrow. Dates, times and intervals in text format are read in the ISO DateStyle and the
IntervalStyle postgres; in another style they are refused.

psycopg's loaders are not used. They are made for a trusted connection: its binary loaders read past the end of a value
that is too short, and what datetime and timedelta cannot hold is an error or is changed (months become days).
"""

from __future__ import annotations

from .arrays import BoundedArray
from .arrow import arrow_array, arrow_array_or_text, arrow_value
from .catalog import CatalogType, TypeCatalog, TypeName
from .column import Column
from .column_type import ColumnType
from .errors import ColumnValueError
from .geometry import Box, Circle, Line, LineSegment, Path, Point, Polygon
from .ranges import Range
from .records import parse_record
from .resolve import column_type
from .temporal import ExtendedDate, ExtendedTime, ExtendedTimestamp, Interval

__all__ = [
    "BoundedArray",
    "Box",
    "CatalogType",
    "Circle",
    "Column",
    "ColumnType",
    "ColumnValueError",
    "ExtendedDate",
    "ExtendedTime",
    "ExtendedTimestamp",
    "Interval",
    "Line",
    "LineSegment",
    "Path",
    "Point",
    "Polygon",
    "Range",
    "TypeCatalog",
    "TypeName",
    "arrow_array",
    "arrow_array_or_text",
    "arrow_value",
    "column_type",
    "parse_record",
]
