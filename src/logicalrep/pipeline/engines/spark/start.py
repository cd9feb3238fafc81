"""The start of the Spark engine, with its session. PySpark is imported late."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from logicalrep.observe.events import WarningIssued
from logicalrep.observe.observer import Observer, passing
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.choice import find_spark
from logicalrep.pipeline.engines.engine import Engine, EngineEndedError, EngineError
from logicalrep.pipeline.engines.reaching import check_destination
from logicalrep.pipeline.engines.spark.checks import warn_of_plain_text, warn_of_scheduling
from logicalrep.pipeline.engines.spark.connect import ConnectJobs
from logicalrep.pipeline.engines.spark.engine import SparkEngine
from logicalrep.pipeline.engines.spark.errors import refuse_ended, spark_errors
from logicalrep.pipeline.engines.spark.jobs import ClassicJobs, SparkJobs
from logicalrep.pipeline.engines.spark.local import LOCAL, SETTINGS, start_apart
from logicalrep.pipeline.engines.spark.shared import SharedSpark, connect
from logicalrep.pipeline.engines.spark.watched_calls import call_watched
from logicalrep.pipeline.state.state import StateError
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.retries import Ended

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHECK_INTERVAL = 0.1
"""The most seconds until the start of Spark notices that it must stop, or that Java has ended."""


@contextmanager
def start_spark(
    settings: ReplicateSettings,
    storage: Storage,
    stop: threading.Event,
    observer: Observer,
    shared: SharedSpark | None = None,
) -> Iterator[Engine]:
    """Yield an engine on the active session, the environment's session, or a new local session, which ends with it.

    A session that is not new is checked: whether its executors can run tasks and reach the destination. With `shared`,
    the Spark of another process of this machine replaces a new local one.

    Raises:
        StateError: the destination is a local folder, and executors on other machines would write into their own.
        ExecutorError: an executor cannot run tasks.
        UnreachedError: an executor does not reach the destination.
        EngineError: Spark does not start.
        EngineEndedError: the Java of the local session has ended; another call starts another session.
        Ended: `stop` was set before Spark had started.
    """
    from pyspark.sql import SparkSession

    from logicalrep.spark.executors import check_executors, is_connect
    from logicalrep.spark.java import forget, quiet_end

    def check_stop() -> None:
        if stop.is_set():
            raise Ended

    def check() -> None:
        check_stop()
        refuse_ended()

    active = SparkSession.getActiveSession()
    is_new = active is None and find_spark() is None
    with ExitStack() as stack:
        try:
            with spark_errors("Spark does not start"):
                # In the main thread, PySpark would replace the handler of Ctrl-C: start it in another thread.
                if is_new:
                    start = partial(start_apart, LOCAL, SETTINGS) if shared is None else partial(connect, shared)
                    spark = call_watched(start, check_stop, _CHECK_INTERVAL)
                else:
                    spark = active or call_watched(SparkSession.builder.getOrCreate, check, _CHECK_INTERVAL)
                executors = "" if is_new else _executors_elsewhere(spark)
            stack.enter_context(quiet_end())
            if is_new:
                stack.enter_context(_stopping(spark))
            if storage.is_local and executors and not settings.shared_folder:
                raise StateError(
                    f"{storage.uri} is a folder, which the executors of {executors} do not share: name an object "
                    "store, or add --shared-folder if all of them mount it",
                    code="DESTINATION_NOT_SHARED",
                )
            if not is_new:

                def check_session() -> None:
                    check_executors(spark, "replicate", passing(observer, WarningIssued))
                    warn_of_scheduling(spark, passing(observer, WarningIssued))
                    if executors:
                        warn_of_plain_text(spark, _secrets(settings, storage), passing(observer, WarningIssued))

                with spark_errors("the executors cannot be checked"):
                    call_watched(check_session, check, _CHECK_INTERVAL)
            jobs: SparkJobs = (
                stack.enter_context(ConnectJobs(spark, storage, shared)) if is_connect(spark) else ClassicJobs(spark)
            )
            engine = SparkEngine(jobs, storage.limits)
            if executors or settings.shared_folder:
                check_destination(engine, storage, is_shared_folder=settings.shared_folder)
            yield engine
        except EngineEndedError as error:
            if not is_new:
                # The session belongs to the program, which must start another one.
                raise EngineError(error.description) from error
            forget()
            raise


@contextmanager
def _stopping(spark: SparkSession) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(Exception):  # Java may have ended, which the tasks report.
            spark.stop()


def _executors_elsewhere(spark: SparkSession) -> str:
    """Return the owner of the executors; an empty text if they run in a Java of this process."""
    from pyspark import SparkContext

    from logicalrep.spark.executors import is_connect

    context = SparkContext._active_spark_context if is_connect(spark) else spark.sparkContext
    if context is None:
        return "Spark Connect's server"
    master = str(context.master)
    return "" if master.startswith("local") else master


def _secrets(settings: ReplicateSettings, storage: Storage) -> list[str]:
    is_sent = {
        "the server's password": bool(settings.connection.secrets),
        "the key of masks": settings.mask_key is not None,
        "the options of the object store": bool(storage.storage_options),
    }
    return [name for name, is_used in is_sent.items() if is_used]
