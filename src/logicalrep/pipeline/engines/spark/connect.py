"""The jobs of a session of Spark Connect, whose driver is another process. PySpark is imported late."""

from __future__ import annotations

import functools
import hashlib
import pickle
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import pyarrow as pa

from logicalrep.pipeline.engines.engine import HAS_ENDED, EngineError, Here, Shared
from logicalrep.pipeline.engines.outcomes import Caught, Outcome, pickled
from logicalrep.pipeline.engines.spark.errors import NO_TASK, java_has_ended, refuse_ended, spark_errors
from logicalrep.pipeline.engines.spark.shared import SharedSpark
from logicalrep.pipeline.state.state import FOLDER
from logicalrep.pipeline.storage.storage import DamagedError, Storage
from logicalrep_runtime.columnar.watched_calls import call_watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Value = TypeVar("_Value")

SHARED = f"{FOLDER}/shared"
"""The folder of shared values; one that a killed process has left goes at the next start."""
_OUTCOMES = "number bigint, outcome binary"
_SCHEMA = pa.schema([("number", pa.int64()), ("outcome", pa.binary())])
_CHECK_INTERVAL = 1.0
"""The time until it is seen that the Java of a job has ended, in seconds."""


class ConnectJobs:
    """The jobs of a session of Spark Connect: `mapInArrow` over a DataFrame of items.

    It has as many tasks as Spark has cores, each with some items. What items share is an object at the destination.
    """

    def __init__(self, spark: SparkSession, storage: Storage, shared: SharedSpark | None = None) -> None:
        """Take the session, the destination, which nobody else writes to now, and whose Spark it is if it is shared."""
        self._spark, self._storage = spark, storage
        self._has_ended = java_has_ended if shared is None else shared.has_ended
        self._ending = threading.Event()
        self._living = threading.Thread(target=self._live, name="logicalrep-connect", daemon=True)

    def __enter__(self) -> Self:
        for path in self._storage.list(SHARED):
            self._storage.delete(path)
        self._living.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ending.set()

    def run(self, function: Callable[[Any], object], items: Sequence[Any], *, apart: bool) -> list[Outcome]:
        """Return the outcome for each item."""
        rows = pa.table(
            {
                "number": pa.array(range(len(items)), pa.int64()),
                "item": pa.array([pickle.dumps(item) for item in items], pa.binary()),
            }
        )

        def run() -> pa.Table:
            frame = self._spark.createDataFrame(rows)
            return frame.mapInArrow(functools.partial(_answers, function), _OUTCOMES).toArrow()

        with spark_errors(NO_TASK, self._has_ended):
            answers = call_watched(run, self.check, _CHECK_INTERVAL)
        outcomes = dict(zip(answers["number"].to_pylist(), answers["outcome"].to_pylist(), strict=True))
        return [pickle.loads(outcomes[number]) for number in range(len(items))]

    @contextmanager
    def share(self, value: _Value) -> Iterator[Shared[_Value]]:
        """Yield a holder of the value, which the executors read from the destination."""
        data, path = pickle.dumps(value), f"{SHARED}/{secrets.token_hex(8)}"
        self._storage.write(path, data)
        try:
            yield _AtDestination(self._storage, path, hashlib.sha256(data).digest(), value)
        finally:
            self._storage.delete(path)

    def check(self) -> None:
        """Raise EngineEndedError if the server ran in a Java of this process, or in a shared one, which has ended."""
        refuse_ended(self._has_ended)
        if self._ending.is_set():
            raise EngineError(HAS_ENDED)

    def _live(self) -> None:
        while not self._ending.wait(self._storage.limits.alive_seconds):
            with suppress(Exception):  # The next task tells it.
                self._spark.conf.get("spark.sql.session.timeZone")


def _answers(function: Callable[[Any], object], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the outcome for each row's item."""
    # A shared value is read while its item is made again.
    caught = Caught(lambda item: function(pickle.loads(item)))
    for batch in batches:
        for number, item in zip(batch["number"], batch["item"], strict=True):
            answer = pickled(caught(item.as_py()))
            yield pa.RecordBatch.from_pydict({"number": [number.as_py()], "outcome": [answer]}, _SCHEMA)


@dataclass(frozen=True, slots=True)
class _AtDestination(Generic[_Value]):
    """A value in this process, which others read from the destination."""

    storage: Storage
    path: str
    digest: bytes
    """The object's digest: an object that somebody else put there is not run."""
    value: _Value

    def __reduce__(self) -> tuple[Callable[..., Shared[Any]], tuple[Storage, str, bytes]]:
        return _read_shared, (self.storage, self.path, self.digest)


_last: dict[bytes, Shared[Any]] = {}
"""The value that this process has read last, by its digest: many items in a row have the same one."""


def _read_shared(storage: Storage, path: str, digest: bytes) -> Shared[Any]:
    """Return a value at the destination. Raises DamagedError if it is not what the driver wrote."""
    if digest not in _last:
        data = storage.read(path)
        if data is None or hashlib.sha256(data).digest() != digest:
            raise DamagedError(f"{storage.uri_of(path)} is not what this run has written")
        _last.clear()
        _last[digest] = Here(pickle.loads(data))
    return _last[digest]
