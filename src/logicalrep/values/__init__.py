"""Column values: PostgreSQL's text and binary formats to Python, Arrow and Spark, without loss.

    from logicalrep.values import Column, column_type

    price = Column("price", column_type(1700, 655366), table="public.item")   # numeric(10,2)
    price.load("t", b"19.90")                # Decimal('19.90')
    price.type.spark_type                    # 'decimal(10,2)'
    price.load("t", b"19,90")                # ColumnValueError, which names table, column, type and value

`docs/reference/types.md` has the table of types and the rules. The package needs only the standard library; Arrow
types and arrays need pyarrow. Dates, times and intervals in text format must be in the ISO DateStyle and
the IntervalStyle postgres; other styles are an error.

The package does not use psycopg's loaders. They expect a trusted connection: binary loaders read past the end of a
value that is too short, and values beyond datetime and timedelta raise errors or change (months become days).
"""

from __future__ import annotations

from logicalrep.values.arrow import arrow_array, arrow_array_or_text, arrow_value
from logicalrep.values.catalog import CatalogType, TypeCatalog, TypeName
from logicalrep.values.column import Column
from logicalrep.values.column_type import ColumnType
from logicalrep.values.errors import ColumnValueError
from logicalrep.values.resolve import column_type
from logicalrep.values.types.arrays import BoundedArray
from logicalrep.values.types.geometry import Box, Circle, Line, LineSegment, Path, Point, Polygon
from logicalrep.values.types.intervals import Interval
from logicalrep.values.types.ranges import Range
from logicalrep.values.types.records import parse_record
from logicalrep.values.types.temporal import ExtendedDate, ExtendedTime, ExtendedTimestamp

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
