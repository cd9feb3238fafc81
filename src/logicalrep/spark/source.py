"""The data source that Spark knows as `logicalrep`."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from logicalrep.spark.options import OptionError, SourceOptions, read_options
from logicalrep.spark.schemas import TYPED_COLUMNS, feed_schema
from logicalrep.spark.worker import Shipped


class LogicalRepDataSource(Shipped, DataSource):
    """A PostgreSQL replication slot as a stream of committed row changes.

        register(spark)
        changes = (
            spark.readStream.format("logicalrep")
            .option("dsn", "host=db.example.org dbname=shop user=replicator")
            .option("slot", "spark")
            .option("publication", "shop")
            .option("create_slot", "true")
            .load()
        )

    Where to read from: `dsn`, or libpq's parameters (`host`, `user`, `password` ...) and its environment; `slot`,
    `publication` (several with commas), `create_slot` and `failover` (false).
    What to read: `table` for one table in its own columns, or `tables` (all) for the change feed; `messages` (false),
    `relations` (false: schema changes as rows), `origin` (any), `values` (map or variant), `new_columns` (error or
    null), `text_columns` (none: columns of the table to read as strings).
    How to read: `mode` (peek or walsender), `protocol_version` (the newest), `binary` (false), `two_phase` (false),
    `streaming` (the most that the protocol has; walsender only), `decoding_sessions` (2; peek only),
    `max_changes_per_batch` and `max_bytes_per_batch` (none), `max_wal_per_batch` (256m, none with Spark 4.0 and 4.1),
    `poll_interval` (0.1 s), `idle_advance_bytes` (16m), `retry_timeout` (60 s), `rows_per_record_batch` (10000, with
    `table` 30000), `memory_limit` (64m); `spool`, `segment_bytes` (32m) and `spool_bytes` (8g) for walsender.
    `spark.read` takes `path` as well: capture files or segments, a folder or a pattern; or `snapshot`: the rows that
    `table` had where the slot begins; without either, it peeks into the slot.
    `docs/spark.md` has all of them in a table.
    """

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "logicalrep"

    def schema(self) -> StructType:
        """The change feed's columns; those of the table where one is named, as the server has them now."""
        options = self._options()
        if options.table is None:
            return feed_schema(options.values)
        if options.path is not None:
            raise OptionError("option 'table' reads the columns from the server; with 'path' give them by .schema(...)")
        from logicalrep.spark.typed_tables.table_schema import relation_on_server, relation_schema

        relation, catalog = relation_on_server(options)
        return relation_schema(relation, options.text_columns, catalog)

    def reader(self, schema: StructType) -> DataSourceReader:
        """What reads captures, segments or the rows of a snapshot, or peeks into the slot."""
        options = self._options()
        _check_schema(options, schema)
        if options.snapshot is not None:
            from logicalrep.spark.snapshot_reader import SnapshotReader

            return SnapshotReader(options, options.snapshot, schema)
        from logicalrep.spark.batch import BatchReader

        return BatchReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """What reads the slot."""
        options = self._options()
        if options.path is not None:
            raise OptionError("option 'path' is for spark.read; a stream reads a slot")
        if options.snapshot is not None:
            raise OptionError("option 'snapshot' is for spark.read; a stream reads what comes after it")
        _check_schema(options, schema)
        if options.mode == "walsender":
            from logicalrep.spark.walsender.stream import WalsenderStreamReader

            return WalsenderStreamReader(options, schema)
        from logicalrep.spark.peek.stream import PeekStreamReader

        return PeekStreamReader(options, schema)

    def _options(self) -> SourceOptions:
        return read_options(dict(self.options))


def _check_schema(options: SourceOptions, schema: StructType) -> None:
    """Refuse what .schema(...) may have given; a table's own columns are held against its descriptions later."""
    if options.table is None:
        if schema.names != feed_schema(options.values).names:
            raise OptionError(
                "the change feed's columns cannot be chosen by .schema(...): leave it out, and select what you want"
            )
    elif schema.names[-len(TYPED_COLUMNS) :] != [field.name for field in TYPED_COLUMNS]:
        last = ", ".join(f"{field.name} {field.dataType.simpleString()} NOT NULL" for field in TYPED_COLUMNS)
        raise OptionError(f"the schema of a typed table has its own columns and then these: {last}")
    missing = [name for name in options.text_columns if name not in schema.names[: -len(TYPED_COLUMNS)]]
    if missing:
        raise OptionError(f"option 'text_columns' names {', '.join(missing)}: {options.table} has no such column")
