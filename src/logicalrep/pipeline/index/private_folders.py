"""A user's private cache folder: no other user can write it, so its content is trusted."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile


class UnsafeFolderError(OSError):
    """A folder that another user can write."""


def private_folder(base: str) -> str:
    """Return this user's folder below a folder that users may share, created if necessary. Raises UnsafeFolderError."""
    path = base if sys.platform == "win32" else os.path.join(base, f"logicalrep-{os.geteuid()}")
    os.makedirs(base, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    if sys.platform != "win32":
        shared, own = os.stat(base), os.lstat(path)
        is_own = stat.S_ISDIR(own.st_mode) and own.st_uid == os.geteuid() and not own.st_mode & 0o022
        # In a shared folder without the sticky bit, users may rename each other's folders.
        if not is_own or (shared.st_mode & stat.S_IWOTH and not shared.st_mode & stat.S_ISVTX):
            raise UnsafeFolderError(f"{path} is not a folder that only this user can write to")
    tempfile.TemporaryFile(dir=path).close()
    return path
