"""Small disks, which can be full or read-only."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


def mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"mounting is not allowed: {done.stderr.strip()}")


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Mount a disk of two megabytes."""
    folder.mkdir()
    mount("-t", "tmpfs", "-o", "size=2m", "none", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextlib.contextmanager
def read_only(disk: Path) -> Iterator[None]:
    mount("-o", "remount,ro", str(disk))
    try:
        yield
    finally:
        mount("-o", "remount,rw", str(disk))


def fill(disk: Path) -> Path:
    """Leave no room, also no rest of a block."""
    path = disk / "filling"
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
    return path
