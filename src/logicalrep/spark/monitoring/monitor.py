"""The figures of a query in the driver's process; executors' tasks send their figures by HTTP."""

from __future__ import annotations

import json
import secrets
import socket
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from logicalrep.observe.figures import Figures
from logicalrep.observe.serving import serve
from logicalrep.observe.slot_samples import SlotSamples, sampling
from logicalrep.options.listen_address import ListenError
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.sessions.replication import Traffic
from logicalrep.postgres.sessions.server_connection import ServerConnection
from logicalrep.postgres.slots.slot import Slot, find_slot
from logicalrep.spark.monitoring.statistics import Counts
from logicalrep.transactions.logs import logger
from logicalrep_runtime.scalars import Lsn

_log = logger("logicalrep")

PORT_PATIENCE = 10.0
"""Time for which the query's previous process may still hold the port, in seconds."""
_PATIENCE = 2.0
"""Timeout for sending a task's counts, in seconds."""


@dataclass(slots=True)
class _Planned:
    end: Lsn
    counts: Counts | None
    """None if the batch's task sends its counts."""
    began: float


@dataclass(frozen=True, slots=True)
class CountsSender:
    address: str
    end: Lsn

    def send(self, counts: Counts) -> None:
        committed = None if counts.committed is None else counts.committed.isoformat()
        content = asdict(counts) | {"committed": committed, "end": str(self.end)}
        request = Request(self.address, json.dumps(content).encode(), {"Content-Type": "application/json"})
        with suppress(OSError):
            # A proxy of the environment is for other addresses.
            build_opener(ProxyHandler({})).open(request, timeout=_PATIENCE).close()


class Monitor:
    """Counts what a query reads, samples its slot, and serves the figures until it is closed."""

    def __init__(self, settings: ConnectionSettings, slot: str, listen: str) -> None:
        """Listen, and sample the slot; raise ListenError if the address is not available."""
        self._slot_name = slot
        self._connection = ServerConnection(settings, 0)
        self._lock = threading.Lock()
        self._samples = SlotSamples()
        # The slot at the last sample; None if the server was not heard.
        self._slot: Slot | None = None
        # Everything before it is Spark's, or was found to be of no interest to the query.
        self._reached = Lsn(0)
        self._committed: datetime | None = None
        self._checkpointed: float | None = None
        self._planned: _Planned | None = None
        self._counts_by_end: dict[str, Counts] = {}
        self._has_all = True
        self._changes = self._bytes = self._batches = 0
        self._seconds = {"server": 0.0, "decoding": 0.0, "spark": 0.0}
        self.traffic = Traffic()
        self.restarts = 0
        self.mode: str | None = None
        """The mode of the query's last batch: `peek` or `walsender`."""
        # Only the query's own tasks know it.
        self._tell_path = f"/counts/{secrets.token_urlsafe(16)}"
        self._stack = ExitStack()
        self.address = self._wait_for_listener(listen)
        self._stack.callback(self._connection.close)
        self._stack.enter_context(sampling(self._sample, self._miss_sample))
        _log.info("slot %s: metrics at %smetrics", slot, self.address)

    def _wait_for_listener(self, listen: str) -> str:
        deadline = time.monotonic() + PORT_PATIENCE
        while True:
            try:
                posts = {self._tell_path: self._take}
                return self._stack.enter_context(serve(listen, lambda: [self.figures()], posts=posts))
            except ListenError as error:
                if error.code != "LISTEN_REFUSED" or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def close(self) -> None:
        self._stack.close()

    def counts_sender(self, end: Lsn) -> CountsSender:
        parts = urlsplit(self.address)
        host = parts.hostname or ""
        if host in ("0.0.0.0", "::"):
            host = socket.gethostname()
        return CountsSender(f"http://{f'[{host}]' if ':' in host else host}:{parts.port}{self._tell_path}", end)

    def record_request(self) -> None:
        """Record that Spark asks for a batch: it has finished the previous batch."""
        with self._lock:
            self._checkpointed = time.time()
            planned, self._planned = self._planned, None
            if planned is None:
                return
            self._batches += 1
            self._seconds["spark"] += time.monotonic() - planned.began
            self._reached = max(self._reached, planned.end)
            counts = planned.counts or self._counts_by_end.get(str(planned.end))
            self._counts_by_end.clear()
            if counts is None:
                if self._has_all:
                    _log.warning(
                        "slot %s: the executors cannot reach %s: the metrics lack the sums of their reads; "
                        "let option 'listen' name an address of the driver that they reach",
                        self._slot_name, self.address,
                    )  # fmt: skip
                self._has_all = False
                return
            self._changes += counts.changes or 0
            self._bytes += counts.bytes or 0
            self._seconds["server"] += counts.receiving
            self._seconds["decoding"] += counts.decoding
            self._committed = counts.committed or self._committed

    def record_position(self, position: Lsn) -> None:
        with self._lock:
            self._reached = max(self._reached, position)

    def record_batch(self, mode: str, end: Lsn, counts: Counts | None) -> None:
        with self._lock:
            self.mode = mode
            self._planned = _Planned(end, counts, time.monotonic())

    def figures(self) -> Figures:
        with self._lock:
            slot, last = self._slot, self._samples.last
            if last is not None and last.confirmed_flush_lsn is not None:
                # The slot follows Spark's commits, also of an earlier process.
                self._reached = max(self._reached, last.confirmed_flush_lsn)
            traffic = self.traffic
            counted = {
                "server": self._seconds["server"] + traffic.receiving,
                "decoding": self._seconds["decoding"] + traffic.decoding,
            }
            return Figures(
                slot=self._slot_name,
                lag_bytes=self._samples.lag_bytes(self._reached),
                lag_seconds=self._samples.lag_seconds(self._reached, self._committed),
                retained_bytes=None if slot is None else slot.retained_bytes,
                retained_limit=None if slot is None else slot.retained_limit,
                changes=self._changes if self._has_all else None,
                bytes=self._bytes + traffic.bytes if self._has_all else None,
                batches=self._batches,
                restarts=traffic.restarts + self.restarts,
                mode=self.mode,
                seconds={"spark": self._seconds["spark"], **(counted if self._has_all else {})},
                committed=self._committed,
                checkpointed=self._checkpointed,
            )

    def _take(self, content: bytes) -> None:
        message: dict[str, Any] = json.loads(content)
        end, committed = message.pop("end"), message.pop("committed")
        counts = Counts(committed=None if committed is None else datetime.fromisoformat(committed), **message)
        with self._lock:
            self._counts_by_end[end] = counts

    def _sample(self) -> None:
        slot = self._connection.run(lambda connection: find_slot(connection, self._slot_name))
        with self._lock:
            self._slot = slot
            self._samples.record_slot(slot)

    def _miss_sample(self, error: Exception) -> None:
        # The reader finds the same, and decides. The lag grows while the server is not heard.
        _log.debug("slot %s cannot be sampled: %s", self._slot_name, error)
        self._connection.close()
        with self._lock:
            self._slot = None
