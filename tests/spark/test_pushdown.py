"""What PySpark tells a Python source of a query: no columns, a stream's source no filters, a batch's only if asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.types import StructType


class Numbers(DataSource):
    """A source of two columns that says how many columns it was asked for."""

    @classmethod
    def name(cls) -> str:
        return "numbers"

    def schema(self) -> str:
        return "columns int, other int"

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(schema)


class _Reader(DataSourceReader):
    def __init__(self, schema: StructType) -> None:
        self._count = len(schema.names)

    def read(self, partition: InputPartition) -> Iterator[tuple[int, int]]:
        yield self._count, 0


class Filtered(Numbers):
    """The same, which takes filters."""

    @classmethod
    def name(cls) -> str:
        return "filtered"

    def reader(self, schema: StructType) -> DataSourceReader:
        class Reader(_Reader):
            def pushFilters(self, filters: list[Filter]) -> Sequence[Filter]:  # noqa: N802
                return filters

        return Reader(schema)


def test_a_source_is_asked_for_all_columns(spark: Any) -> None:
    spark.dataSource.register(Numbers)
    assert [tuple(row) for row in spark.read.format("numbers").load().select("columns").collect()] == [(2,)]
    assert not any("column" in name.lower() for name in dir(DataSourceReader))


def test_the_source_of_a_stream_is_told_no_filters() -> None:
    assert hasattr(DataSourceReader, "pushFilters")
    assert not hasattr(DataSourceStreamReader, "pushFilters")


def test_a_batch_whose_source_takes_filters_ends(spark: Any) -> None:
    spark.dataSource.register(Filtered)
    with pytest.raises(AnalysisException, match=r"spark\.sql\.python\.filterPushdown\.enabled"):
        spark.read.format("filtered").load().where("other = 0").collect()
