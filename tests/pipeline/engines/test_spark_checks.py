"""The checks of a Spark that is there already: each fails for what it looks for."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from logicalrep.observe.observer import Observer
from logicalrep.pipeline.engines.spark.checks import host_in_clear, warn_of_plain_text, warn_of_scheduling
from logicalrep.pipeline.engines.spark.start import start_spark
from logicalrep.pipeline.settings import ReplicateSettings
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.spark import executors
from logicalrep.spark.executors import NEEDED, ExecutorError, check_executors, installed_version


@pytest.fixture
def other_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the executors be checked although they run this Python."""
    monkeypatch.setattr(executors, "are_of_this_python", lambda _: False)


@pytest.fixture(params=["spark", "connect"])
def session(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("other_python")]


def test_executors_without_what_replicate_needs(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check_executors(session, "replicate")
    monkeypatch.setitem(NEEDED, "replicate", (*NEEDED["replicate"], "no_such_module"))
    check_executors(session, "spark")
    with pytest.raises(
        ExecutorError, match=r"^\[PACKAGE_MISSING\] the Python worker .* has no no_such_module: .* extra 'replicate'"
    ):
        check_executors(session, "replicate")


def test_executors_with_another_version(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    there = installed_version()
    monkeypatch.setattr(executors, "installed_version", lambda: "9.9")
    with pytest.raises(
        ExecutorError,
        match=rf"^\[PACKAGE_DIFFERS\] .* has logicalrep {there}, and the driver 9.9: install logicalrep 9.9 with",
    ):
        check_executors(session, "replicate")


def test_executors_with_another_python(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonVer", "3.9")
    with pytest.raises(ExecutorError, match=r"^\[PYTHON_DIFFERS\] the executors have another version of Python"):
        check_executors(spark, "replicate")


def test_a_session_that_is_there_is_checked(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    class Told(Observer):
        def on_warning(self, text: str) -> None:
            said.append(text)

    settings = ReplicateSettings("dbname=x", str(tmp_path))
    with start_spark(settings, Storage(str(tmp_path)), threading.Event(), Told()) as engine:
        assert engine.run(len, ["a", "bc"], 3) == [1, 2]
    assert [text.partition(":")[0] for text in said] == ["spark.scheduler.mode is FIFO"]
    monkeypatch.setitem(NEEDED, "replicate", ("no_such_module",))
    with (
        pytest.raises(ExecutorError, match="no_such_module"),
        start_spark(settings, Storage(str(tmp_path)), threading.Event(), Told()),
    ):
        pass


def told(settings: Mapping[str, str], secrets: list[str]) -> list[str]:
    """Return the warnings for a session with some settings."""
    said: list[str] = []
    session: Any = SimpleNamespace(conf=settings)
    warn_of_scheduling(session, said.append)
    warn_of_plain_text(session, secrets, said.append)
    return said


def test_what_is_lost_without_fair_turns_is_told() -> None:
    assert told({"spark.scheduler.mode": "FAIR"}, []) == []
    [text] = told({}, [])
    assert "batches of other tables wait for all tasks that began earlier" in text


@pytest.mark.parametrize(
    ("settings", "is_told"),
    [
        ({}, True),
        ({"spark.authenticate": "true"}, True),
        ({"spark.network.crypto.enabled": "true"}, True),
        ({"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}, False),
        ({"spark.ssl.rpc.enabled": "true"}, False),
    ],
)
def test_secrets_that_travel_in_clear_are_told(settings: Mapping[str, str], is_told: bool) -> None:
    fair = {"spark.scheduler.mode": "FAIR", **settings}
    said = told(fair, ["the server's password", "the key of masks"])
    assert [text.partition(" travel ")[0] for text in said] == ["the server's password and the key of masks"] * is_told
    assert told(fair, []) == []


def test_a_server_of_spark_connect_that_is_reached_in_clear_is_told() -> None:
    pytest.importorskip("grpc")
    from pyspark.sql.connect.client.core import DefaultChannelBuilder

    urls = ["sc://a.example", "sc://b.example/;use_ssl=true", "sc://c.example/;token=t", "sc://localhost"]
    assert [host_in_clear(DefaultChannelBuilder(url)) for url in urls] == ["a.example", "", "", ""]
    assert host_in_clear(object()) == ""
