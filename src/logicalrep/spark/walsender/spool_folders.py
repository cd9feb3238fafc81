"""The folders of spools, which no other user can write, and which are checked before each use.

A user who can write into a spool can forge rows. So a folder is opened without following a link, its owner and mode
are checked, and its files are reached through its descriptor.

A spool's folder is locked while its process lives; a folder without a lock is abandoned. The lock is on the folder
itself, so no lock file can be planted, and programs that clean temporary folders leave it alone.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import stat
import sys
import tempfile
import uuid
from pathlib import Path

from logicalrep_runtime.errors import LogicalRepError

if sys.platform != "win32":
    import fcntl


class SpoolError(LogicalRepError, RuntimeError):
    """A spool is not safe, or this machine does not see it; the text names the spool and the remedy."""

    code = "SPOOL_UNSAFE"


def default_folder() -> Path:
    return Path(tempfile.gettempdir()).resolve() / f"logicalrep-{os.geteuid()}"


def open_own_folder(path: Path | str, within: int | None = None) -> int:
    """Return the descriptor of a folder of this user, in the folder with the descriptor `within`.

    Raises SpoolError if other users can write into the folder, and FileNotFoundError.
    """
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=within)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise _refused(path, "is a link or not a folder") from None
        if error.errno == errno.EACCES:
            raise _refused(path, "is closed to this user") from None
        raise
    status = os.fstat(folder)
    if status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return folder
    os.close(folder)
    if status.st_uid != os.geteuid():
        raise _refused(path, f"belongs to the user {status.st_uid}")
    raise _refused(path, f"can be written by others (its mode is {stat.S_IMODE(status.st_mode):04o})")


def _refused(path: Path | str, reason: str) -> SpoolError:
    return SpoolError(
        f"the spool's folder {path} {reason}, so its rows could be forged: remove it or close it to others, or name "
        f"another in the option 'spool' (this process, on {socket.gethostname()}, runs as the user {os.geteuid()})"
    )


def open_shared_folder(path: Path) -> int:
    try:
        path.mkdir(parents=True, mode=0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise SpoolError(
            f"the spool's folder {path} cannot be created ({error.strerror}): name another in the option 'spool'",
            code="SPOOL_NOT_MADE",
        ) from None
    return open_own_folder(path)


def add_folder(shared: int, slot: str) -> tuple[str, int]:
    """Create a slot's folder; return its name, and the descriptor that holds its lock.

    Removes abandoned folders of this host's processes.
    """
    host = socket.gethostname()
    # This lock keeps other processes from removing the new folder before it is locked itself.
    fcntl.flock(shared, fcntl.LOCK_EX)
    try:
        for name in os.listdir(shared):
            if name.count("@") == 2 and name.split("@")[1] == host:
                _remove_if_abandoned(shared, name)
        name = f"{slot}@{host}@{uuid.uuid4().hex}"
        os.mkdir(name, 0o700, dir_fd=shared)
        folder = open_own_folder(name, shared)
        fcntl.flock(folder, fcntl.LOCK_EX)
        return name, folder
    finally:
        fcntl.flock(shared, fcntl.LOCK_UN)


def _remove_if_abandoned(shared: int, name: str) -> None:
    try:
        folder = open_own_folder(name, shared)
    except (SpoolError, FileNotFoundError):
        return
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(name, ignore_errors=True, dir_fd=shared)
    except BlockingIOError:
        pass
    finally:
        os.close(folder)
