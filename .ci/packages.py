"""The packages of dist/ in fresh environments without the clone: by pip with construct alone, by uv with a server."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
SCRIPTS = "Scripts" if sys.platform == "win32" else "bin"
WHEEL = """
import importlib.metadata
import importlib.util

import logicalrep

packages = {name for name, owners in importlib.metadata.packages_distributions().items() if "logicalrep" in owners}
assert packages == {"logicalrep", "logicalrep_protocol", "logicalrep_runtime"}, packages
for name in ("codegen", "spec", "generated", "src", "tests", "yaml", "jinja2"):
    assert importlib.util.find_spec(name) is None, f"{name} is importable beside the installed wheel"
installed = {distribution.name for distribution in importlib.metadata.distributions()}
assert installed <= {"logicalrep", "construct", "pip", "setuptools"}, installed
message = logicalrep.v1.parse(bytes.fromhex("4200000000019092800003034062c50000000002e4"))
print(f"logicalrep {importlib.metadata.version('logicalrep')}: {message}")
"""
NATIVE = """
import logicalrep_native, pyarrow
from logicalrep import v4
assert v4.native_read is not None
print("The native reader is found.")
"""
COMMANDS = """
import subprocess
import sys

import psycopg

from logicalrep.postgres.local_server import LocalServer, find_installation

with LocalServer(find_installation(18)) as server:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE t AS SELECT id FROM generate_series(1, 1000) AS id")
        connection.execute("ALTER TABLE t ADD PRIMARY KEY (id)")
    for command in ("check", "replicate --once", "verify", "drop"):
        subprocess.run([*sys.argv[1:], *command.split(), "--dsn", server.dsn, "--to", "lake"], check=True)
"""


def run(*arguments: str | Path) -> None:
    # The clone's Python path and variables are no part of a user's environment.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LOGICALREP_"))}
    subprocess.run(arguments, env=environment, check=True)


def only(pattern: str) -> Path:
    (path,) = DIST.glob(pattern)
    return path


def check_native_wheels() -> None:
    for wheel in DIST.glob("logicalrep_native-*.whl"):
        assert "-cp311-abi3-" in wheel.name, f"{wheel} is not for all Pythons"
        with zipfile.ZipFile(wheel) as files:
            assert any(Path(name).suffix in (".so", ".pyd") for name in files.namelist()), f"{wheel} has no module"


def main() -> None:
    for name in ("vectors", "ksy", "reference"):
        with zipfile.ZipFile(DIST / f"logicalrep-{name}.zip") as files:
            assert files.testzip() is None
    assert (DIST / "logicalrep.lua").stat().st_size
    check_native_wheels()
    wheel, sdist = only("logicalrep-[0-9]*.whl"), only("logicalrep-[0-9]*.tar.gz")
    with tempfile.TemporaryDirectory() as fresh, contextlib.chdir(fresh):
        shutil.copy(ROOT / "tests/captures/pg16/stream/v4-live.walsender.jsonl.gz", Path(fresh, "capture.jsonl.gz"))
        venv.create("venv", with_pip=True)
        scripts = Path(fresh, "venv", SCRIPTS)
        python, pip = scripts / "python", (scripts / "python", "-m", "pip", "install", "-q", "--find-links", DIST)
        run(*pip, wheel)
        run(python, "-c", WHEEL)
        run(scripts / "logicalrep", "decode", "--summary", "capture.jsonl.gz")
        run(*pip, f"{wheel}[arrow]")
        run(python, "-c", NATIVE)
        run(*pip, "--force-reinstall", "--no-deps", sdist)
        run(python, "-c", "import logicalrep.cli.main, logicalrep_protocol; print('The sdist imports too.')")
        run(*pip, "--constraint", ROOT / ".ci/tools.txt", "uv")
        uvx = (scripts / "uvx", "--quiet", "--python", sys.executable, "--find-links", DIST)
        command = (*uvx, "--from", f"{wheel}[local]", "logicalrep")
        run(*command, "--version")
        if sys.platform != "win32":
            Path("commands.py").write_text(COMMANDS, "utf-8")
            run(*uvx, "--from", f"{wheel}[local,server]", "python", "commands.py", *command)


if __name__ == "__main__":
    main()
