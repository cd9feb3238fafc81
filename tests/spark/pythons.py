"""Pythons of executors that are not as the driver's: of another version, or without some of its packages."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Collection
from pathlib import Path

from tests.conftest import ROOT


def make_python(folder: Path, *, version: str | None = None, without: Collection[str] = ()) -> Path:
    """Return a Python with the packages of this one but for some, and with logicalrep as of a version, if there is one."""
    venv.create(folder / "venv", symlinks=True)
    packages = folder / "packages"
    packages.mkdir()
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        name = package.name.partition(".")[0]
        if (name == "logicalrep_native" or "logicalrep" not in package.name) and name not in without:
            (packages / package.name).symlink_to(package)
    paths = [packages]
    if version is not None:
        told = packages / f"logicalrep-{version}.dist-info"
        told.mkdir()
        (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: logicalrep\nVersion: {version}\n")
        paths += [ROOT / "src", ROOT / "generated"]
    [site] = (folder / "venv").glob("lib/python*/site-packages")
    # Python does not read the .pth files of a folder that is added in this way: one may point to logicalrep.
    (site / "packages.pth").write_text("".join(f"{path}\n" for path in paths))
    return folder / "venv" / "bin" / "python"


def find_other_version() -> Path | None:
    """Return a Python of another version on this machine; None if there is none."""
    own = f"python{sys.version_info.major}.{sys.version_info.minor}"
    names = [f"python3.{minor}" for minor in range(10, 20)]
    programs = [shutil.which(name) for name in names if name != own]
    of_pyenv = [
        next(iter(sorted(Path.home().glob(f".pyenv/versions/*/bin/{name}"))), None) for name in names if name != own
    ]
    for path in (*programs, *of_pyenv):
        # One of pyenv's own links says that no such version is chosen.
        if path is not None and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return Path(path)
    return None
