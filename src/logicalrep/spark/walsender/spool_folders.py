"""The folders that spools lie in: made so that no other user can write there, and looked at before each use.

Who can write into a spool can forge rows. So a folder is opened without following a link, its owner and mode are looked
at, and what is in it is reached by its descriptor.

A spool's folder is locked as long as its process lives: what is not locked is abandoned. The lock is on the folder
itself, so there is no file to plant, and programs that clean temporary folders leave it alone.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import socket
import stat
import tempfile
import uuid
from pathlib import Path

from logicalrep_runtime.errors import LogicalRepError


class SpoolError(LogicalRepError, RuntimeError):
    """A spool that is not to be trusted, or that is not seen from here; says which, and what to do."""

    code = "SPOOL_UNSAFE"


def default_folder() -> Path:
    """The folder of this user's spools, where the options name no other."""
    return Path(tempfile.gettempdir()).resolve() / f"logicalrep-{os.geteuid()}"


def own_folder(path: Path | str, within: int | None = None) -> int:
    """Open a folder, `within` another if its descriptor is given; SpoolError unless this user alone can write there.

    FileNotFoundError where there is none.
    """
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=within)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise _refused(path, "is a link or no folder") from None
        if error.errno == errno.EACCES:
            raise _refused(path, "is closed to this user") from None
        raise
    found = os.fstat(folder)
    if found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return folder
    os.close(folder)
    if found.st_uid != os.geteuid():
        raise _refused(path, f"belongs to the user {found.st_uid}")
    raise _refused(path, f"can be written by others (its mode is {stat.S_IMODE(found.st_mode):04o})")


def _refused(path: Path | str, reason: str) -> SpoolError:
    return SpoolError(
        f"the spool's folder {path} {reason}, so its rows could be forged: remove it or close it to others, or name "
        f"another in the option 'spool' (this process, on {socket.gethostname()}, runs as the user {os.geteuid()})"
    )


def shared_folder(path: Path) -> int:
    """Open the folder of all spools of this user, which is made where it is not there."""
    try:
        path.mkdir(parents=True, mode=0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise SpoolError(
            f"the spool's folder {path} cannot be made ({error.strerror}): name another in the option 'spool'",
            code="SPOOL_NOT_MADE",
        ) from None
    return own_folder(path)


def add_folder(shared: int, slot: str) -> tuple[str, int]:
    """Make a folder for a spool of a slot: its name and its descriptor, which keeps it locked until it is closed.

    The folders that processes of this host have left there are removed.
    """
    host = socket.gethostname()
    # Nobody takes a folder for an abandoned one between its making and its lock.
    fcntl.flock(shared, fcntl.LOCK_EX)
    try:
        for name in os.listdir(shared):
            if name.count("@") == 2 and name.split("@")[1] == host:
                _remove_if_abandoned(shared, name)
        name = f"{slot}@{host}@{uuid.uuid4().hex}"
        os.mkdir(name, 0o700, dir_fd=shared)
        folder = own_folder(name, shared)
        fcntl.flock(folder, fcntl.LOCK_EX)
        return name, folder
    finally:
        fcntl.flock(shared, fcntl.LOCK_UN)


def _remove_if_abandoned(shared: int, name: str) -> None:
    try:
        folder = own_folder(name, shared)
    except (SpoolError, FileNotFoundError):
        return
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(name, ignore_errors=True, dir_fd=shared)
    except BlockingIOError:
        pass
    finally:
        os.close(folder)
