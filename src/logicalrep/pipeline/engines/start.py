"""The start of the engine that the settings name."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from logicalrep.observe.events import StepStarted, WaitReported
from logicalrep.observe.observer import Observer
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.by_size import BySizeEngine
from logicalrep.pipeline.engines.choice import choose_engine, find_spark
from logicalrep.pipeline.engines.engine import Engine
from logicalrep.pipeline.engines.local import LocalEngine
from logicalrep.pipeline.engines.reaching import check_destination
from logicalrep.pipeline.engines.spark.shared import SharedSpark
from logicalrep.pipeline.engines.spark.start import start_spark
from logicalrep.pipeline.storage.storage import Storage


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
    if choose_engine(settings.engine).name == "local":
        if settings.shared_folder:
            return BySizeEngine(lambda _: _start_local(storage), stop, "now", limits, is_local=is_local)
        return BySizeEngine(lambda _: LocalEngine(limits=storage.limits), stop, "needed", limits, is_local=is_local)

    def start(ending: threading.Event) -> AbstractContextManager[Engine]:
        if settings.once and find_spark() is None:
            observer.on_event(WaitReported(f"starting Spark, for work of more than {limits.in_process_bytes >> 20} MB"))
        return start_spark(settings, storage, ending, observer, shared)

    if find_spark() is not None or settings.shared_folder:
        observer.on_event(StepStarted("starting Spark, and waiting for its executors"))
        return BySizeEngine(start, stop, "now", limits, is_local=is_local)
    return BySizeEngine(start, stop, "needed" if settings.once else "beside", limits, is_local=is_local)


@contextmanager
def _start_local(storage: Storage) -> Iterator[Engine]:
    """Yield a local engine after its processes have tried the shared folder."""
    with LocalEngine(limits=storage.limits) as engine:
        check_destination(engine, storage, is_shared_folder=True)
        yield engine
