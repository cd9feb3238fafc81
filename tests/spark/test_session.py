"""The address of a session's driver: loopback if everything is on this machine, else Spark's default."""

from __future__ import annotations

import os
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.sql import SparkSession

from logicalrep.spark import session, sessions
from logicalrep.spark.options import OptionError

LOCAL = ["local", "local[2]", "local[*]", "local[2,3]", "local-cluster[1,1,1024]"]
ELSEWHERE = ["spark://host:7077", "spark://one:7077,two:7077", "yarn", "k8s://https://host:6443"]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the settings with which Spark would be started, without starting it."""
    options: dict[str, str] = {}

    def start(builder: Any) -> MagicMock:
        options.update(builder._options)
        return MagicMock()

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", start)
    monkeypatch.setattr(sessions, "check_executors", lambda _: None)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    for name in ("SPARK_LOCAL_IP", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return options


@pytest.mark.parametrize("given", ["argument", "setting"])
@pytest.mark.parametrize("master", LOCAL + ELSEWHERE)
def test_the_driver_is_on_loopback_for_local_masters_alone(master: str, given: str, started: dict[str, str]) -> None:
    if given == "argument":
        session(master)
    else:
        session(**{"spark.master": master})
    loopback = "127.0.0.1" if master in LOCAL else None
    assert started["spark.master"] == master
    assert started.get("spark.driver.host") == loopback
    assert started.get("spark.driver.bindAddress") == loopback
    assert os.environ.get("SPARK_LOCAL_IP") == loopback


def test_given_settings_override_the_defaults(started: dict[str, str]) -> None:
    session(**{"spark.driver.host": "127.0.0.2"})
    assert started["spark.driver.host"] == "127.0.0.2"


def test_a_server_of_spark_connect_is_no_master() -> None:
    with pytest.raises(
        OptionError, match=r"use register\(SparkSession.builder.remote\('sc://host'\).getOrCreate\(\)\)"
    ):
        session("sc://host")
