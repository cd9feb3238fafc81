"""The start of the engine that the settings name."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from importlib.util import find_spec
from typing import Literal

from logicalrep.pipeline.engines.by_size import BySizeEngine
from logicalrep.pipeline.engines.engine import LITTLE, Engine, EngineError
from logicalrep.pipeline.engines.local import LocalEngine
from logicalrep.pipeline.engines.spark.start import is_spark_there, start_spark
from logicalrep.pipeline.storage.storage import Storage

EngineName = Literal["spark", "local"]


def refuse_missing(name: EngineName) -> None:
    """Raise EngineError if an engine's libraries are not installed; to be called before anything is made.

    They are not imported, which takes longer than a run with little to do.
    """
    for library in ("pyspark", "py4j") if name == "spark" else ():
        if not _is_installed(library):
            raise EngineError(
                f"{library} is not installed: run pip install '.[replicate]' in a clone of logicalrep, or work "
                "without Spark by --engine local",
                code="ENGINE_MISSING",
            )


def _is_installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:
        return False


def start_engine(
    name: EngineName, storage: Storage, stop: threading.Event, once: bool, say: Callable[[str], object]
) -> AbstractContextManager[Engine]:
    """Return the context of an engine, which ends it; little work runs in this process.

    Args:
        name: the engine for the rest of the work, which raises what `start_spark` does.
        storage: the destination.
        stop: ends the waiting for it.
        once: whether the run ends soon: a Spark is then started only if there is work for it.
        say: is called, by any thread, when work waits for the start of a Spark.
    """
    if name == "local":
        return BySizeEngine(lambda _: LocalEngine(), stop, "needed")
    if is_spark_there():
        return BySizeEngine(partial(start_spark, storage), stop, "now")

    def start(ending: threading.Event) -> AbstractContextManager[Engine]:
        if once:
            say(f"starting Spark, for work of more than {LITTLE >> 20} MB")
        return start_spark(storage, ending)

    return BySizeEngine(start, stop, "needed" if once else "beside")
