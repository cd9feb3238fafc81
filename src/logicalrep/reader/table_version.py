"""One version of a table at a destination, as rows for the programs of analysts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from logicalrep.options.kinds import OptionError
from logicalrep.pipeline.formats.stored_table import StoredTable, TableFormat
from logicalrep.pipeline.storage.data_files import DataFile, read_rows
from logicalrep.pipeline.storage.storage import DamagedError, Storage
from logicalrep.reader.conditions import Condition
from logicalrep.reader.errors import ReadError
from logicalrep_runtime.scalars import Lsn

if TYPE_CHECKING:
    import duckdb
    import pandas  # type: ignore[import-untyped]
    import polars
    from pyspark.sql import DataFrame, SparkSession


_AHEAD = 4
"""The most files that are read at the same time: so many are in memory beside the rows that were passed on."""


@dataclass(frozen=True)
class TableVersion:
    """One version of a table: its rows, without those that are marked as gone, in the columns that it had then.

    It is a stream of Arrow that can be read again and again: DuckDB, Polars and pyarrow take it as it is. Nothing is
    read before somebody asks for rows, and then file by file.

    Example:
        >>> orders = logicalrep.read("lake", "public.orders")
        >>> duckdb.sql("SELECT sum(price) FROM orders")
        >>> orders.select(["id", "price"], where=[("day", ">=", date(2026, 11, 1))]).pandas()
    """

    tables: TableFormat
    """The destination's tables, in the format that they have."""
    name: str
    """The table, as in SQL; with `~history` or `~changes` for a companion table."""
    folder: str
    """The folder of its files at the destination."""
    version: int
    """The version of the stored table."""
    lsn: Lsn
    """It has all commits up to this LSN, and none after it."""
    commit: str | None = None
    """What tells its commit from others of the same version, as `Head.commit`; None if that is not known."""
    columns: tuple[str, ...] | None = None
    """The columns that are read; None for all."""
    where: tuple[Condition, ...] = ()
    """The conditions that all rows meet that are read."""

    @property
    def storage(self) -> Storage:
        """The destination."""
        return self.tables.storage

    @property
    def uri(self) -> str:
        """The URI, or the path, of its folder."""
        return self.storage.uri_of(self.folder)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns that are read. Raises ReadError if the version is gone."""
        schema = self._stored.table.stored
        return schema if self.columns is None else pa.schema([schema.field(name) for name in self.columns])

    def select(self, columns: Sequence[str] | None = None, where: Sequence[Sequence[object]] = ()) -> TableVersion:
        """Return some columns of the rows that meet conditions. Files that have none of these are not opened.

        Args:
            columns: the columns; None for those that were read before.
            where: conditions, all of which a row meets: a column, an operator (`=`, `!=`, `<`, `<=`, `>`, `>=` or
                `in`), and a value of the column's type, or a list of values for `in`.

        Raises:
            OptionError: a column is not there, or is no match for a value.
            ReadError: the version is gone.
        """
        there = self._stored.table.stored
        if unknown := sorted(set(columns or ()) - set(there.names)):
            raise OptionError(f"option 'columns' names {', '.join(unknown)}: {self.name} has {', '.join(there.names)}")
        conditions = tuple(Condition.of(each, there) for each in where)
        return replace(self, columns=self.columns if columns is None else tuple(columns), where=self.where + conditions)

    def batches(self) -> pa.RecordBatchReader:
        """Return the rows as a stream, for tables that are larger than the memory.

        Reading it raises ReadError if the version's files are gone, and StorageError if they cannot be read now.
        """
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as a new stream in Arrow's C interface, by which other libraries take them."""
        return self.batches().__arrow_c_stream__(requested_schema)

    def arrow(self) -> pa.Table:
        """Return the rows in memory, as Arrow. Raises what reading `batches` raises."""
        return self.batches().read_all()

    def polars(self) -> polars.DataFrame:
        """Return the rows in memory, as Polars has them."""
        import polars

        found = polars.from_arrow(self.arrow())
        assert isinstance(found, polars.DataFrame)
        return found

    def pandas(self) -> pandas.DataFrame:
        """Return the rows in memory, as pandas has them; integers with NULL become floats, as in all of pandas."""
        found: pandas.DataFrame = self.arrow().to_pandas()
        return found

    def duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """Return the rows as a relation of DuckDB, which reads the files each time that it is executed.

        Args:
            connection: a connection; None for DuckDB's own one.
        """
        import duckdb

        return (connection or duckdb.default_connection()).from_arrow(self)

    def spark(self, session: SparkSession | None = None) -> DataFrame:
        """Return the rows as a DataFrame of Spark, whose executors read the files: they have to reach the destination.

        Args:
            session: a session; None for a local one.
        """
        from logicalrep.reader.spark_rows import read_spark_rows
        from logicalrep.spark import session as start_session
        from logicalrep.spark.frames.events import column

        stored = self._stored
        try:
            rows = read_spark_rows(session or start_session(), stored)
        except DamagedError as error:
            raise self._gone(error.description) from None
        for each in self.where:
            values, its = [value.as_py() for value in each.values], column(each.column)
            rows = rows.where(its.isin(values) if each.operator == "in" else each.compare(its, values[0]))
        return rows if self.columns is None else rows.select(*map(column, self.columns))

    @cached_property
    def _stored(self) -> StoredTable:
        try:
            stored = self.tables.open(self.folder, self.version)
        except DamagedError as error:
            raise self._gone(error.description) from None
        if stored is None:
            raise self._gone("its log does not have it")
        if None not in (self.commit, stored.head.commit) and self.commit != stored.head.commit:
            raise self._gone("the table was restored to an earlier state, and another commit has its number now")
        return stored

    def _batches(self) -> Iterator[pa.RecordBatch]:
        files = [file for file in self._stored.files.values() if all(each.may_hold(file) for each in self.where)]
        pool = ThreadPoolExecutor(_AHEAD, thread_name_prefix="logicalrep-read")
        try:
            waiting = iter(files)
            reading = deque(pool.submit(self._read, file) for file in islice(waiting, _AHEAD))
            while reading:
                rows = reading.popleft().result()
                reading.extend(pool.submit(self._read, file) for file in islice(waiting, 1))
                yield from rows.to_batches()
        finally:
            pool.shutdown(cancel_futures=True)

    def _read(self, file: DataFile) -> pa.Table:
        """Return those rows of a file, and columns, that are wanted."""
        names = self.schema.names
        needed = list(dict.fromkeys([*names, *(each.column for each in self.where)]))
        try:
            rows = read_rows(self.storage, self.folder, file, self._stored.table.stored, needed)
        except DamagedError as error:
            raise self._gone(error.description) from None
        for each in self.where:
            rows = rows.filter(each.expression)
        return rows.select(names)

    def _gone(self, reason: str) -> ReadError:
        return ReadError(
            f"version {self.version} of {self.name} cannot be read any more: {reason}. Old versions stay for the hours "
            "of --keep, and as long as they take at most twenty times as much as the table",
            code="VERSION_GONE",
        )
