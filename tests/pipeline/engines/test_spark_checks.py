"""The checks of a Spark that is there already: each fails for what it looks for."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from logicalrep.observe.observer import Observers
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.engines.engine import EngineError
from logicalrep.pipeline.engines.spark.checks import host_in_clear, warn_of_plain_text, warn_of_scheduling
from logicalrep.pipeline.engines.spark.start import start_spark
from logicalrep.pipeline.engines.start import start_engine
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.retries import Ended
from logicalrep.spark import executors, java
from logicalrep.spark.executors import NEEDED, ExecutorError, check_executors, installed_version
from tests.native.installed import needs_native
from tests.pipeline.replicating import Warnings
from tests.spark.cluster import connect_server
from tests.spark.pythons import find_other_version, make_python

pytestmark = pytest.mark.spark

LACKING = {
    "package": r"^\[PACKAGE_MISSING\] the Python worker .* has no logicalrep, logicalrep_protocol, .* extra 'replicate'",
    "library": r"^\[PACKAGE_MISSING\] the Python worker .* has no deltalake: install logicalrep with its extra 'replicate'",
    "version": r"^\[PACKAGE_DIFFERS\] .* has logicalrep 0\.0\.1, and the driver .*: install logicalrep .* with its extra",
    "python": r"^\[PYTHON_DIFFERS\] the executors have another version of Python than the driver, which has 3",
}
"""The sentence about the executors' Python, by what it lacks."""


@pytest.fixture(scope="module", params=list(LACKING))
def lacking(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a real Python that lacks something, and the sentence about it."""
    lack, folder = request.param, tmp_path_factory.mktemp("python")
    python = {
        "package": lambda: make_python(folder),
        "library": lambda: make_python(folder, version=installed_version(), without=["deltalake"]),
        "version": lambda: make_python(folder, version="0.0.1"),
        "python": find_other_version,
    }[lack]()
    if python is None:
        pytest.skip("there is no Python of another version")
    return python, LACKING[lack]


def test_executors_whose_python_lacks_something(
    spark: Any, lacking: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    python, sentence = lacking
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    with pytest.raises(ExecutorError, match=sentence):
        check_executors(spark, "replicate")


@pytest.mark.thorough
def test_executors_of_spark_connect_whose_python_lacks_something(
    connect: Any, lacking: tuple[Path, str], tmp_path: Path
) -> None:
    """The test starts a server of its own, as the server's environment names the Python."""
    python, sentence = lacking
    with connect_server("local[1]", tmp_path, {}, python=str(python), paths="") as url:
        session = type(connect).builder.remote(url).create()
        with pytest.raises(ExecutorError, match=sentence):
            check_executors(session, "replicate")
        session.stop()


def test_executors_with_all_that_is_needed(
    spark: Any, connect: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(make_python(tmp_path, version=installed_version())))
    for session in (spark, connect):
        check_executors(session, "replicate", pytest.fail)


@needs_native
def test_executors_without_the_native_module_are_named(
    spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = make_python(tmp_path, version=installed_version(), without=["logicalrep_native"])
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    warnings: list[str] = []
    check_executors(spark, "replicate", warnings.append)
    assert re.fullmatch(f"the Python worker {python} on .* has no logicalrep_native, .*", "\n".join(warnings))


def test_an_existing_session_is_checked(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "workers_run_this_python", lambda _: False)
    observer = Warnings()
    settings = ReplicateSettings("dbname=x", str(tmp_path))
    with start_spark(settings, Storage(str(tmp_path)), threading.Event(), observer) as engine:
        assert engine.run(len, ["a", "bc"], 3) == [1, 2]
    assert [text.partition(":")[0] for text in observer.texts] == ["spark.scheduler.mode is FIFO"]
    monkeypatch.setitem(NEEDED, "replicate", ("no_such_module",))
    with (
        pytest.raises(ExecutorError, match="no_such_module"),
        start_spark(settings, Storage(str(tmp_path)), threading.Event(), observer),
    ):
        pass


@pytest.mark.parametrize(
    ("end", "error"),
    [
        ("stop", Ended),
        # PySpark asks a server that is gone again and again for ten minutes.
        ("java", EngineError),
    ],
)
def test_checks_that_do_not_end_are_left(
    spark: Any, end: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, at_the_end, stop = threading.Event(), threading.Event(), threading.Event()

    def hang(*_: object) -> None:
        begun.set()
        at_the_end.wait()

    def end_soon() -> None:
        begun.wait()
        if end == "stop":
            stop.set()
        else:
            monkeypatch.setattr(java, "has_ended", lambda within: True)

    monkeypatch.setattr(executors, "check_executors", hang)
    threading.Thread(target=end_soon, daemon=True).start()
    settings = ReplicateSettings("dbname=x", str(tmp_path), engine="spark")
    try:
        with pytest.raises(error), start_engine(settings, Storage(str(tmp_path)), stop, Observers()):
            pass
    finally:
        at_the_end.set()


def spark_warnings(settings: Mapping[str, str], secrets: list[str]) -> list[str]:
    """Return the warnings for a session with some settings."""
    warnings: list[str] = []
    session: Any = SimpleNamespace(conf=settings)
    warn_of_scheduling(session, warnings.append)
    warn_of_plain_text(session, secrets, warnings.append)
    return warnings


def test_a_scheduler_without_fair_turns_is_reported() -> None:
    assert spark_warnings({"spark.scheduler.mode": "FAIR"}, []) == []
    [text] = spark_warnings({}, [])
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
def test_secrets_that_travel_in_clear_are_reported(settings: Mapping[str, str], is_told: bool) -> None:
    fair = {"spark.scheduler.mode": "FAIR", **settings}
    warnings = spark_warnings(fair, ["the server's password", "the key of masks"])
    assert [text.partition(" travel ")[0] for text in warnings] == [
        "the server's password and the key of masks"
    ] * is_told
    assert spark_warnings(fair, []) == []


def test_a_server_of_spark_connect_that_is_reached_in_clear_is_reported() -> None:
    pytest.importorskip("grpc")
    from pyspark.sql.connect.client.core import DefaultChannelBuilder

    urls = ["sc://a.example", "sc://b.example/;use_ssl=true", "sc://c.example/;token=t", "sc://localhost"]
    assert [host_in_clear(DefaultChannelBuilder(url)) for url in urls] == ["a.example", "", "", ""]
    assert host_in_clear(object()) == ""
