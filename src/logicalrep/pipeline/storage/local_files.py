"""Files in a folder of this machine, written atomically and durably."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import IO

_WITHOUT_LINKS = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


class NoLinksError(OSError):
    """A file system without hard links, which `create` needs to write a file only if it does not exist."""


class UnreadableError(OSError):
    """A file that is too large, is no regular file, or is outside of the destination; the text says which."""


class LocalFiles:
    """Files in a folder of this machine. `Storage` specifies the methods, which raise OSError here.

    A file is written to a temporary name in the folder of its target, synced, and then renamed or linked to the target;
    then the folder is synced. Lists name links and follow none: reading a link out of the destination is an error.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def read(self, path: str, most_bytes: int | None = None) -> bytes | None:
        file = self._inside(path)
        try:
            if most_bytes is not None:
                # A read of a pipe would wait forever.
                status = os.stat(file)
                if not stat.S_ISREG(status.st_mode):
                    raise UnreadableError("it is not a regular file")
                refuse_large(status.st_size, most_bytes)
            with open(file, "rb") as opened:
                return opened.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def open(self, path: str, size: int, *, few: bool = False) -> IO[bytes]:
        return open(self._inside(path), "rb")

    def write(self, path: str, data: bytes | memoryview) -> None:
        target = self._inside_folder(path)
        os.replace(self._write_temporary(target, data), target)
        _sync(os.path.dirname(target))

    def create(self, path: str, data: bytes) -> bool:
        target = self._inside(path)
        written = self._write_temporary(target, data)
        try:
            os.link(written, target)
        except FileExistsError:
            # NFS repeats a request whose answer was lost, and the repeated request finds the link of the first.
            if not os.path.samestat(os.stat(written), os.lstat(target)):
                return False
        except OSError as error:
            if error.errno in _WITHOUT_LINKS:
                raise NoLinksError(error.errno, "its file system has no hard links") from None
            raise
        finally:
            os.unlink(written)
        _sync(os.path.dirname(target))
        return True

    def copy(self, source: str, target: str) -> None:
        copied = self._inside(target)
        folder = os.path.dirname(copied)
        self._make(folder)
        with suppress(FileExistsError):
            # A hard link to a link would lead elsewhere.
            os.link(os.path.realpath(self._inside(source)), copied)
        _sync(folder)

    def names(self, folder: str, after: str) -> list[str]:
        try:
            with os.scandir(self._inside(folder)) as entries:
                # A log has many entries before `after`.
                later_entries = [entry for entry in entries if entry.name > after]
                return sorted(entry.name for entry in later_entries if entry.is_symlink() or entry.is_file())
        except FileNotFoundError:
            return []

    def times(self, folder: str) -> dict[str, float]:
        times = {}
        for path in Path(self._inside(folder)).rglob("*"):
            with suppress(FileNotFoundError):
                if path.is_symlink() or path.is_file():
                    times[path.relative_to(self._folder).as_posix()] = path.lstat().st_mtime
        return times

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._inside_folder(path))

    def remove_empty_folders(self, folder: str) -> None:
        for path, _, _ in os.walk(self._inside(folder), topdown=False):
            with suppress(OSError):
                Path(path).rmdir()

    def _inside(self, path: str) -> str:
        """Return the path. Raises UnreadableError if a link leads out of the destination."""
        target = f"{self._folder}/{path}"
        # Without a link below the folder, the path leads where it says.
        parts = accumulate(path.split("/"), "{}/{}".format)
        if any(os.path.islink(f"{self._folder}/{part}") for part in parts):
            folder = os.path.realpath(self._folder)
            if os.path.commonpath([os.path.realpath(target), folder]) != folder:
                raise UnreadableError("a link leads from it out of the destination")
        return target

    def _inside_folder(self, path: str) -> str:
        """Return the path of a file that is replaced or deleted, without following the file itself if it is a link."""
        folder, slash, name = path.rpartition("/")
        return f"{self._inside(folder) if slash else self._folder}/{name}"

    def _make(self, folder: str) -> None:
        """Create a folder durably; only the owner may read a new destination."""
        if not os.path.exists(folder):
            parent = os.path.dirname(folder)
            self._make(parent)
            with suppress(FileExistsError):
                os.mkdir(folder, 0o700 if folder == self._folder else 0o777)
            _sync(parent)

    def _write_temporary(self, target: str, data: bytes | memoryview) -> str:
        folder, name = os.path.split(target)
        self._make(folder)
        temporary = f"{folder}/.{name}.{os.getpid()}.{time.monotonic_ns()}"
        try:
            with open(temporary, "xb", buffering=0) as file:
                rest = memoryview(data)
                while rest:
                    rest = rest[file.write(rest) :]
                os.fsync(file.fileno())
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
        return temporary


def refuse_large(size: int, most_bytes: int) -> None:
    if size > most_bytes:
        raise UnreadableError(f"it has {size:,} bytes, and a file of its kind has at most {most_bytes:,}")


def _sync(folder: str) -> None:
    # Windows opens no folders, and NTFS writes names to its own log.
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
