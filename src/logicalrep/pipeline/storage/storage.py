"""The destination of tables: a folder, or an object store's URI."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import IO, Any, TypeVar
from urllib.parse import quote, unquote

from obstore.exceptions import BaseError, NotSupportedError

from logicalrep.options.paths import MalformedFileError as MalformedFileError
from logicalrep.options.paths import below as below
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.stored_json import parse_json
from logicalrep.pipeline.storage.layout import FolderLayout
from logicalrep.pipeline.storage.local_files import LocalFiles, NoLinksError, UnreadableError
from logicalrep.pipeline.storage.store_files import StoreFiles
from logicalrep.pipeline.storage.uris import is_folder
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.visible import secrets_of, without_secrets

_Result = TypeVar("_Result")

_STORE = re.compile(r"(s3|s3a|gs|abfs|abfss)://[^/?#]+(/[^?#]*)?")
_PERCENT_CODE = re.compile("%[0-9A-Fa-f]{2}")
_ENVIRONMENT_VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ALLOW_HTTP",
)
"""Environment variables of S3 that replicate passes to Spark's executors, whose environment differs."""
_ENDPOINTS = ("aws_endpoint", "endpoint", "aws_endpoint_url", "endpoint_url")


def _refuse_plain_http(uri: str, options: Mapping[str, str]) -> None:
    endpoint = next((options[name] for name in _ENDPOINTS if name in options), "")
    allowed = options.get("aws_allow_http", options.get("allow_http", "")).lower()
    if endpoint.startswith("http://") and allowed not in ("true", "1"):
        raise InvalidDestinationError(
            f"the store of {uri} is at {endpoint}, which is not encrypted: to allow that, set "
            "AWS_ALLOW_HTTP=true, or add --storage-option aws_allow_http=true"
        )


class StorageError(LogicalRepError, RuntimeError):
    """A destination that cannot be read or written; the text quotes the reason."""

    code = "STORAGE_NOT_WRITABLE"
    may_pass = True
    """Whether a retry may succeed, for example after a full disk or an unreachable store."""
    retry_seconds = 0.0
    """The least seconds before a retry that a service asks for."""


class DamagedError(LogicalRepError, RuntimeError):
    """A file of a destination that is missing or changed."""

    code = "TABLE_DAMAGED"


class InvalidDestinationError(StorageError):
    """A destination that can never be used."""

    code = "DESTINATION_INVALID"
    may_pass = False


@dataclass(frozen=True)
class Storage:
    """A folder, or an object store's URI and its options. Paths within the destination are relative, with `/`.

    `LocalFiles` and `StoreFiles` implement the methods; `tests/pipeline/storage/test_every_storage.py` checks both.

    **Threads and processes.** Any thread calls any method, and engines pickle a storage for their processes.

    **Atomic.** A reader, and a process that starts after a crash, gets a file's old bytes or its new bytes, never a
    part of them. `write`, `create` and `copy` return once the file and its name are durable. `delete` is not durable:
    after a power failure a deleted file may exist again.

    **Current.** After a method returns, every process reads, opens and lists the method's effect.

    **Errors.** Every method raises:

    - MalformedFileError: the path, or a link on it, leads out of the destination. The method did nothing.
    - InvalidDestinationError: the destination can never be used: it does not support `create`, or an option is wrong.
    - StorageError: the destination cannot be read or written now. A file to be written has its old bytes or its new
      bytes: the answer may have been lost. The caller repeats the call or reads the file; `read` returns None only
      for an absent file.

    Example:
        >>> storage = Storage("s3://lake/shop", {"aws_region": "eu-central-1"})
        >>> storage.write("notes/today.txt", b"...")
    """

    uri: str
    """The folder's path, or a URI such as `s3://bucket/folder`."""
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of the object store, in addition to its usual environment variables; never shown."""
    limits: Limits = field(default=Limits(), repr=False)
    """The limits of the run that uses the storage."""
    credentials: Callable[[], Any] | None = field(default=None, repr=False)
    """Returns credentials that expire, as obstore's credential providers do; None for the options' credentials."""

    def __post_init__(self) -> None:
        if self.is_local:
            path = os.path.abspath(os.path.expanduser(self.uri.removeprefix("file://")))
            _refuse_percent_codes(path, path)
            object.__setattr__(self, "uri", path)
            return
        if not _STORE.fullmatch(self.uri):
            raise InvalidDestinationError(
                f"{self.uri} is not a destination for tables: name a folder, or a URI such as s3://bucket/folder, "
                "gs://bucket/folder or abfss://container@account.dfs.core.windows.net/folder"
            )
        _refuse_percent_codes(self.uri, unquote(self.uri))
        options = {name.lower(): value for name, value in self.storage_options.items()}
        if self.uri.startswith("s3"):
            variables = {name.lower(): os.environ[name] for name in _ENVIRONMENT_VARIABLES if name in os.environ}
            if "aws_endpoint" in options:
                variables.pop("aws_endpoint_url", None)
            options = variables | options
            _refuse_plain_http(self.uri, options)
        object.__setattr__(self, "uri", self.uri.rstrip("/"))
        object.__setattr__(self, "storage_options", options)

    def __reduce__(self) -> tuple[type[Storage], tuple[object, ...]]:
        return type(self), (self.uri, self.storage_options, self.limits, self.credentials)

    @property
    def is_local(self) -> bool:
        """Whether the destination is a folder."""
        return is_folder(self.uri)

    def uri_of(self, path: str) -> str:
        """Return the URI, percent-encoded, or the local path of a relative path."""
        path = self._checked(path)
        return f"{self.uri}/{path if self.is_local else quote(path)}"

    def location(self, path: str) -> str:
        """Return the location of a path in Iceberg's metadata: the URI, not percent-encoded, or the local path."""
        return f"{self.uri}/{path}"

    def path_of(self, location: str) -> str:
        """Return the path of a location in Iceberg's metadata. Raises ValueError for a location elsewhere."""
        plain = location.removeprefix("file://") if self.is_local else location
        if not plain.startswith(f"{self.uri}/"):
            raise ValueError(
                f"{location} is not below {self.uri}: the destination was moved, or another program wrote the location"
            )
        return below(plain.removeprefix(f"{self.uri}/"))

    def read(self, path: str, most_bytes: int | None = None) -> bytes | None:
        """Return a file's content; None if the file does not exist.

        Raises MalformedFileError if the file has more than `most_bytes`, None for no limit, or is no regular file.
        """
        return self._run(path, lambda: self._files.read(path, most_bytes))

    def parse(self, path: str, parser: Callable[[Any], _Result], *, most_bytes: int | None = None) -> _Result | None:
        """Return the parser's result for a file's JSON; None if the file does not exist.

        Raises MalformedFileError with the file's name if the file is larger than `most_bytes`, by default
        `Limits.json_bytes`, is no JSON, or is refused by the parser.
        """
        data = self.read(path, self.limits.json_bytes if most_bytes is None else most_bytes)
        if data is None:
            return None
        with self.parsing(path):
            return parser(parse_json(data))

    @contextmanager
    def parsing(self, path: str) -> Iterator[None]:
        """Replace errors of parsing a file by MalformedFileError with the file's name."""
        try:
            yield
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            if isinstance(error, LogicalRepError):
                reason = error.description
            else:
                reason = f"it lacks {error}" if isinstance(error, KeyError) else first_line(error)
            raise MalformedFileError(f"{self.uri_of(path)} is damaged: {reason}") from None

    def decoding(self, path: str) -> AbstractContextManager[None]:
        """Replace errors of a library that decodes a file by MalformedFileError with the file's name."""
        return decoding(self.uri_of(path))

    @contextmanager
    def open(self, path: str, size: int, *, few: bool = False) -> Iterator[IO[bytes]]:
        """Open a file of a known size for reading at any position; `few` announces that the caller reads little.

        Called for data files, which never change. One thread reads the opened file.

        Raises, at once or at the first read within the context:
            DamagedError: the file does not exist.
            StorageError: the file cannot be read now.
        """
        self._checked(path)
        try:
            with self._files.open(path, size, few=few) as opened:
                yield opened
        except FileNotFoundError:
            raise DamagedError(f"{self.uri_of(path)} does not exist") from None
        except UnreadableError as error:
            raise DamagedError(f"{self.uri_of(path)} cannot be read: {error}") from None
        except (OSError, BaseError) as error:
            raise StorageError(f"{self.uri_of(path)}: {self._description(error)}") from None

    def write(self, path: str, data: bytes | memoryview) -> None:
        """Write a file, or replace it as a whole.

        Called for files with new names, or with one writing process: the last of two writers wins.
        """
        self._run(path, lambda: self._files.write(path, data))

    def create(self, path: str, data: bytes) -> bool:
        """Write a file unless it exists; return whether this call wrote it.

        Called for commits: exactly one of all callers in all processes gets True. False says that the file exists, with
        all of its bytes. If a store's answer was lost, this call may have written the file and return False: the caller
        recognises its own bytes.
        """
        return self._run(path, lambda: self._files.create(path, data))

    def copy(self, source: str, target: str) -> None:
        """Copy a file that never changes to a new name; a repeated call changes nothing visible.

        On a disk both names are hard links of one file. Each name stays when the other is deleted.
        """
        self._checked(source)
        self._run(target, lambda: self._files.copy(source, target))

    def names(self, folder: str, after: str) -> list[str]:
        """Return the names of the files directly in a folder that sort after a name, in the order of their bytes.

        Called to find the last of many commits: a store lists nothing before `after`. A missing folder has no names.
        """
        return self._run(folder, lambda: self._files.names(folder, after))

    def list(self, folder: str) -> list[str]:
        """Return the paths of all files beneath a folder, in no order; "" is the destination."""
        return list(self.times(folder))

    def times(self, folder: str) -> dict[str, float]:
        """Return the write times of all files beneath a folder, by path, in seconds since 1970 of the store's clock.

        On a disk, unfinished files of a killed process are listed too.
        """
        return self._run(folder, lambda: self._files.times(folder))

    def delete(self, path: str) -> None:
        """Delete a file if it exists; a process that has opened the file on a disk can still read it."""
        self._run(path, lambda: self._files.delete(path))

    def layout(self, folder: str) -> FolderLayout:
        """Return where the new files of the table in a folder are."""
        return FolderLayout()

    def remove_empty_folders(self, folder: str) -> None:
        """Remove a folder and its subfolders that have no files; do nothing in a store. No process may write then."""
        self._run(folder, lambda: self._files.remove_empty_folders(folder))

    @staticmethod
    def _checked(path: str) -> str:
        return below(path) if path else path

    def _run(self, path: str, action: Callable[[], _Result]) -> _Result:
        self._checked(path)
        try:
            return action()
        except UnreadableError as error:
            raise MalformedFileError(f"{self.uri_of(path)} is damaged: {error}") from None
        except (NotSupportedError, NoLinksError) as error:
            raise InvalidDestinationError(
                f"{self.uri} cannot refuse to replace a file, so two writers could overwrite each other's commits: "
                f"use another destination ({self._description(error)})"
            ) from None
        except (OSError, BaseError, ValueError) as error:
            raise StorageError(f"{self.uri_of(path)}: {self._description(error)}") from None

    @cached_property
    def _files(self) -> LocalFiles | StoreFiles:
        if self.is_local:
            return LocalFiles(self.uri)
        try:
            return StoreFiles(self.uri, self.storage_options, self.limits, self.credentials)
        except (OSError, BaseError, ValueError) as error:
            raise InvalidDestinationError(
                f"{self.uri} is not a destination for tables: {self._description(error)}"
            ) from None

    def _description(self, error: BaseException) -> str:
        return without_secrets(first_line(error), secrets_of(self.storage_options))


@contextmanager
def decoding(name: str) -> Iterator[None]:
    """Replace errors of a library that decodes damaged bytes by MalformedFileError with a name.

    Libraries raise any error for damaged bytes, even SystemError and MemoryError. Errors of replicate, of an object
    store and of the operating system pass.
    """
    try:
        yield
    except Exception as error:
        is_of_system = isinstance(error, OSError) and error.errno is not None
        if isinstance(error, (LogicalRepError, BaseError)) or is_of_system:
            raise
        raise MalformedFileError(f"{name} is damaged: {first_line(error)}") from None


def _refuse_percent_codes(uri: str, path: str) -> None:
    if code := _PERCENT_CODE.search(path):
        raise InvalidDestinationError(
            f"{uri} is not a destination for tables: programs that read Delta tables would decode its {code[0]} to "
            "another character; use a folder without it"
        )


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text: errors of stores continue with lines for their developers."""
    return str(error).partition("\n")[0] or type(error).__name__
