"""The jobs of a Spark Connect session, whose driver is another process. PySpark is imported late."""

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

from logicalrep.pipeline.engines.engine import HAS_ENDED, EngineError, LocalValue, Shared
from logicalrep.pipeline.engines.outcomes import Caught, Outcome, pickled
from logicalrep.pipeline.engines.spark.errors import NO_TASK, java_has_ended, refuse_ended, spark_errors
from logicalrep.pipeline.engines.spark.shared import SharedSpark
from logicalrep.pipeline.engines.spark.watched_calls import call_watched
from logicalrep.pipeline.state.state import FOLDER
from logicalrep.pipeline.storage.storage import DamagedError, Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Value = TypeVar("_Value")

SHARED = f"{FOLDER}/shared"
"""The folder of shared values; the next start deletes values of a killed process."""
_OUTCOMES = "number bigint, outcome binary"
_SCHEMA = pa.schema([("number", pa.int64()), ("outcome", pa.binary())])
_CHECK_INTERVAL = 1.0
"""The seconds until a job notices that its Java has ended."""


class ConnectJobs:
    """The jobs of a Spark Connect session: `mapInArrow` over a DataFrame of items.

    A job has as many tasks as Spark has cores. Shared values are objects at the destination.
    """

    def __init__(self, spark: SparkSession, storage: Storage, shared: SharedSpark | None = None) -> None:
        """Take the session, the destination, to which no other run writes, and the shared Spark, if any."""
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
        data, path = pickle.dumps(value), f"{SHARED}/{secrets.token_hex(8)}"
        self._storage.write(path, data)
        try:
            yield _AtDestination(self._storage, path, hashlib.sha256(data).digest(), value)
        finally:
            self._storage.delete(path)

    def check(self) -> None:
        """Raise EngineEndedError if the server's Java, which this or a sharing process started, has ended."""
        refuse_ended(self._has_ended)
        if self._ending.is_set():
            raise EngineError(HAS_ENDED)

    def _live(self) -> None:
        while not self._ending.wait(self._storage.limits.alive_seconds):
            with suppress(Exception):  # The next task reports the error.
                self._spark.conf.get("spark.sql.session.timeZone")


def _answers(function: Callable[[Any], object], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    # Unpickling an item reads its shared value.
    caught = Caught(lambda item: function(pickle.loads(item)))
    for batch in batches:
        for number, item in zip(batch["number"], batch["item"], strict=True):
            answer = pickled(caught(item.as_py()))
            yield pa.RecordBatch.from_pydict({"number": [number.as_py()], "outcome": [answer]}, _SCHEMA)


@dataclass(frozen=True, slots=True)
class _AtDestination(Generic[_Value]):
    """A value of this process, which other processes read from the destination."""

    storage: Storage
    path: str
    digest: bytes
    """The object's digest: a foreign object is never unpickled."""
    value: _Value

    def __reduce__(self) -> tuple[Callable[..., Shared[Any]], tuple[Storage, str, bytes]]:
        return _read_shared, (self.storage, self.path, self.digest)


_last: dict[bytes, Shared[Any]] = {}
"""The value that this process read last, by digest: many consecutive items have the same value."""


def _read_shared(storage: Storage, path: str, digest: bytes) -> Shared[Any]:
    """Return a value at the destination. Raises DamagedError if the driver has not written it."""
    if digest not in _last:
        data = storage.read(path)
        if data is None or hashlib.sha256(data).digest() != digest:
            raise DamagedError(f"{storage.uri_of(path)} is not what this run has written")
        _last.clear()
        _last[digest] = LocalValue(pickle.loads(data))
    return _last[digest]
