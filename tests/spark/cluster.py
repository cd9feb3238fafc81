"""A standalone cluster of Spark on this machine: a master, and workers of one core each."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyspark

from tests.conftest import ROOT
from tests.waiting import eventually

HOME = Path(pyspark.__file__).parent
PATHS = os.pathsep.join(str(ROOT / folder) for folder in ("src", "generated", "."))
"""The PYTHONPATH that its executors need, as the workers' environment has nothing of ours."""


def submission(master: str, program: Path, *arguments: str, settings: dict[str, str]) -> list[str]:
    """Return the command that runs a program by `spark-submit` on executors of one core each."""
    own = {"spark.executorEnv.PYTHONPATH": PATHS, "spark.executor.cores": "1", "spark.ui.enabled": "false"}
    submit = [str(HOME / "bin" / "spark-submit"), "--master", master]
    submit += [part for name, value in (own | settings).items() for part in ("--conf", f"{name}={value}")]
    return [*submit, str(program), *arguments]


OF_DRIVER = {"PYTHONPATH": PATHS, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
"""The variables that a driver needs in addition to the environment of the tests."""


def submitted(
    master: str,
    program: Path,
    *arguments: str,
    settings: dict[str, str],
    environment: dict[str, str],
    timeout: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Run a program by `spark-submit`; `environment` is added to the driver's alone."""
    return subprocess.run(
        submission(master, program, *arguments, settings=settings),
        env=os.environ | OF_DRIVER | environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@contextmanager
def connect_server(
    master: str, folder: Path, settings: dict[str, str], *, python: str = sys.executable, paths: str = PATHS
) -> Iterator[str]:
    """Yield the URL of a server of Spark Connect on a cluster, whose log is in `folder`; it is the driver."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {"spark.connect.grpc.binding.port": str(port), "spark.connect.grpc.binding.address": "127.0.0.1"}
    own |= {"spark.executorEnv.PYTHONPATH": paths, "spark.executor.cores": "1", "spark.ui.enabled": "false"}
    submit = [str(HOME / "bin" / "spark-submit"), "--master", master]
    submit += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    submit += [part for name, value in (own | settings).items() for part in ("--conf", f"{name}={value}")]
    with (folder / "connect.log").open("ab") as log:
        process = subprocess.Popen(
            [*submit, "spark-internal"],
            env=os.environ | {"PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"},
            stdout=log, stderr=log, cwd=folder,
        )  # fmt: skip
    try:
        eventually(lambda: _answers(port) or process.poll() is not None)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def _answers(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def cluster(
    folder: Path,
    workers: int = 2,
    python: str = sys.executable,
    cores: Sequence[int] = (),
    settings: Mapping[str, str] | None = None,
    **of_workers: Any,
) -> Iterator[str]:
    """Yield the URL of a master, whose log is in `folder`; it and its workers have some settings.

    Each worker has an address of its own, where the system has some: two of one address count as one machine, on which
    Spark does not run a task twice. Each, with its executors, has one of `cores` for itself, if there are some.
    `of_workers` are arguments of Popen for the workers, such as another user, who then owns their folders.
    """
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
    environment |= {"SPARK_HOME": str(HOME), "PYSPARK_PYTHON": python}
    environment["SPARK_DAEMON_JAVA_OPTS"] = " ".join(f"-D{name}={value}" for name, value in (settings or {}).items())
    log = folder / "cluster.log"

    def found(pattern: str) -> list[str]:
        return re.findall(pattern, log.read_text(errors="replace"))

    with ExitStack() as stack:

        def start(
            *arguments: str, host: str = "127.0.0.1", own: Path = folder, prefix: Sequence[str] = (), **options: Any
        ) -> None:
            with log.open("ab") as output:
                process = subprocess.Popen(
                    [*prefix, HOME / "bin" / "spark-class", *arguments, "--host", host],
                    env=environment | {"TMPDIR": str(own), "SPARK_LOCAL_IP": host},
                    stdout=output, stderr=output, cwd=own, **options,
                )  # fmt: skip
            stack.callback(process.wait, 30)
            stack.callback(process.terminate)

        start("org.apache.spark.deploy.master.Master", "--port", "0", "--webui-port", "0")
        eventually(lambda: bool(found(r"Starting Spark master at spark://\S+")))
        [url] = found(r"Starting Spark master at (spark://\S+)")
        for number in range(workers):
            own = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="logicalrep-worker-")))
            if "user" in of_workers:
                os.chown(own, of_workers["user"], of_workers["group"])
            worker = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "-d", str(own)]
            pinned = ["taskset", "-c", str(cores[number])] if cores else []
            host = f"127.0.0.{number + 1}" if sys.platform == "linux" else "127.0.0.1"
            of_worker = ["org.apache.spark.deploy.worker.Worker", *worker, url]
            start(*of_worker, host=host, own=own, prefix=pinned, **of_workers)
        eventually(lambda: len(found("Registering worker")) == workers)
        yield url
