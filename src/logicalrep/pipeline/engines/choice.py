"""The choice of the engine of a run, the only place that decides between Spark and local processes."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Literal

from logicalrep.options.extras import find_missing, installing
from logicalrep.pipeline.engines.engine import EngineError

EngineOption = Literal["auto", "spark", "local"]
"""The values of the option `engine`."""
_VARIABLES = {
    "SPARK_REMOTE": "SPARK_REMOTE is set",
    "PYSPARK_GATEWAY_PORT": "spark-submit runs this program",
    "SPARK_CONNECT_MODE_ENABLED": "this process has a session of Spark Connect",
}
"""The environment variables of a Spark, with the reason to use the Spark."""


@dataclass(frozen=True, slots=True)
class EngineChoice:
    name: Literal["spark", "local"]
    reason: str

    def refuse_missing(self, *, over_connect: bool = False) -> None:
        """Raise EngineError if the engine's libraries are not installed, or the system runs no engine.

        Call it before anything is created.

        It does not import them: importing takes longer than a run with little to do.
        """
        if sys.platform == "win32":
            raise EngineError(
                "replicate needs the signals, file locks and sockets of Linux or macOS, and this is Windows: run it in "
                "WSL, or in a container",
                code="PLATFORM_REFUSED",
            )
        if self.name != "spark":
            return
        extra = "replicate,connect" if over_connect else "replicate"
        missing = find_missing(("pyspark", "py4j", *(["grpc"] if over_connect else [])))
        if missing is not None:
            raise EngineError(
                f"the engine is Spark, as {self.reason}, and {missing} is not installed: {installing(extra)}, or use "
                "--engine local, which needs no Spark",
                code="ENGINE_MISSING",
            )


def choose_engine(wanted: EngineOption) -> EngineChoice:
    """Return the engine that the option `engine` selects: with `auto`, Spark if the program has one.

    Example:
        >>> choose_engine("local")
        EngineChoice(name='local', reason='the option engine requires it')
    """
    if wanted != "auto":
        return EngineChoice(wanted, "the option engine requires it")
    reason = find_spark()
    if reason is not None:
        return EngineChoice("spark", reason)
    return EngineChoice("local", "there is no Spark session, SPARK_REMOTE or spark-submit")


def find_spark() -> str | None:
    """Return the reason to use a Spark that the program has; None if the program has none.

    It does not import PySpark.
    """
    pyspark = sys.modules.get("pyspark")
    if pyspark is not None and pyspark.SparkContext._active_spark_context is not None:
        return "this process has a Spark session"
    return next((reason for name, reason in _VARIABLES.items() if name in os.environ), None)
