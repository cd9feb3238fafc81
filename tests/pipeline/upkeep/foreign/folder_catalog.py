"""A catalog for pyiceberg over Iceberg tables in folders, which commits as Iceberg's Hadoop catalog does."""

from __future__ import annotations

import re
from pathlib import Path

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.typedef import Identifier

from tests.pipeline.reading import newest_metadata


class FolderCatalog(NoopCatalog):
    """The tables below a folder. An identifier is a path, such as `("public/t",)`."""

    def __init__(self, folder: Path) -> None:
        super().__init__("folder")
        self._folder = folder

    def load_table(self, identifier: str | Identifier) -> Table:
        (path,) = (identifier,) if isinstance(identifier, str) else identifier
        location = newest_metadata(str(self._folder / path))
        return Table((path,), _read(location), location, PyArrowFileIO(), self)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        (path,) = table.name()
        folder = self._folder / path / "metadata"
        location = newest_metadata(str(self._folder / path))
        for requirement in requirements:
            requirement.validate(_read(location))
        after = update_table_metadata(_read(location), updates, metadata_location=location)
        match = re.search(r"v(\d+)\.metadata\.json", location)
        assert match is not None
        number = int(match[1]) + 1
        try:
            with (folder / f"v{number}.metadata.json").open("x") as file:
                file.write(after.model_dump_json())
        except FileExistsError:
            raise CommitFailedException(f"version {number} is there") from None
        (folder / "version-hint.text").write_text(str(number))
        return CommitTableResponse.model_validate(
            {"metadata": after, "metadata-location": str(folder / f"v{number}.metadata.json")}
        )


def _read(location: str) -> TableMetadata:
    return TableMetadataUtil.parse_raw(Path(location).read_text())
