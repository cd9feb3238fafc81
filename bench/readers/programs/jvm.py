"""Java libraries, called from Python through py4j."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

JARS = Path(__file__).parents[3] / "build/jars"
_MAVEN = ["mvn", "--quiet", "--batch-mode"]


def start(name: str) -> Any:
    """Return the view of a Java process with the libraries of `{name}.xml`, which Maven copies into build/."""
    folder, project = JARS / name, Path(__file__).with_name(f"{name}.xml")
    ready = folder / project.name
    if not ready.exists() or ready.read_bytes() != project.read_bytes():
        subprocess.run(
            [*_MAVEN, "--file", project, "dependency:copy-dependencies", f"-DoutputDirectory={folder}"], check=True
        )
        ready.write_bytes(project.read_bytes())
    port = launch_gateway(classpath=f"{folder}/*", javaopts=["-Xmx1g", "-Duser.timezone=UTC"], die_on_exit=True)
    return JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True)).jvm


def fetch(artifact: str) -> Path:
    """Return the path of a jar without its dependencies; `artifact` is `group:name:version`."""
    _, name, version = artifact.split(":")
    jar = JARS / f"{name}-{version}.jar"
    if not jar.exists():
        subprocess.run([*_MAVEN, "dependency:copy", f"-DoutputDirectory={JARS}", f"-Dartifact={artifact}"], check=True)
    return jar


def version_of(name: str, artifact: str) -> str:
    """Return the version of one of the libraries that `start` has copied."""
    (jar,) = (JARS / name).glob(f"{artifact}-[0-9]*.jar")
    return jar.stem.removeprefix(f"{artifact}-")


def elements(iterator: Any) -> Iterator[Any]:
    """Yield the elements of a Java iterator that has to be closed."""
    while iterator.hasNext():
        yield iterator.next()
    iterator.close()


__all__ = ["elements", "fetch", "start", "version_of"]
