"""Files in an object store."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import IO, TYPE_CHECKING, Any

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import ObjectStore, from_url

if TYPE_CHECKING:
    from obstore.store import RetryConfig

RETRIES: RetryConfig = {"max_retries": 5, "retry_timeout": timedelta(seconds=60)}
"""The tries of a request that an object store refuses; the caller waits for a destination that is away for longer."""
_OF_CLIENT = re.compile(
    r"(?:aws_|azure_|google_)?"
    r"(allow_http|allow_invalid_certificates|connect_timeout|default_content_type|pool_idle_timeout|"
    r"pool_max_idle_per_host|proxy_ca_certificate|proxy_excludes|proxy_url|randomize_addresses|read_timeout|timeout|"
    r"user_agent)"
)
"""The options of the client that speaks HTTP, which stand among the store's."""
READ_WHOLE = 16 << 20
"""The size up to which a store's file is read by one request, whatever part of it is asked for."""


class StoreFiles:
    """Files in an object store, which repeats failed requests by itself."""

    def __init__(self, uri: str, options: Mapping[str, str]) -> None:
        """Take the store's URI with a folder, and its options. Raises what the store's library does if it is none."""
        of_client = {name: match[1] for name in options if (match := _OF_CLIENT.fullmatch(name))}
        config = {name: value for name, value in options.items() if name not in of_client}
        client = {short: options[name] for name, short in of_client.items()}
        self._store = from_url(uri, config=config, client_options=client, retry_config=RETRIES)  # type: ignore[call-overload]

    def read(self, path: str) -> bytes | None:
        try:
            return obstore.get(self._store, path).bytes().to_bytes()
        except FileNotFoundError:
            return None

    def open(self, path: str, size: int) -> IO[bytes]:
        if size <= READ_WHOLE:
            return io.BytesIO(obstore.get(self._store, path).bytes())
        return io.BufferedReader(_Ranges(self._store, path, size), 1 << 20)

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

    def times(self, folder: str) -> dict[str, float]:
        entries = (entry for page in obstore.list(self._store, folder) for entry in page)
        return {entry["path"]: entry["last_modified"].timestamp() for entry in entries}

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            obstore.delete(self._store, path)

    def remove_empty_folders(self, folder: str) -> None:
        pass


class _Ranges(io.RawIOBase):
    """A file in an object store, each read a request."""

    def __init__(self, store: ObjectStore, path: str, size: int) -> None:
        self._store = store
        self._path = path
        self._size = size
        self._at = 0

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
        data = obstore.get_range(self._store, self._path, start=self._at, length=length)
        target[:length] = memoryview(data)
        self._at += length
        return length
