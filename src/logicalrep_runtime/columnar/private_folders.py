"""Folders of this user for what can be made again, which no other user can write: what is in them is believed."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile


class UnsafeFolderError(OSError):
    """A folder that another user can write."""


def private_folder(base: str) -> str:
    """Return the user's own folder below a folder that users may share; it is made if it is not there.

    Raises:
        UnsafeFolderError: other users can write to it, or can put another one in its place.
        OSError: this user cannot write to it.
    """
    path = base if sys.platform == "win32" else os.path.join(base, f"logicalrep-{os.geteuid()}")
    os.makedirs(base, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    if sys.platform != "win32":
        shared, own = os.stat(base), os.lstat(path)
        is_own = stat.S_ISDIR(own.st_mode) and own.st_uid == os.geteuid() and not own.st_mode & 0o022
        # In a folder of all users, each may rename what is another's unless the sticky bit is set.
        if not is_own or (shared.st_mode & stat.S_IWOTH and not shared.st_mode & stat.S_ISVTX):
            raise UnsafeFolderError(f"{path} is no folder that only this user can write to")
    tempfile.TemporaryFile(dir=path).close()
    return path
