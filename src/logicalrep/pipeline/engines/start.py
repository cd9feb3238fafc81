"""The start of the engine that the settings name."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal

from logicalrep.observe.events import StepStarted, WaitReported
from logicalrep.observe.observer import Observer
from logicalrep.options.extras import find_missing, installing
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.by_size import BySizeEngine
from logicalrep.pipeline.engines.engine import Engine, EngineError
from logicalrep.pipeline.engines.local import LocalEngine
from logicalrep.pipeline.engines.reaching import check_destination
from logicalrep.pipeline.engines.spark.shared import SharedSpark
from logicalrep.pipeline.engines.spark.start import is_spark_available, start_spark
from logicalrep.pipeline.storage.storage import Storage

EngineName = Literal["spark", "local"]


def refuse_missing(name: EngineName, *, over_connect: bool = False) -> None:
    """Raise EngineError if the libraries of an engine are not installed; call it before anything is created.

    It does not import them: importing takes longer than a run with little to do.
    """
    if name != "spark":
        return
    extra = "replicate,connect" if over_connect else "replicate"
    missing = find_missing(("pyspark", "py4j", *(["grpc"] if over_connect else [])))
    if missing is not None:
        raise EngineError(
            f"{missing} is not installed: {installing(extra)}, or use --engine local, which needs no Spark",
            code="ENGINE_MISSING",
        )


def start_engine(
    settings: ReplicateSettings,
    storage: Storage,
    stop: threading.Event,
    observer: Observer,
    shared: SharedSpark | None = None,
) -> AbstractContextManager[Engine]:
    """Return the context of the engine, which ends it; little work runs in this process.

    Args:
        settings: name the engine for the rest of the work; starting Spark raises the errors of `start_spark`. A run
            with `once` starts Spark only if there is work for it; a shared folder is tried before anything else.
        storage: the destination.
        stop: ends waiting for the start.
        observer: receives, from any thread, warnings and the event that work waits for the start of Spark.
        shared: the Spark of another process, instead of a new local one; None for none.
    """
    limits, is_local = storage.limits, storage.is_local
    if settings.engine == "local":
        if settings.shared_folder:
            return BySizeEngine(lambda _: _start_local(storage), stop, "now", limits, is_local=is_local)
        return BySizeEngine(lambda _: LocalEngine(limits=storage.limits), stop, "needed", limits, is_local=is_local)

    def start(ending: threading.Event) -> AbstractContextManager[Engine]:
        if settings.once and not is_spark_available():
            observer.on_event(WaitReported(f"starting Spark, for work of more than {limits.in_process_bytes >> 20} MB"))
        return start_spark(settings, storage, ending, observer, shared)

    if is_spark_available() or settings.shared_folder:
        observer.on_event(StepStarted("starting Spark, and waiting for its executors"))
        return BySizeEngine(start, stop, "now", limits, is_local=is_local)
    return BySizeEngine(start, stop, "needed" if settings.once else "beside", limits, is_local=is_local)


@contextmanager
def _start_local(storage: Storage) -> Iterator[Engine]:
    """Yield a local engine after its processes have tried the shared folder."""
    with LocalEngine(limits=storage.limits) as engine:
        check_destination(engine, storage, is_shared_folder=True)
        yield engine
