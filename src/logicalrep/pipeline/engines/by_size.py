"""The engine that runs little work in this process, and the rest on the engine that the settings name."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import Literal, Self, TypeVar

from logicalrep.pipeline.engines.engine import HAS_ENDED, Engine, EngineError, Shared
from logicalrep.pipeline.engines.memory import releasing_memory
from logicalrep.pipeline.engines.outcomes import run_in_process
from logicalrep.pipeline.limits import Limits
from logicalrep.postgres.retries import Ended

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

Moment = Literal["now", "beside", "needed"]
"""When the other engine starts: before the first work, concurrently with it, or once there is work for it."""

_CHECK_INTERVAL = 0.1
"""The most seconds until a call that waits for the other engine notices that it must stop."""


class BySizeEngine:
    """An engine that runs work of up to `Limits.in_process_bytes` in this process, and the rest on another engine.

    The written files are equal on both, because the function is the same.

    Example:
        >>> with BySizeEngine(lambda _: LocalEngine(), threading.Event(), "needed", Limits()) as engine:
        ...     engine.run(len, ["a", "bc"], 3)
        [1, 2]
    """

    def __init__(
        self,
        start: Callable[[threading.Event], AbstractContextManager[Engine]],
        stop: threading.Event,
        moment: Moment,
        limits: Limits,
        *,
        is_local: bool = False,
    ) -> None:
        """Take the start of the other engine, which gives up when its event is set; `stop` ends waiting for it.

        `is_local` says whether the files are local: then fewer calls run in this process at the same time.
        """
        self._start, self._stop, self._moment = start, stop, moment
        self._ending = threading.Event()
        self._context = ExitStack()
        self._other: Future[Engine] = Future()
        self._starting: threading.Thread | None = None
        self._is_starting = threading.Lock()
        self._most_bytes = limits.in_process_bytes
        calls_at_once = limits.local_calls if is_local else limits.calls
        # A load at a bounded rate must not keep batches waiting.
        self._turns: defaultdict[str, threading.Semaphore] = defaultdict(lambda: threading.Semaphore(calls_at_once))

    def __enter__(self) -> Self:
        if self._moment == "now":
            self._other.set_result(self._context.enter_context(self._start(self._stop)))
        elif self._moment == "beside":
            self._start_other()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ending.set()
        if self._starting is not None:
            self._starting.join()
        self._context.__exit__(kind, error, traceback)

    def check(self) -> None:
        self._refuse_ended()
        if self._other.done():
            self._other.result().check()

    def run(self, function: Callable[[_Item], _Result], items: Sequence[_Item], nbytes: int) -> list[_Result]:
        if nbytes > self._most_bytes:
            with releasing_memory():
                return self._wait_for_other().run(function, items, nbytes)
        with self._turns[function.__module__]:
            return [run_in_process(function, item) for item in items]

    def run_together(self, function: Callable[[_Item], _Result], item: _Item, nbytes: int) -> _Result:
        if nbytes > self._most_bytes:
            with releasing_memory():
                return self._wait_for_other().run_together(function, item, nbytes)
        with self._turns[function.__module__]:
            return run_in_process(function, item)

    def share(self, value: _Result) -> AbstractContextManager[Shared[_Result]]:
        """Yield a holder of the other engine: items with a shared value are never little work."""
        return self._wait_for_other().share(value)

    def _wait_for_other(self) -> Engine:
        """Return the other engine once it has started. Raises its error, and Ended when `stop` is set."""
        self._refuse_ended()
        if not self._other.done():
            self._start_other()
        while not self._other.done():
            if self._stop.wait(_CHECK_INTERVAL):
                raise Ended
        return self._other.result()

    def _refuse_ended(self) -> None:
        if self._ending.is_set():
            raise EngineError(HAS_ENDED)

    def _start_other(self) -> None:
        with self._is_starting:
            if self._starting is None:
                self._starting = threading.Thread(target=self._run_start, name="logicalrep-start")
                self._starting.start()

    def _run_start(self) -> None:
        try:
            self._other.set_result(self._context.enter_context(self._start(self._ending)))
        except BaseException as error:
            self._other.set_exception(error)
