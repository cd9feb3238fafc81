"""A destination whose tables are elsewhere: a catalog chooses the location of each table's files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
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
        return [path for path in super().times(folder) if path.removeprefix(f"{folder}/").startswith(_OWN)]

    def _find(self, path: str) -> tuple[Storage, str] | None:
        """Return the place of a path and the path there; None for a path at the destination itself."""
        parts = self._checked(path).split("/", 2)
        if len(parts) < 2 or parts[0] == _STATE or (len(parts) == 3 and parts[2].startswith(_OWN)):
            return None
        folder = "/".join(parts[:2])
        if folder not in self.places:
            raise InvalidDestinationError(f"the catalog has no table for the files of {folder}")
        return self.places[folder].storage, parts[2] if len(parts) == 3 else ""

    def uri_of(self, path: str) -> str:
        placed = self._find(path)
        return super().uri_of(path) if placed is None else placed[0].uri_of(placed[1]).rstrip("/")

    def location(self, path: str) -> str:
        placed = self._find(path)
        return super().location(path) if placed is None else placed[0].location(placed[1]).rstrip("/")

    def path_of(self, location: str) -> str:
        # A place may be within another place.
        places = ((folder, place.storage) for folder, place in self.places.items())
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
        placed = self._find(path)
        return super().read(path, most_bytes) if placed is None else placed[0].read(placed[1], most_bytes)

    @contextmanager
    def open(self, path: str, size: int, *, few: bool = False) -> Iterator[IO[bytes]]:
        placed = self._find(path)
        opening = super().open(path, size, few=few) if placed is None else placed[0].open(placed[1], size, few=few)
        with opening as opened:
            yield opened

    def write(self, path: str, data: bytes | memoryview) -> None:
        placed = self._find(path)
        super().write(path, data) if placed is None else placed[0].write(placed[1], data)

    def create(self, path: str, data: bytes) -> bool:
        placed = self._find(path)
        return super().create(path, data) if placed is None else placed[0].create(placed[1], data)

    def copy(self, source: str, target: str) -> None:
        from_place, to_place = self._find(source), self._find(target)
        if from_place is None and to_place is None:
            super().copy(source, target)
        elif (data := self.read(source)) is not None:
            # Each table has credentials for its own place alone.
            self.write(target, data)
        else:
            raise StorageError(f"{self.uri_of(source)} does not exist")

    def names(self, folder: str, after: str) -> list[str]:
        placed = self._find(folder)
        return super().names(folder, after) if placed is None else placed[0].names(placed[1], after)

    def times(self, folder: str) -> dict[str, float]:
        placed = self._find(folder)
        if placed is None:
            return super().times(folder)
        table = "/".join(folder.split("/", 2)[:2])
        return {f"{table}/{path}": at for path, at in placed[0].times(placed[1]).items()}

    def delete(self, path: str) -> None:
        placed = self._find(path)
        super().delete(path) if placed is None else placed[0].delete(placed[1])

    def remove_empty_folders(self, folder: str) -> None:
        placed = self._find(folder)
        super().remove_empty_folders(folder) if placed is None else placed[0].remove_empty_folders(placed[1])
