"""The warnings about a Spark session that replicate has not started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOPBACK = ("localhost", "127.0.0.1", "::1", "[::1]")


def warn_of_scheduling(spark: SparkSession, warn: Callable[[str], object]) -> None:
    """Warn about a Spark whose scheduler gives all cores to the work that began first."""
    mode = spark.conf.get("spark.scheduler.mode", "FIFO")
    if mode != "FAIR":
        warn(
            f"spark.scheduler.mode is {mode}: while files of a large table are rewritten, or many tables loaded, "
            "batches of other tables wait for all tasks that began earlier; start Spark with spark.scheduler.mode=FAIR"
        )


def warn_of_plain_text(spark: SparkSession, secrets: Sequence[str], warn: Callable[[str], object]) -> None:
    """Warn about secrets that travel unencrypted to executors on other machines.

    Args:
        spark: the session.
        secrets: the names of the secrets, in words.
        warn: receives the warning.
    """
    from logicalrep.spark.executors import is_connect

    if not secrets:
        return
    names = " and ".join(secrets)

    def is_set(name: str) -> bool:
        return spark.conf.get(name, "false") == "true"

    if not is_set("spark.ssl.rpc.enabled") and not (
        is_set("spark.authenticate") and is_set("spark.network.crypto.enabled")
    ):
        warn(
            f"{names} travel to Spark's executors in clear: start Spark with spark.authenticate=true and "
            "spark.network.crypto.enabled=true, or with spark.ssl.rpc.enabled=true"
        )
    if is_connect(spark) and (host := host_in_clear(spark.client._builder)):
        warn(
            f"{names} travel to the server of Spark Connect at {host} in clear: add ;use_ssl=true to its URL, "
            "sc://host:port/;use_ssl=true"
        )


def host_in_clear(channels: Any) -> str:
    """Return the host to which a channel builder sends unencrypted; an empty text if none.

    Data that stays on this machine is no risk. A vendor's own builder does not tell, and encrypts.
    """
    is_secure: bool = getattr(channels, "secure", True)
    return "" if is_secure or channels.host in _LOOPBACK else str(channels.host)
