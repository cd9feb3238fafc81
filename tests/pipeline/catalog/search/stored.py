"""The versions of a table and their rows, read from its log or metadata without any code of the project."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.table import StaticTable

from tests.pipeline.comparison import hashable
from tests.pipeline.reading import read_delta

Row = Mapping[str, Any]


class Version(NamedTuple):
    """A version of a table."""

    columns: tuple[str, ...]
    rows: list[Row]
    lsn: int
    """The position up to which it has all commits."""
    described: Mapping[str, Any]
    """Its description, with its columns and its key."""
    is_described: bool
    """Whether this version has another description than the one before, or other properties."""
    feed: list[Row] | None = None
    """The rows of Delta's change data feed for this version; None for a table without a feed."""


@dataclass
class Stored:
    """Reads tables; a file that is there does not change, and is read once."""

    files: dict[Path, list[Row]] = field(default_factory=dict)
    locate: Callable[[Path], Path] = lambda folder: folder
    """Returns the location of the table in a folder."""

    def versions(self, folder: Path) -> list[Version]:
        """Return the versions of a table, the last one at the end; none if it is missing."""
        folder = self.locate(folder)
        return self._of_metadata(folder) if (folder / "metadata").is_dir() else self._of_log(folder)

    def _of_metadata(self, folder: Path) -> list[Version]:
        """Return the versions of an Iceberg table."""
        versions: list[Version] = []
        previous: object = None
        # Metadata files are called `v12.metadata.json` in a folder, and `00012-<UUID>.metadata.json` with a catalog.
        found_files = (folder / "metadata").glob("*.metadata.json")
        files = {int(re.split(r"[-.]", file.name.removeprefix("v"))[0]): file for file in found_files}
        for number in sorted(files):
            table = StaticTable.from_metadata(str(files[number]))
            properties = table.properties
            if "logicalrep.table" not in properties:
                continue  # A catalog that owns the table has it before its first load.
            described = json.loads(properties["logicalrep.table"])
            properties_read = [
                properties.get(name) for name in ("logicalrep.table", "logicalrep.load", "logicalrep.stopped")
            ]
            at = folder / f"{table.metadata.current_snapshot_id} {table.schema()}"
            if at not in self.files:
                self.files[at] = _rows_of(table.scan().to_arrow())
            columns = tuple(field.name for field in table.schema().fields)
            lsn = max(map(int, json.loads(properties["logicalrep.applied"]).values()))
            versions.append(Version(columns, self.files[at], lsn, described, properties_read != previous))
            previous = properties_read
        return versions

    def _of_log(self, folder: Path) -> list[Version]:
        """Return the versions of a Delta table."""
        versions: list[Version] = []
        paths: set[str] = set()
        columns: tuple[str, ...] = ()
        lsn, described, has_vectors, has_feed = 0, {}, False, False
        for file in sorted((folder / "_delta_log").glob("*.json")):
            is_described = False
            actions = [json.loads(line) for line in file.read_text().splitlines()]
            for action in actions:
                if "metaData" in action:
                    configuration = action["metaData"]["configuration"]
                    is_described, described = True, json.loads(configuration["logicalrep.table"])
                    has_feed = configuration.get("delta.enableChangeDataFeed") == "true"
                    fields = json.loads(action["metaData"]["schemaString"])["fields"]
                    columns = tuple(field["name"] for field in fields)
                elif "txn" in action:
                    lsn = action["txn"]["version"]
                elif "remove" in action:
                    paths.discard(action["remove"]["path"])
                elif "add" in action:
                    paths.add(action["add"]["path"])
                    has_vectors |= "deletionVector" in action["add"]
            if has_vectors:
                rows = self._rows_without_marked(folder, int(file.stem))
            else:
                rows = [row for path in sorted(paths) for row in self._rows(folder / path)]
            feed = self._feed(folder, actions) if has_feed else None
            versions.append(Version(columns, rows, lsn, described, is_described, feed))
        return versions

    def _feed(self, folder: Path, actions: Sequence[Mapping[str, Any]]) -> list[Row]:
        """Return the changes of a commit: of its change files, or without any of them, of its other files."""
        if changes := [action["cdc"]["path"] for action in actions if "cdc" in action]:
            return [row for path in changes for row in self._rows(folder / path)]
        kinds = {"remove": "delete", "add": "insert"}
        return [
            {**row, "_change_type": change_type}
            for kind, change_type in kinds.items()
            for action in actions
            if kind in action and action[kind]["dataChange"]
            for row in self._rows(folder / action[kind]["path"])
        ]

    def _rows(self, path: Path) -> list[Row]:
        if path not in self.files:
            with pq.ParquetFile(path) as file:
                self.files[path] = _rows_of(file.read(use_threads=False))
        return self.files[path]

    def _rows_without_marked(self, folder: Path, version: int) -> list[Row]:
        at = folder / str(version)
        if at not in self.files:
            self.files[at] = _rows_of(read_delta(str(folder), version=version))
        return self.files[at]


def _rows_of(table: pa.Table) -> list[Row]:
    return [{name: hashable(value) for name, value in row.items()} for row in table.to_pylist()]


__all__ = ["Row", "Stored", "Version"]
