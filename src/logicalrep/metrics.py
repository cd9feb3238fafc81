"""The metrics of replicating: one set of names, which docs/reference/metrics.md explains.

`logicalrep replicate --listen`, and the Spark source with the option `listen`, serve them by themselves. `listener`
takes them from Spark's progress reports.
"""

from __future__ import annotations

from logicalrep.observe.metrics import METRICS, Metric
from logicalrep.spark.monitoring.listener import MetricsListener


def listener() -> MetricsListener:
    """Return a listener of a session's queries, which is also a collector of prometheus_client.

    It has what Spark reports of each query that reads a slot, while it runs and after it has failed: the changes, the
    batches and their time, when something was last heard of it; from Spark 4.2 on also the lag in bytes, the retained
    WAL and the mode.

    Example:
        >>> import prometheus_client
        >>> found = listener()
        >>> spark.streams.addListener(found)
        >>> prometheus_client.REGISTRY.register(found)
        >>> server, thread = prometheus_client.start_http_server(9400, addr="127.0.0.1")
    """
    return MetricsListener()


__all__ = ["METRICS", "Metric", "MetricsListener", "listener"]
