"""Files in an object store."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import IO, TYPE_CHECKING, Any

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import ObjectStore, from_url

from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.storage.local_files import refuse_large

if TYPE_CHECKING:
    from obstore.store import RetryConfig

_CLIENT_OPTION = re.compile(
    r"(?:aws_|azure_|google_)?"
    r"(allow_http|allow_invalid_certificates|connect_timeout|default_content_type|pool_idle_timeout|"
    r"pool_max_idle_per_host|proxy_ca_certificate|proxy_excludes|proxy_url|randomize_addresses|read_timeout|timeout|"
    r"user_agent)"
)
"""Options of the HTTP client, which users pass among the options of the store."""
_END = 64 << 10
"""Size of the first read at the end of a file, in bytes, which has a Parquet file's footer."""
_GAP = 32 << 10
"""Longest gap in bytes between two parts that one request reads together with the gap."""


class StoreFiles:
    """Files in an object store. `Storage` specifies the methods, which raise OSError and BaseError here.

    The store's client retries failed requests, and a store's requests are atomic and durable.
    """

    def __init__(
        self, uri: str, options: Mapping[str, str], limits: Limits, credentials: Callable[[], Any] | None = None
    ) -> None:
        """Take the store's URI with a folder, its options, the limits of the run, and a provider of credentials.

        Raises the errors of the store's library for an invalid URI or option.
        """
        self._most_whole = limits.whole_file_bytes
        retries: RetryConfig = {"max_retries": limits.store_retries, "retry_timeout": timedelta(seconds=60)}
        client_names = {name: match[1] for name in options if (match := _CLIENT_OPTION.fullmatch(name))}
        config = {name: value for name, value in options.items() if name not in client_names}
        client = {short: options[name] for name, short in client_names.items()}
        self._store = from_url(  # type: ignore[call-overload]
            uri, config=config, client_options=client, retry_config=retries, credential_provider=credentials
        )

    def read(self, path: str, most_bytes: int | None = None) -> bytes | None:
        try:
            answer = obstore.get(self._store, path)
            if most_bytes is not None:
                refuse_large(answer.meta["size"], most_bytes)
            return answer.bytes().to_bytes()
        except FileNotFoundError:
            return None

    def open(self, path: str, size: int, *, few: bool = False) -> IO[bytes]:
        if size <= self._most_whole and not few:
            return io.BytesIO(obstore.get(self._store, path).bytes())
        return StoreFile(_Ranges(self._store, path, size, self._most_whole), 1 << 20)

    def write(self, path: str, data: bytes | memoryview) -> None:
        obstore.put(self._store, path, data)

    def create(self, path: str, data: bytes) -> bool:
        try:
            obstore.put(self._store, path, data, mode="create")
        except AlreadyExistsError:
            return False
        return True

    def copy(self, source: str, target: str) -> None:
        obstore.copy(self._store, source, target)

    def names(self, folder: str, after: str) -> list[str]:
        pages = obstore.list(self._store, folder, offset=f"{folder}/{after}")
        names = (entry["path"].removeprefix(f"{folder}/") for page in pages for entry in page)
        return sorted(name for name in names if "/" not in name)

    def times(self, folder: str) -> dict[str, float]:
        entries = (entry for page in obstore.list(self._store, folder) for entry in page)
        return {entry["path"]: entry["last_modified"].timestamp() for entry in entries}

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            obstore.delete(self._store, path)

    def remove_empty_folders(self, folder: str) -> None:
        pass


class StoreFile(io.BufferedReader):
    """A file in an object store that is read in parts."""

    raw: _Ranges

    def read_parts(self, parts: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return parts of the file by their starts and ends, requested concurrently."""
        return self.raw.read_parts(parts)


class _Ranges(io.RawIOBase):
    """A file in an object store; each read is a request."""

    def __init__(self, store: ObjectStore, path: str, size: int, most_whole: int) -> None:
        self._store = store
        self._path = path
        self._size, self._most_whole = size, most_whole
        self._at = 0
        # The bytes of the first read, which has a Parquet footer; later reads of a small file cache the whole file.
        self._cached_from = size
        self._cached = b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, target: Any) -> int:
        length = min(len(target), self._size - self._at)
        if length <= 0:
            return 0
        target[:length] = self._read(self._at, self._at + length)
        self._at += length
        return length

    def _read(self, start: int, end: int) -> memoryview:
        if not self._cached and start >= self._size - _END:
            self._cache(max(self._size - _END, 0))
        elif start < self._cached_from and self._size <= self._most_whole:
            self._cache(0)
        if start >= self._cached_from:
            return memoryview(self._cached)[start - self._cached_from : end - self._cached_from]
        return memoryview(obstore.get_range(self._store, self._path, start=start, end=end))

    def _cache(self, start: int) -> None:
        self._cached = obstore.get_range(self._store, self._path, start=start, end=self._size).to_bytes()
        self._cached_from = start

    def read_parts(self, parts: Sequence[tuple[int, int]]) -> list[bytes]:
        missing = [part for part in parts if part[0] < self._cached_from]
        starts, ends = [start for start, _ in missing], [end for _, end in missing]
        ranges = obstore.get_ranges(self._store, self._path, starts=starts, ends=ends, coalesce=_GAP) if missing else []
        by_part = dict(zip(missing, ranges, strict=True))
        return [bytes(by_part[part]) if part in by_part else bytes(self._read(*part)) for part in parts]
