"""A Spark that several processes of this machine share over Spark Connect. PySpark is imported late."""

from __future__ import annotations

import os
import secrets
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from logicalrep.pipeline.engines.spark.errors import java_has_ended, spark_errors
from logicalrep.pipeline.engines.spark.local import LOCAL, SETTINGS, start_apart

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""Spark's environment variable for the clients' token, without which other users of the machine could run tasks."""
_PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"
_POOLS = '<allocations><pool name="default"><schedulingMode>FAIR</schedulingMode></pool></allocations>'
"""Spark Connect uses only the default pool: the tasks of all clients take turns in it."""
_GIGABYTE = 1 << 30


class SharedSpark(Protocol):
    """A Spark of another process, seen from a process that shares it."""

    def query_url(self) -> str:
        """Return the URL of its Spark Connect, once it has started. Raises EngineError if it does not start."""
        ...

    def has_ended(self, within: float) -> bool:
        """Return whether the Spark of the last URL has ended, or ends within the given seconds."""
        ...


def connect(shared: SharedSpark) -> SparkSession:
    """Return a session of a shared Spark. Raises EngineError if the Spark does not start, or PySpark lacks packages."""
    url = shared.query_url()
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    session: Any = ConnectSession.builder.remote(url).create()
    # The server is on this machine: if it does not answer it has ended, and a new server has another URL.
    session.client.set_retry_policies([DefaultPolicy(max_retries=4)])
    connect_session: SparkSession = session
    return connect_session


class ServedSpark:
    """A local Spark with a Spark Connect server, which starts when it is needed.

    Example:
        >>> with ServedSpark(3) as spark:
        ...     session = SparkSession.builder.remote(spark.query_url()).create()
    """

    def __init__(self, clients: int) -> None:
        """Start nothing yet; `clients` is the number of sharing processes."""
        self.starts = 0
        """The number of starts."""
        self._clients = clients
        self._session: SparkSession | None = None
        self._url = ""
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._lock:
            if self._session is not None:
                with suppress(Exception):  # Java may have ended.
                    self._session.stop()

    def query_url(self) -> str:
        """Return the server's URL; start Spark if it has not started, or its Java has ended.

        Raises EngineError if Spark does not start.
        """
        with self._lock:
            if self.has_ended():
                from logicalrep.spark.java import forget

                forget()
                self._session = None
            if self._session is None:
                with spark_errors("Spark does not start"):
                    self._url = self._start()
                self.starts += 1
            return self._url

    def has_ended(self) -> bool:
        """Return whether its Java has ended; false before the start."""
        return self._session is not None and java_has_ended(within=0)

    def _start(self) -> str:
        token = os.environ.setdefault(TOKEN, secrets.token_hex(16))
        with tempfile.TemporaryDirectory(prefix="logicalrep-spark-") as folder:
            pools = Path(folder, "pools.xml")
            pools.write_text(_POOLS, "utf-8")
            self._session = start_apart(
                LOCAL,
                SETTINGS
                | {
                    "spark.driver.memory": f"{self._heap()}g",
                    "spark.scheduler.allocation.file": pools.as_uri(),
                    "spark.plugins": _PLUGIN,
                    "spark.connect.grpc.binding.address": "localhost",
                    "spark.connect.grpc.binding.port": "0",
                },
            )
        java: Any = self._session
        service = getattr(java._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
        return f"sc://localhost:{getattr(service, 'MODULE$').localPort()}/;token={token}"

    def _heap(self) -> int:
        """Return the gigabytes of Java's heap: one for each client, but at most half of the machine's memory."""
        of_machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return max(1, min(self._clients, of_machine // 2 // _GIGABYTE))
