"""Debezium's embedded engine: its packages by Maven, our program around it by javac, and its process."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

from psycopg.conninfo import conninfo_to_dict

from conformance.run import PUBLICATION

_HERE = Path(__file__).parent / "java"
_BUILD = Path(__file__).parents[2] / "build" / "debezium"
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


class NotBuiltError(Exception):
    """Debezium cannot be fetched or compiled here; the text is the reason."""


def version() -> str:
    """Return the version that pom.xml names."""
    version_text = ElementTree.parse(_HERE / "pom.xml").findtext(f"{_NAMESPACE}properties/{_NAMESPACE}debezium")
    assert version_text is not None
    return version_text.removesuffix(".Final")


def build() -> None:
    """Fetch the packages and compile the program, unless that is done. Raises NotBuiltError if it cannot be."""
    if absent := [name for name in ("mvn", "javac", "java") if shutil.which(name) is None]:
        raise NotBuiltError(f"{', '.join(absent)} cannot be found.")
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
            raise NotBuiltError(f"{command[0]} failed: {output_lines[0] if output_lines else 'no reason'}")
    ready.write_text(_sources())


def _sources() -> str:
    return (_HERE / "pom.xml").read_text() + PROGRAM.read_text()


def properties(dsn: str, name: str, publication: str, folder: Path, more: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of an engine with a slot of its own.

    Args:
        dsn: the connection string, with a host and a port, as Java reaches no Unix socket.
        name: the engine's name, and its slot's.
        publication: the publication.
        folder: where its position is.
        more: more properties.
    """
    server = conninfo_to_dict(dsn)
    return {
        "name": name,
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "topic.prefix": name,
        "plugin.name": "pgoutput",
        "slot.name": name,
        "publication.name": publication,
        "database.hostname": str(server["host"]),
        "database.port": str(server["port"]),
        "database.user": str(server["user"]),
        "database.password": "none",
        "database.dbname": str(server["dbname"]),
        "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
        "offset.storage.file.filename": str(folder / f"{name}.offsets"),
        "offset.flush.interval.ms": "1000",
        **more,
    }


def command(properties: Mapping[str, str], name: str, folder: Path, out: Path | None, count: int = 0) -> list[str]:
    """Write the properties into a folder, and return the command of an engine.

    Args:
        properties: the engine's properties.
        name: the name of the file.
        folder: where the file is written.
        out: the file that the events are appended to; None to count them alone.
        count: the number of events after which the engine ends; 0 for none.
    """
    file = folder / f"{name}.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return ["java", "-cp", f"{_JARS}/*:{_BUILD}", "Events", str(file), str(out or "-"), str(count)]


@contextmanager
def events(
    dsn: str, name: str, folder: Path, more: Mapping[str, str], *, out: Path | None, count: int = 0
) -> Iterator[subprocess.Popen[bytes]]:
    """Run an engine for the kit's publication while the context lasts.

    The first run reads all tables, a later run resumes where it stopped. `properties` and `command` describe the
    arguments. The engine's log is in the folder.
    """
    arguments = command(properties(dsn, name, PUBLICATION, folder, more), name, folder, out, count)
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(arguments, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


__all__ = ["PROGRAM", "WITH_OPTIONS", "NotBuiltError", "build", "command", "events", "properties", "version"]
