"""The option `engine`: `auto` takes the Spark of the program, else processes of this machine."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from logicalrep.pipeline.engines.choice import EngineChoice, choose_engine
from logicalrep.pipeline.engines.engine import EngineError


@pytest.fixture(autouse=True)
def without_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT", "SPARK_CONNECT_MODE_ENABLED"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def without_session(monkeypatch: pytest.MonkeyPatch) -> None:
    # Another test of this process may have a session.
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)


@pytest.mark.usefixtures("without_session")
def test_without_a_spark_the_engine_is_local() -> None:
    reason = "there is no Spark session, SPARK_REMOTE or spark-submit"
    assert choose_engine("auto") == EngineChoice("local", reason)


@pytest.mark.usefixtures("without_session")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("SPARK_REMOTE", "SPARK_REMOTE is set"),
        ("PYSPARK_GATEWAY_PORT", "spark-submit runs this program"),
        ("SPARK_CONNECT_MODE_ENABLED", "this process has a session of Spark Connect"),
    ],
)
def test_a_variable_selects_spark(monkeypatch: pytest.MonkeyPatch, name: str, reason: str) -> None:
    monkeypatch.setenv(name, "1")
    assert choose_engine("auto") == EngineChoice("spark", reason)
    assert choose_engine("local").name == "local"


@pytest.mark.usefixtures("without_session")
def test_the_option_selects_spark() -> None:
    assert choose_engine("spark") == EngineChoice("spark", "the option engine requires it")


def test_the_session_of_the_process_selects_spark(spark: Any) -> None:
    assert spark.range(3).count() == 3
    assert choose_engine("auto") == EngineChoice("spark", "this process has a Spark session")


@pytest.mark.parametrize("name", ["spark", "local"])
def test_windows_has_no_engine(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    choice = choose_engine(name)
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(EngineError, match=r"this is Windows: run it in WSL") as refused:
        choice.refuse_missing()
    assert refused.value.code == "PLATFORM_REFUSED"
