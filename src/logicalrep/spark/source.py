"""Spark's data source `logicalrep`."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from logicalrep.spark.options import OptionError, SourceOptions, read_options
from logicalrep.spark.schemas import TYPED_COLUMNS, feed_schema
from logicalrep.spark.worker import PickledForWorkers
from logicalrep.transactions.logs import warn


class LogicalRepDataSource(PickledForWorkers, DataSource):
    """A PostgreSQL replication slot as a stream of committed row changes.

    `docs/reference/spark-options.md` lists all options with their defaults. `dsn`, or libpq's parameters (`host`,
    `user`, `password` ...) and its environment, name the server. `table` selects one table in its own columns;
    without `table` the source returns the change feed. `mode` is auto, peek or walsender. `spark.read` also takes
    `path` (capture files), or `snapshot` (the rows of `table` at the start of the slot); without either, it reads
    the changes of the slot and does not advance the slot.

    Raises, when a query starts:
        OptionError: an option is unknown, missing or invalid.
        PreflightError: the server, the slot or the publication does not meet a requirement.

    `register` makes it known to a session, for `spark.readStream.format("logicalrep")`.

    Example:
        >>> LogicalRepDataSource({"path": "changes.capture"}).schema().names[:3]
        ['op', 'schema', 'table']
    """

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "logicalrep"

    def schema(self) -> StructType:
        """Return the change feed's schema, or the current schema of the table in the option `table`."""
        options = self.read_source_options()
        if options.table is None:
            return feed_schema()
        if options.path is not None:
            raise OptionError(
                "option 'table' with 'path': captures do not have the types of columns; give them by .schema(...)"
            )
        from logicalrep.spark.typed_tables.table_schema import query_relation, relation_schema

        relation, catalog = query_relation(options)
        return relation_schema(relation, options.text_columns, catalog)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of `spark.read`: for a snapshot's rows, for capture files, or for a slot."""
        options = self.read_source_options()
        if options.listen is not None:
            raise OptionError("option 'listen' is for readStream: a batch ends before Prometheus could scrape it")
        _check_schema(options, schema)
        if options.snapshot is not None:
            from logicalrep.spark.snapshot_reader import SnapshotReader

            return SnapshotReader(options, options.snapshot, schema)
        from logicalrep.spark.batch import BatchReader

        return BatchReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of `spark.readStream`, which the option `mode` selects."""
        options = self.read_source_options()
        if options.path is not None:
            raise OptionError("option 'path' is for spark.read; a stream reads a slot")
        if options.snapshot is not None:
            raise OptionError("option 'snapshot' is for spark.read; a stream reads the changes after it")
        _check_schema(options, schema)
        if options.mode == "peek":
            from logicalrep.spark.peek.stream import PeekStreamReader

            return PeekStreamReader(options, schema)
        if options.mode == "walsender" and options.uses_spool:
            from logicalrep.spark.walsender.stream import WalsenderStreamReader

            return WalsenderStreamReader(options, schema)
        from logicalrep.spark.auto import AutoStreamReader

        return AutoStreamReader(options, schema)

    def read_source_options(self) -> SourceOptions:
        """Return the checked options with their types, and log warnings about the connection. Raises OptionError."""
        options = read_options(dict(self.options))
        warn(options.connection.warnings)
        return options


class ConnectDataSource(LogicalRepDataSource):
    """The source in a session of Spark Connect. Its server logs all options, so passwords among them are refused."""

    def read_source_options(self) -> SourceOptions:
        options = super().read_source_options()
        if secrets := options.connection.secrets:
            raise OptionError(
                f"{', '.join(secrets)} among the options, or in 'dsn': Spark Connect writes options to the event log "
                "in clear, and may have done so now: change the password, and put it in PGPASSWORD or in a password "
                "file, in the environment of Spark's server and of its executors"
            )
        return options


def _check_schema(options: SourceOptions, schema: StructType) -> None:
    """Refuse an unsuitable schema from .schema(...); a table's own columns are compared with its descriptions later."""
    if options.table is None:
        if schema.names != feed_schema().names:
            raise OptionError(
                "the change feed's columns cannot be chosen by .schema(...): remove it, and select columns instead"
            )
    elif schema.names[-len(TYPED_COLUMNS) :] != [field.name for field in TYPED_COLUMNS]:
        last = ", ".join(f"{field.name} {field.dataType.simpleString()} NOT NULL" for field in TYPED_COLUMNS)
        raise OptionError(f"the schema of a typed table must end with these columns: {last}")
    missing = [name for name in options.text_columns if name not in schema.names[: -len(TYPED_COLUMNS)]]
    if missing:
        raise OptionError(f"option 'text_columns' names {', '.join(missing)}: {options.table} has no such column")
