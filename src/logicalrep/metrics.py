"""Metrics for Prometheus, under the names of docs/reference/metrics.md.

`logicalrep replicate --listen`, and the Spark source with the option `listen`, serve the metrics. `listener` takes them
from Spark's progress reports.
"""

from __future__ import annotations

from logicalrep.observe.metrics import METRICS, Metric
from logicalrep.spark.monitoring.listener import MetricsListener


def listener() -> MetricsListener:
    """Return a listener of a session's queries, which is also a collector of prometheus_client.

    The metrics cover each query that reads a slot, while it runs and after it has failed: its changes, its batches and
    their seconds, and the time of its last report; from Spark 4.2 on also the lag and the retained WAL in bytes, and
    the mode.

    Example:
        >>> import prometheus_client
        >>> query_listener = listener()
        >>> spark.streams.addListener(query_listener)
        >>> prometheus_client.REGISTRY.register(query_listener)
        >>> server, thread = prometheus_client.start_http_server(9400, addr="127.0.0.1")
    """
    return MetricsListener()


__all__ = ["METRICS", "Metric", "MetricsListener", "listener"]
