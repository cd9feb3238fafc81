"""A table's typed rows from its rows in the change feed, in Python workers of Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from logicalrep.arrow.table.feed_decoder import FeedDecoder
from logicalrep.spark.schemas import arrow_schema
from logicalrep.spark.typed_tables.table_schema import relation_schema
from logicalrep.spark.worker import PickledForWorkers


class FeedTable(FeedDecoder, PickledForWorkers):
    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema(relation_schema(self.relation, self.text_columns, self.catalog))
        yield from self.typed(batches, schema)
