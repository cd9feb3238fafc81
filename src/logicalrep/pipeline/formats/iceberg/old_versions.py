"""Old versions of an Iceberg table whose metadata was deleted, for readers of the past.

The metadata of each version lists every snapshot, so only the last few versions keep theirs. One small file stores, for
all other versions within the retention, the manifest list and the table's description.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from logicalrep.pipeline.formats.iceberg.metadata import TABLE
from logicalrep.pipeline.formats.iceberg.versions import MetadataVersion
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.storage import Storage, below

VERSIONS_FILE = "_versions.json"


@dataclass(frozen=True)
class OldVersion:
    number: int
    at: float
    """The time of the commit, in seconds since 1970."""
    manifest_list: str
    """The path of the manifest list within the table's folder."""
    table: str
    """The table's description, as JSON."""

    @classmethod
    def of_metadata(cls, storage: Storage, folder: str, version: MetadataVersion) -> Self | None:
        """Return the facts in a version's metadata; None if the metadata has no snapshot or no description."""
        snapshot, table = version.metadata.current_snapshot(), version.metadata.properties.get(TABLE)
        if snapshot is None or table is None:
            return None
        path = storage.path_of(snapshot.manifest_list).removeprefix(f"{folder}/")
        return cls(version.number, version.metadata.last_updated_ms / 1000, path, table)


def read_old_version(storage: Storage, folder: str, number: int) -> tuple[str, TableSpec] | None:
    """Return the path at the destination of a version's manifest list, and the table's description.

    Return None for a version that is not stored. Raises MalformedFileError if the file of old versions is damaged.
    """
    for version in _read(storage, folder):
        if version.number == number:
            with storage.parsing(f"{folder}/{VERSIONS_FILE}"):
                return below(folder, version.manifest_list), TableSpec.from_json(version.table)
    return None


def store_old_versions(storage: Storage, folder: str, versions: Iterable[MetadataVersion], oldest: float) -> None:
    """Store the facts of versions before their metadata is deleted; forget versions that are too old.

    Args:
        storage: the destination.
        folder: the table's folder.
        versions: the versions.
        oldest: the time from which versions can be read, in seconds since 1970.
    """
    by_number = {old_version.number: old_version for old_version in _read(storage, folder)}
    for version in versions:
        with storage.parsing(version.name):
            old_version = OldVersion.of_metadata(storage, folder, version)
        if old_version is not None:
            by_number[version.number] = old_version
    old_versions = [by_number[number] for number in sorted(by_number)]
    # The last version before `oldest` has the table's state at that time, so it stays.
    first = sum(old_version.at <= oldest for old_version in old_versions)
    storage.write(f"{folder}/{VERSIONS_FILE}", json.dumps(_content(old_versions[max(first - 1, 0) :])).encode())


def _content(versions: Sequence[OldVersion]) -> dict[str, Any]:
    tables = list(dict.fromkeys(version.table for version in versions))
    numbers = {table: number for number, table in enumerate(tables)}
    rows = [(version.number, version.at, version.manifest_list, numbers[version.table]) for version in versions]
    return {"versions": rows, "tables": [json.loads(table) for table in tables]}


def _read(storage: Storage, folder: str) -> list[OldVersion]:
    return storage.parse(f"{folder}/{VERSIONS_FILE}", _parse) or []


def _parse(content: Any) -> list[OldVersion]:
    tables = [json.dumps(table) for table in content["tables"]]
    return [OldVersion(number, at, path, tables[table]) for number, at, path, table in content["versions"]]
