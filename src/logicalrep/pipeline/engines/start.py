"""The start of the engine that the settings name."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Literal

from logicalrep.pipeline.engines.engine import Engine, EngineError
from logicalrep.pipeline.engines.local import LocalEngine
from logicalrep.pipeline.engines.spark import start_spark
from logicalrep.pipeline.storage.storage import Storage

EngineName = Literal["spark", "local"]


def refuse_missing(name: EngineName) -> None:
    """Raise EngineError if an engine's libraries are not installed; to be called before anything is made."""
    if name == "spark":
        try:
            import_module("pyspark")
        except ModuleNotFoundError as error:
            raise EngineError(
                f"{error.name} is not installed: pip install 'logicalrep[replicate]', or work without Spark by "
                "--engine local",
                code="ENGINE_MISSING",
            ) from None


def start_engine(name: EngineName, storage: Storage, stop: threading.Event) -> AbstractContextManager[Engine]:
    """Return the context of an engine, which ends it. Raises what `start_spark` does."""
    return LocalEngine() if name == "local" else start_spark(storage, stop)
