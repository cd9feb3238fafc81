"""The place of Delta tables: a folder, or an object store's URI."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotSupportedError
from obstore.store import ObjectStore, from_url

from logicalrep_runtime.errors import LogicalRepError

_Result = TypeVar("_Result")

_TRIES = 4
"""The number of tries of a request that an object store refuses."""


class PlaceError(LogicalRepError, RuntimeError):
    """A place that cannot be read or written; the text quotes the reason."""

    code = "PLACE_NOT_WRITABLE"
    may_pass = True
    """Whether it may be gone after a while, as a full disk may, and a store that is away."""


class NoSuchPlaceError(PlaceError):
    """A place that cannot be used at all."""

    code = "PLACE_INVALID"
    may_pass = False


@dataclass(frozen=True)
class Place:
    """A folder, or an object store's URI with what it takes to reach it. Paths within it are relative, with `/`.

    Example:
        >>> place = Place("s3://lake/shop", {"aws_region": "eu-central-1"})
        >>> place.write("notes/today.txt", b"...")
    """

    uri: str
    """The folder's path, or a URI such as `s3://bucket/folder`."""
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of the object store, which add to its usual environment variables; never shown."""

    def __post_init__(self) -> None:
        if self.is_local:
            path = self.uri.removeprefix("file://")
            object.__setattr__(self, "uri", os.path.abspath(os.path.expanduser(path)))
        else:
            object.__setattr__(self, "uri", self.uri.rstrip("/"))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.uri, self.storage_options)

    @property
    def is_local(self) -> bool:
        """Whether it is a folder."""
        return "://" not in self.uri or self.uri.startswith("file://")

    def uri_of(self, path: str) -> str:
        """Return the URI, or the path, of what lies at a path."""
        return f"{self.uri}/{path}"

    def read(self, path: str) -> bytes | None:
        """Return a file's content; None if there is no such file."""
        return self._run(path, lambda: self._files.read(path))

    def open(self, path: str) -> IO[bytes]:
        """Open a file for reading at any position."""
        return self._run(path, lambda: self._files.open(path))

    def write(self, path: str, data: bytes) -> None:
        """Write a file, or replace it as a whole; it is durable afterwards."""
        self._run(path, lambda: self._files.write(path, data))

    def create(self, path: str, data: bytes) -> bool:
        """Write a file unless it exists; return whether it was written."""
        return self._run(path, lambda: self._files.create(path, data))

    def list(self, folder: str) -> list[str]:
        """Return the paths of all files beneath a folder."""
        return self._run(folder, lambda: self._files.list(folder))

    def delete(self, path: str) -> None:
        """Remove a file if it exists."""
        self._run(path, lambda: self._files.delete(path))

    def _run(self, path: str, action: Callable[[], _Result]) -> _Result:
        try:
            return action()
        except NotSupportedError as error:
            raise NoSuchPlaceError(
                f"{self.uri} cannot write a file only if it does not exist, which keeps commits apart: use another "
                f"({_first_line(error)})"
            ) from None
        except (OSError, BaseError, ValueError) as error:
            raise PlaceError(f"{self.uri_of(path)}: {_first_line(error)}") from None

    @cached_property
    def _files(self) -> _Folder | _Store:
        if self.is_local:
            return _Folder(Path(self.uri))
        try:
            return _Store(_store(self.uri, self.storage_options))
        except (OSError, BaseError, ValueError) as error:
            raise NoSuchPlaceError(f"{self.uri} is not a place for tables: {_first_line(error)}") from None


_OF_CLIENT = """
allow_http allow_invalid_certificates connect_timeout default_content_type pool_idle_timeout pool_max_idle_per_host
proxy_url proxy_ca_certificate proxy_excludes randomize_addresses read_timeout timeout user_agent
"""
"""The options of the client that speaks HTTP, which delta-rs takes among the store's."""


def _store(uri: str, options: Mapping[str, str]) -> ObjectStore:
    config: dict[str, str] = {}
    of_client: dict[str, str] = {}
    for name, value in options.items():
        short = name.lower().removeprefix("aws_").removeprefix("azure_").removeprefix("google_")
        if short in _OF_CLIENT.split():
            of_client[short] = value
        else:
            config[name] = value
    return from_url(uri, config=config, client_options=of_client)  # type: ignore[call-overload, no-any-return]


def _first_line(error: BaseException) -> str:
    # The store's own errors go on with lines for its developers.
    return str(error).partition("\n")[0] or type(error).__name__


class _Folder:
    """Files in a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, path: str) -> bytes | None:
        try:
            return (self._folder / path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def open(self, path: str) -> IO[bytes]:
        return (self._folder / path).open("rb")

    def write(self, path: str, data: bytes) -> None:
        target = self._folder / path
        os.replace(self._written(target, data), target)
        _sync(target.parent)

    def create(self, path: str, data: bytes) -> bool:
        target = self._folder / path
        written = self._written(target, data)
        try:
            os.link(written, target)
        except FileExistsError:
            return False
        finally:
            written.unlink()
        _sync(target.parent)
        return True

    def list(self, folder: str) -> list[str]:
        top = self._folder / folder
        return [str(path.relative_to(self._folder)) for path in top.rglob("*") if path.is_file()]

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            (self._folder / path).unlink()

    @staticmethod
    def _written(target: Path, data: bytes) -> Path:
        """Write a file beside the target, and return its path once it is on the disk."""
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.parent / f".{target.name}.{os.getpid()}.{time.monotonic_ns()}"
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return temporary


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _Store:
    """Files in an object store, which repeats failed requests by itself."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def read(self, path: str) -> bytes | None:
        try:
            return obstore.get(self._store, path).bytes().to_bytes()
        except FileNotFoundError:
            return None

    def open(self, path: str) -> IO[bytes]:
        return _Reader(self._store, path)  # type: ignore[return-value]

    def write(self, path: str, data: bytes) -> None:
        obstore.put(self._store, path, data)

    def create(self, path: str, data: bytes) -> bool:
        try:
            obstore.put(self._store, path, data, mode="create")
        except AlreadyExistsError:
            return False
        return True

    def list(self, folder: str) -> list[str]:
        return [entry["path"] for page in obstore.list(self._store, folder) for entry in page]

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            obstore.delete(self._store, path)


class _Reader(io.RawIOBase):
    """A stored file; each read is a request. Its errors are OSErrors, like those of a file in a folder."""

    def __init__(self, store: ObjectStore, path: str) -> None:
        self._store = store
        self._path = path
        self._size = obstore.head(store, path)["size"]
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._position = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        return self._position

    def readinto(self, buffer: Any) -> int:
        end = min(self._position + len(buffer), self._size)
        if end <= self._position:
            return 0
        try:
            data = obstore.get_range(self._store, self._path, start=self._position, end=end)
        except BaseError as error:
            raise OSError(_first_line(error)) from None
        buffer[: len(data)] = memoryview(data)
        self._position += len(data)
        return len(data)


__all__ = ["NoSuchPlaceError", "Place", "PlaceError"]
