"""Debezium's embedded engine: its packages by Maven, our program around it by javac, and its process."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

from bench.peers.server import PortServer

_HERE = Path(__file__).parent / "java"
_BUILD = Path(__file__).parents[2] / "build" / "peers"
_JARS = _BUILD / "jars"
_NAMESPACE = "{http://maven.apache.org/POM/4.0.0}"
PROGRAM = _HERE / "Events.java"
"""Our program around the engine."""
WITH_OPTIONS = {
    "decimal.handling.mode": "string",
    "interval.handling.mode": "string",
    "skipped.operations": "none",
}
"""The properties that its documentation gives for exact numbers, for intervals, and for TRUNCATE."""


class NotAvailableError(Exception):
    """A tool that cannot be had here; its text is the sentence that the page has."""


def version() -> str:
    """Return the version that pom.xml names."""
    version_text = ElementTree.parse(_HERE / "pom.xml").findtext(f"{_NAMESPACE}properties/{_NAMESPACE}debezium")
    assert version_text is not None
    return version_text.removesuffix(".Final")


def build() -> None:
    """Fetch the packages and compile the program, unless that is done. Raises NotAvailableError if it cannot be."""
    if absent := [name for name in ("mvn", "javac", "java") if shutil.which(name) is None]:
        raise NotAvailableError(f"Debezium is left out: {', '.join(absent)} cannot be found.")
    ready = _BUILD / "ready"
    if ready.is_file() and ready.read_text() == _sources():
        return
    shutil.rmtree(_BUILD, ignore_errors=True)
    for command in (
        ["mvn", "--quiet", "--batch-mode", "--file", str(_HERE / "pom.xml"), "dependency:copy-dependencies",
         f"-DoutputDirectory={_JARS}"],
        ["javac", "-cp", f"{_JARS}/*", "-d", str(_BUILD), str(PROGRAM)],
    ):  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            output_lines = (done.stdout + done.stderr).strip().splitlines()
            raise NotAvailableError(
                f"Debezium is left out, as {command[0]} failed: {output_lines[0] if output_lines else 'no reason'}"
            )
    ready.write_text(_sources())


def _sources() -> str:
    return (_HERE / "pom.xml").read_text() + PROGRAM.read_text()


def properties(server: PortServer, name: str, folder: Path, more: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of an engine with a slot of its own."""
    return {
        "name": name,
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "topic.prefix": name,
        "plugin.name": "pgoutput",
        "slot.name": name,
        "publication.name": "peers",
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": "postgres",
        "database.password": "none",
        "database.dbname": "postgres",
        "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
        "offset.storage.file.filename": str(folder / f"{name}.offsets"),
        "offset.flush.interval.ms": "1000",
        **more,
    }


@contextmanager
def events(
    server: PortServer, name: str, folder: Path, more: Mapping[str, str], *, out: Path | None, count: int = 0
) -> Iterator[subprocess.Popen[bytes]]:
    """Run an engine while the context lasts: the first run reads all tables, a later run resumes where it stopped.

    Args:
        server: the server.
        name: the engine's name, and its slot's.
        folder: where its position and its log are.
        more: more properties.
        out: the file that the events are appended to; None to count them alone.
        count: the number of events after which it ends; 0 for none.
    """
    properties_file = folder / f"{name}.properties"
    properties_file.write_text(
        "".join(f"{key}={value}\n" for key, value in properties(server, name, folder, more).items())
    )
    command = ["java", "-cp", f"{_JARS}/*:{_BUILD}", "Events", str(properties_file), str(out or "-"), str(count)]
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


__all__ = ["PROGRAM", "WITH_OPTIONS", "NotAvailableError", "build", "events", "properties", "version"]
