"""A destination whose tables are elsewhere: a catalog chooses the location of each table's files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import IO

from logicalrep.pipeline.storage.layout import FolderLayout
from logicalrep.pipeline.storage.storage import InvalidDestinationError, Storage, StorageError

_STATE = "_logicalrep"
"""The folder of replicate's state, which stays at the destination."""
_OWN = "_"
"""The beginning of the names of replicate's own files in a table's folder, which stay there too."""


@dataclass(frozen=True)
class Place:
    """The storage of a table's location, and where new files are there."""

    storage: Storage
    layout: FolderLayout


@dataclass(frozen=True)
class PlacedStorage(Storage):
    """A destination, and the places of its tables.

    A path within a table's folder leads to the table's place. Names that begin with `_` stay at the destination: a
    catalog's service may remove files that the table's metadata does not name.

    Example:
        >>> storage.place("public/orders", Place(Storage("s3://warehouse/4f1c"), FolderLayout("data")))
        >>> storage.location("public/orders/data/part-1.parquet")
        's3://warehouse/4f1c/data/part-1.parquet'
    """

    places: dict[str, Place] = field(default_factory=dict, repr=False)
    """The places by the tables' folders. Each new place is added; engines get the current places."""

    def __reduce__(self) -> tuple[type[Storage], tuple[object, ...]]:
        return type(self), (self.uri, self.storage_options, self.limits, self.credentials, dict(self.places))

    def place(self, folder: str, place: Place) -> None:
        """Let the files of the table in a folder be at a place."""
        if self.places.get(folder) != place:
            self.places[folder] = place

    def layout(self, folder: str) -> FolderLayout:
        return self.places[folder].layout

    def list_own(self, folder: str) -> list[str]:
        """Return the paths of replicate's own files in a table's folder."""
        return [path for path in self._own.times(folder) if path.removeprefix(f"{folder}/").startswith(_OWN)]

    def _at(self, path: str) -> tuple[Storage, str]:
        """Return the storage of a path, a table's place or the destination itself, and the path there."""
        parts = self._checked(path).split("/", 2)
        if len(parts) < 2 or parts[0] == _STATE or (len(parts) == 3 and parts[2].startswith(_OWN)):
            return self._own, path
        folder = "/".join(parts[:2])
        if folder not in self.places:
            raise InvalidDestinationError(f"the catalog has no table for the files of {folder}")
        return self.places[folder].storage, parts[2] if len(parts) == 3 else ""

    @cached_property
    def _own(self) -> Storage:
        """The destination, for replicate's own files."""
        return Storage(self.uri, self.storage_options, self.limits, self.credentials)

    def uri_of(self, path: str) -> str:
        storage, path_there = self._at(path)
        return storage.uri_of(path_there).rstrip("/")

    def location(self, path: str) -> str:
        storage, path_there = self._at(path)
        return storage.location(path_there).rstrip("/")

    def path_of(self, location: str) -> str:
        # Other threads add places meanwhile. A place may be within another place.
        places = [(folder, place.storage) for folder, place in self.places.copy().items()]
        for folder, place in sorted(places, key=lambda entry: -len(entry[1].uri)):
            plain = location.removeprefix("file://") if place.is_local else location
            if plain == place.uri:
                return folder
            if plain.startswith(f"{place.uri}/"):
                return f"{folder}/{place.path_of(location)}"
        raise ValueError(
            f"{location} is outside of the locations of the tables, where replicate reads files: let the catalog's "
            "service write below the table's location"
        )

    def read(self, path: str, most_bytes: int | None = None) -> bytes | None:
        storage, path_there = self._at(path)
        return storage.read(path_there, most_bytes)

    @contextmanager
    def open(self, path: str, size: int, *, few: bool = False) -> Iterator[IO[bytes]]:
        storage, path_there = self._at(path)
        with storage.open(path_there, size, few=few) as opened:
            yield opened

    def write(self, path: str, data: bytes | memoryview) -> None:
        storage, path_there = self._at(path)
        storage.write(path_there, data)

    def create(self, path: str, data: bytes) -> bool:
        storage, path_there = self._at(path)
        return storage.create(path_there, data)

    def copy(self, source: str, target: str) -> None:
        if self._at(source)[0] is self._at(target)[0] is self._own:
            self._own.copy(source, target)
        elif (data := self.read(source)) is not None:
            # Each table has credentials for its own place alone.
            self.write(target, data)
        else:
            raise StorageError(f"{self.uri_of(source)} does not exist")

    def names(self, folder: str, after: str) -> list[str]:
        storage, folder_there = self._at(folder)
        return storage.names(folder_there, after)

    def times(self, folder: str) -> dict[str, float]:
        storage, folder_there = self._at(folder)
        if storage is self._own:
            return storage.times(folder)
        table = "/".join(folder.split("/", 2)[:2])
        return {f"{table}/{path}": at for path, at in storage.times(folder_there).items()}

    def delete(self, path: str) -> None:
        storage, path_there = self._at(path)
        storage.delete(path_there)

    def remove_empty_folders(self, folder: str) -> None:
        storage, folder_there = self._at(folder)
        storage.remove_empty_folders(folder_there)
