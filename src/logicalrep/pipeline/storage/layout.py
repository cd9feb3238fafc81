"""Where the new files of a table are, within the table's folder."""

from __future__ import annotations

from dataclasses import dataclass

_BITS = 20
"""The bits of a name's hash that become folders."""


@dataclass(frozen=True)
class FolderLayout:
    """The folders of new files.

    Example:
        >>> FolderLayout("data").of_rows("part-1.parquet")
        'data/part-1.parquet'
    """

    data: str = ""
    """The folder of data files and delete files, within the table's folder."""
    metadata: str = "metadata"
    """The folder of manifests, within the table's folder."""
    is_hashed: bool = False
    """Whether the files of `data` are in folders by a hash of their names, so that a store spreads its requests."""

    def of_rows(self, name: str) -> str:
        """Return the path of a new data file or delete file within the table's folder."""
        return "/".join(filter(None, (self.data, _hashed(name) if self.is_hashed else "", name)))

    def of_metadata(self, name: str) -> str:
        """Return the path of a new manifest or manifest list within the table's folder."""
        return "/".join(filter(None, (self.metadata, name)))


def _hashed(name: str) -> str:
    """Return the folders for a name, as Iceberg's ObjectStoreLocationProvider chooses them."""
    # Most commands use storages without these libraries, which take long to import.
    import pyarrow as pa

    from logicalrep.pipeline.schema.buckets import buckets_of

    (number,) = buckets_of(pa.array([name]), 1 << _BITS).to_pylist()
    bits = f"{number:0{_BITS}b}"
    return "/".join((bits[:4], bits[4:8], bits[8:12], bits[12:]))
