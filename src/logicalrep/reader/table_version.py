"""A version of a stored table, for Arrow, Polars, pandas, DuckDB and Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, reduce
from operator import and_
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from logicalrep.options.kinds import OptionError
from logicalrep.pipeline.formats.stored_table import StoredTable, TableFormat
from logicalrep.pipeline.storage.storage import DamagedError, Storage
from logicalrep.reader.conditions import Condition
from logicalrep.reader.errors import ReadError
from logicalrep.reader.scan import Scan, matching_files
from logicalrep_runtime.scalars import Lsn

if TYPE_CHECKING:
    import duckdb
    import pandas  # type: ignore[import-untyped]
    import polars
    from pyspark.sql import DataFrame, SparkSession


_UNREADABLE = ds.FileSystemDataset(
    [ds.ParquetFileFormat().make_fragment("/TableVersion is read by its own methods", LocalFileSystem())],
    pa.schema([]),
    ds.ParquetFileFormat(),
    LocalFileSystem(),
)
"""What Arrow's own code finds in a TableVersion if it does not call its methods: an error, never rows."""


@dataclass(frozen=True)
class TableVersion(ds.UnionDataset):  # type: ignore[misc]
    """A version of a stored table: its rows and columns at the time of the version.

    It is a dataset of pyarrow: DuckDB, Polars, pyarrow and pandas accept it, and read only the columns and the files
    that a query needs. It reads files when you request rows, a few at a time, as often as you request them.
    `logicalrep.read` and `logicalrep.at` return it.

    Example:
        >>> orders = logicalrep.read("lake", "public.orders")
        >>> duckdb.sql("SELECT sum(price) FROM orders WHERE day >= '2026-11-01'")
        >>> orders.lazy().filter(polars.col("price") > 10).select("id").collect()
        >>> orders.select(["id", "price"], where=[("day", ">=", date(2026, 11, 1))]).pandas()
    """

    tables: TableFormat
    """The destination's table format."""
    name: str
    """The table's name as in SQL; with `~history` or `~changes` for a companion table."""
    folder: str
    """The folder of the table's files at the destination."""
    version: int
    """The stored table's version."""
    lsn: Lsn
    """The version has every commit up to this LSN, and none after it."""
    commit: str | None = None
    """`Head.commit`, which distinguishes commits with the same version number; None if unknown."""
    columns: tuple[str, ...] | None = None
    """The columns to read; None for all."""
    where: tuple[Condition, ...] = ()
    """The conditions that all read rows satisfy."""

    def __post_init__(self) -> None:
        super().__init__(pa.schema([]), [_UNREADABLE])

    def __reduce__(self) -> tuple[type[TableVersion], tuple[object, ...]]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    @property
    def storage(self) -> Storage:
        """The destination."""
        return self.tables.storage

    @property
    def uri(self) -> str:
        """The URI or path of the table's folder."""
        return self.storage.uri_of(self.folder)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns to read, with their Arrow types. Raises ReadError if the version has been removed."""
        schema = self._stored.table.stored
        return schema if self.columns is None else pa.schema([schema.field(name) for name in self.columns])

    def select(self, columns: Sequence[str] | None = None, where: Sequence[Sequence[object]] = ()) -> TableVersion:
        """Return the version with fewer columns and rows. Files without matching rows are not opened.

        Args:
            columns: the names of the columns to read; None for the current columns.
            where: conditions that all rows must satisfy, in addition to the current conditions: each has a column, an
                operator (`=`, `!=`, `<`, `<=`, `>`, `>=` or `in`), and a value of the column's type, or for `in` a
                list of values.

        Raises:
            OptionError: a column does not exist, or a value does not have its column's type.
            ReadError: the version has been removed.

        Example:
            >>> orders.select(["id", "price"], where=[("day", ">=", "2026-11-01"), ("kind", "in", ["a", "b"])])
        """
        schema = self._stored.table.stored
        if unknown := sorted(set(columns or ()) - set(schema.names)):
            raise OptionError(f"option 'columns' names {', '.join(unknown)}: {self.name} has {', '.join(schema.names)}")
        conditions = tuple(Condition.of(condition, schema) for condition in where)
        return replace(self, columns=self.columns if columns is None else tuple(columns), where=self.where + conditions)

    def batches(self) -> pa.RecordBatchReader:
        """Return the rows as a stream of record batches, for tables larger than the memory.

        Raises while you read it:
            ReadError: files of the version have been removed.
            StorageError: the destination cannot be read.
        """
        return self.scanner().to_reader()

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **options: object
    ) -> Scan:
        """Return a scan of columns and rows, as pyarrow's datasets do; DuckDB and Polars call it with their queries.

        Args:
            columns: the names of the columns to read; None for the current columns.
            filter: a condition of pyarrow that all rows must satisfy, in addition to the current conditions. Files
                without such rows are not opened.
            options: options of pyarrow's scanners, which change no rows and are ignored.

        Raises:
            OptionError: a column does not exist.
            ReadError: the version has been removed.

        Example:
            >>> orders.scanner(["id"], pc.field("price") > 10).to_table()
        """
        selected = self if columns is None else self.select(columns)
        condition = self._condition if filter is None or self._condition is None else self._condition & filter
        return Scan(self._stored, selected.schema, filter if condition is None else condition, self._version_gone)

    def _refuse(self, *arguments: object, **named: object) -> NoReturn:
        """Raise NotImplementedError: call this method of pyarrow's datasets on the table of `to_table`."""
        raise NotImplementedError("a TableVersion has no plan of pyarrow: call this on the table of to_table(…)")

    filter = get_fragments = join = join_asof = replace_schema = sort_by = _refuse

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as a new stream in Arrow's C stream interface, which other libraries read."""
        return self.batches().__arrow_c_stream__(requested_schema)

    def arrow(self) -> pa.Table:
        """Return all rows in memory as an Arrow table. Raises the errors of `batches`."""
        return self.batches().read_all()

    def lazy(self) -> polars.LazyFrame:
        """Return the rows as a LazyFrame of Polars, which reads the columns and files that its query needs."""
        import polars

        return polars.scan_pyarrow_dataset(self)

    def polars(self) -> polars.DataFrame:
        """Return all rows in memory as a DataFrame of Polars. Raises the errors of `batches`."""
        import polars

        frame = polars.from_arrow(self.arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def pandas(self) -> pandas.DataFrame:
        """Return all rows in memory as a DataFrame of pandas. Raises the errors of `batches`.

        As usual in pandas, integer columns with NULL become floats.
        """
        frame: pandas.DataFrame = self.arrow().to_pandas()
        return frame

    def duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """Return the rows as a relation of DuckDB, which reads the files at each execution.

        Args:
            connection: a connection of DuckDB; None for its default connection.

        Example:
            >>> read("lake", "public.orders").duckdb().aggregate("sum(price)")
        """
        import duckdb

        return (connection or duckdb.default_connection()).from_arrow(self)

    def spark(self, session: SparkSession | None = None) -> DataFrame:
        """Return the rows as a DataFrame of Spark. The executors read the files, and need access to the destination.

        Args:
            session: a session of Spark; None for a new local session.

        Raises:
            ReadError: files of the version have been removed.
            StorageError: the destination cannot be read.
        """
        from logicalrep.reader.spark_rows import read_spark_rows
        from logicalrep.spark import session as start_session
        from logicalrep.spark.frames.events import column

        stored = self._stored
        try:
            rows = read_spark_rows(session or start_session(), stored, matching_files(stored, self._condition))
        except DamagedError as error:
            raise self._version_gone(error.description) from None
        for condition in self.where:
            values, spark_column = [value.as_py() for value in condition.values], column(condition.column)
            rows = rows.where(
                spark_column.isin(values) if condition.operator == "in" else condition.compare(spark_column, values[0])
            )
        return rows if self.columns is None else rows.select(*map(column, self.columns))

    @property
    def _condition(self) -> pc.Expression | None:
        return reduce(and_, [condition.expression for condition in self.where]) if self.where else None

    @cached_property
    def _stored(self) -> StoredTable:
        try:
            stored = self.tables.open(self.folder, self.version)
        except DamagedError as error:
            raise self._version_gone(error.description) from None
        if stored is None:
            raise self._version_gone("the table's log does not have it")
        if None not in (self.commit, stored.head.commit) and self.commit != stored.head.commit:
            raise self._version_gone(
                "the table was restored to an earlier state, and another commit has its number now"
            )
        return stored

    def _version_gone(self, reason: str) -> ReadError:
        return ReadError(
            f"version {self.version} of {self.name} can no longer be read: {reason}. Old versions remain for the hours "
            "of --keep, as long as they are at most twenty times as large as the table",
            code="VERSION_GONE",
        )
